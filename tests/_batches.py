"""What the tests of batches share: pairs, an engine in this process, and stages that do harm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import hamflow
from hamflow._types import Flow, FrameLike, Mask
from hamflow.config import PRESETS, EstimatorConfig
from hamflow.refinement import Upsampling
from hamflow.scale import batch as batch_module
from hamflow.scale import worker as worker_module
from hamflow.scale.engine import Event, Finished, Ready
from hamflow.scale.pairs import ImagePair
from hamflow.scale.worker import Work, Worker

DEADLY = (255, 0, 0)
"""The color of the first pixel of an image that its process dies of."""
HANGING = (0, 255, 0)
"""The color of the first pixel of an image that its process never finishes."""


@dataclass(frozen=True)
class HarmfulRefinement:
    """Kills its process at images of the color `DEADLY`, hangs at those of the color `HANGING`.

    It takes its time with all others.

    Of the module that the worker processes import, because classes are pickled by their names.
    """

    seconds: float = 0.0
    method: ClassVar[str] = "harmful"

    def __call__(
        self,
        frames: tuple[FrameLike, FrameLike],
        flow: Flow,
        trusted: Mask,
        scale: int,
        opposite: Flow | None = None,
    ) -> Flow:
        if np.allclose(frames[0].at(1)[0, 0], np.divide(DEADLY, 255)):
            os.kill(os.getpid(), signal.SIGKILL)
        if np.allclose(frames[0].at(1)[0, 0], np.divide(HANGING, 255)):
            time.sleep(3600)
        time.sleep(self.seconds)
        return Upsampling()(frames, flow, trusted, scale)


def harmful(seconds: float = 0.0) -> EstimatorConfig:
    """The preset with that refinement, and little work besides; one direction, so one call."""
    return replace(
        PRESETS["realtime"],
        model="pairs",
        coarse_model="",
        bidirectional=False,
        refinement=HarmfulRefinement(seconds),
    )


def write_frames(
    folder: Path, count: int, deadly: tuple[int, ...] = (), hanging: tuple[int, ...] = ()
) -> Path:
    """Write f00.png, f01.png, ... of 40×32 pixels."""
    folder.mkdir(parents=True, exist_ok=True)
    image = np.random.default_rng(0).integers(0, 200, (32, 40, 3), np.uint8)
    for number in range(count):
        moved = np.roll(image, number, axis=1)
        if number in deadly:
            moved[0, 0] = DEADLY
        if number in hanging:
            moved[0, 0] = HANGING
        hamflow.write_image(folder / f"f{number:02}.png", moved)
    return folder


class InlineEngine:
    """Works in this process, one pair after the other, in the place of the local engine."""

    def __init__(self, work: Work, workers: int, threads: int) -> None:
        self.slots = workers
        self._worker = Worker(work, 1, 1.0)
        self._events: list[Event] = []

    def start(self, slot: int) -> None:
        self._events.append(Ready(slot))

    def send(self, slot: int, pair: ImagePair) -> None:
        self._events.append(Finished(slot, self._worker(pair)))

    def wait(self, seconds: float | None) -> list[Event]:
        events, self._events = self._events, []
        return events

    def stop(self, slot: int) -> None:
        raise AssertionError("nothing takes long here")

    def close(self) -> None:
        pass


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> type[InlineEngine]:
    """Let batches run in this process."""
    monkeypatch.setattr(batch_module, "LocalEngine", InlineEngine)
    monkeypatch.setattr(worker_module, "limit_memory", lambda share: None)
    return InlineEngine


def contents(folder: Path) -> dict[str, bytes]:
    """The files of all pairs, without the log and the manifest."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent != folder
    }


def times(folder: Path) -> dict[str, int]:
    """When the files of all pairs were written."""
    return {name: (folder / name).stat().st_mtime_ns for name in contents(folder)}


def wait_until(done: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait for something that another process does."""
    for _ in range(int(seconds / 0.02)):
        if done():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def killed_leader(*words: str, out: Path) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Run a program that leads a batch, and kill it after three pairs.

    Returns what the log says of the pairs that are done, and when their files were written.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    leader = subprocess.Popen([sys.executable, "-c", *words], env=environment)
    try:
        wait_until(lambda: logged(out) >= 3)
    finally:
        leader.kill()
        leader.wait()
    records = [json.loads(line) for line in (out / "run.jsonl").read_text().splitlines()[1:]]
    kept = {name for record in records for name in record["files"]}
    return records, {name: when for name, when in times(out).items() if name in kept}


def logged(out: Path) -> int:
    """How many pairs are in the log of a batch."""
    log = out / "run.jsonl"
    return max(0, log.read_bytes().count(b"\n") - 1) if log.exists() else 0
