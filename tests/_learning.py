"""What the tests of learning share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hamflow
from hamflow.datasets import demo_scene
from hamflow.datasets.synthetic import SyntheticConfig
from hamflow.descriptors.architecture import Architecture
from hamflow.learning.config import AugmentConfig, DataConfig, TrainConfig
from hamflow.learning.log import read_curve
from hamflow.learning.loop import Step

PATIENCE = 600
"""Seconds that a process of its own may take: importing torch alone is long on a busy machine."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Problems this small take longer with more threads; the number is restored elsewhere."""
    before = torch.get_num_threads()
    hamflow.set_num_threads(1)
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


COURSE = ("number", "loss", "rate", "norm", "constant_bits")
"""Columns that do not depend on the machine's mood."""


@pytest.fixture
def extras() -> None:
    """For tests that use them."""


@pytest.fixture(autouse=True)
def no_extras(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Leave out the slow imports but where they are the point."""
    if "extras" not in request.fixturenames:
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
        monkeypatch.setitem(sys.modules, "hamflow.learning.plot", None)


def stop_after(step: int, number: int = signal.SIGTERM) -> Callable[[Step], None]:
    def callback(done: Step) -> None:
        if done.number == step:
            signal.raise_signal(number)

    return callback


def course(folder: Path) -> list[dict[str, str]]:
    rows = read_curve(folder / "curve.csv")
    return [
        {name: row[name] for name in row if name in COURSE or name.startswith("val_")}
        for row in rows
    ]


def tiny_config(**changes: Any) -> TrainConfig:
    """A run of a few tenths of a second: FQ on 48×48 scenes with little motion."""
    config = TrainConfig(
        network=Architecture(layers=3, channels=8),
        window=16,
        steps=6,
        bootstrap=0.5,
        warmup=2,
        learning_rate=1e-2,
        data=DataConfig(
            synthetic=SyntheticConfig(
                height=48, width=48, max_displacement=6.0, min_layers=1, max_layers=2, clean=True
            )
        ),
        augment=AugmentConfig(photometric=0.0, blur=0.0, noise=0.0),
        validation_pairs=0,
        workers=0,
        threads=1,
    )
    return replace(config, **changes)


def write_pairs(root: Path, count: int = 3, size: tuple[int, int] = (48, 64)) -> Path:
    """A folder with pairs that all show the same scene, each a bit brighter than the last."""
    scene = demo_scene(*size)
    for number in range(count):
        folder = root / "group" / f"pair{number}"
        folder.mkdir(parents=True)
        for name, image in (("frame1.png", scene.image0), ("frame2.png", scene.image1)):
            # The last four bits of every pixel show the number.
            hamflow.write_image(folder / name, image // 16 * 16 + np.uint8(number))
        hamflow.write_flow(folder / "flow.flo", scene.flow)
        occluded = np.repeat(scene.occluded[..., None], 3, axis=2).astype(np.uint8) * 255
        hamflow.write_image(folder / "occ.png", occluded)
    return root


@pytest.fixture
def hidden_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide from new processes what training can do without: it is slow to import."""
    folder = tmp_path / "hidden"
    folder.mkdir()
    for name in ("matplotlib", "tensorboard"):
        (folder / f"{name}.py").write_text("raise ImportError('hidden')")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)


def wait_for_steps(process: subprocess.Popen[str], output: Path, count: int) -> None:
    """Wait until a run in another process has recorded a step, or has ended."""
    until, log = time.monotonic() + PATIENCE, output / "run.jsonl"
    while time.monotonic() < until and process.poll() is None:
        if log.exists() and f'{{"key": "{count}", ' in log.read_text():
            return
        time.sleep(0.05)


def wait_until_alone(session: int) -> list[str]:
    """Return which processes of a session (as Linux tells) are still there after a while."""
    left: list[str] = []
    for _ in range(200):
        left = [text for text in map(_stat, Path("/proc").glob("[0-9]*/stat")) if text]
        # After the name, which may hold anything: state, parent, group, session.
        fields = [text.rpartition(")")[2].split() for text in left]
        left = [
            text
            for text, (state, _, _, of, *_) in zip(left, fields, strict=True)
            if int(of) == session and state not in "ZX"
        ]
        if not left:
            break
        time.sleep(0.1)
    return left


def _stat(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # gone meanwhile
