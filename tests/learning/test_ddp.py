"""Two processes learn what one does with the joint batch."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from _learning import (  # noqa: E402
    PATIENCE,
    hidden_extras,  # noqa: F401
    one_thread,  # noqa: F401
    tiny_config,
    wait_for_steps,
    write_pairs,
)
from _problems import started_python  # noqa: E402
from hamflow import FileError  # noqa: E402
from hamflow.descriptors.weights import read_weights  # noqa: E402
from hamflow.learning.config import DataConfig, TrainConfig  # noqa: E402
from hamflow.learning.log import read_curve  # noqa: E402
from hamflow.learning.loop import train  # noqa: E402
from hamflow.learning.state import read_state  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not torch.distributed.is_available() or sys.platform != "linux",
        reason="needs gloo processes",
    ),
    pytest.mark.usefixtures("hidden_extras"),
]

TABLES = """
[network]
layers = 3
channels = 8

[data]
dataset = "folder"
root = "{root}"
crop = "none"

[augment]
photometric = 0
blur = 0
noise = 0
"""


def two_processes(
    config: TrainConfig, output: Path
) -> AbstractContextManager[subprocess.Popen[str]]:
    """Train with torchrun; the settings are those of `tiny_config` but for a few."""
    values = {
        name: getattr(config, name)
        for name in (
            *("window", "steps", "bootstrap", "warmup", "learning_rate", "workers", "threads"),
            *("batch", "validation_pairs", "validate_every"),
        )
    }
    file = output.with_suffix(".toml")
    tables = TABLES.format(root=config.data.root)
    file.write_text("\n".join(f"{name} = {value}" for name, value in values.items()) + tables)
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "hamflow", "train", "-o", str(output), "--config", str(file)]
    return started_python(*command, stderr=subprocess.STDOUT, TORCH_CPP_LOG_LEVEL="ERROR")


@pytest.fixture
def data(tmp_path: Path) -> DataConfig:
    """Pairs on the disk, which are there at once."""
    root = write_pairs(tmp_path / "data", count=4, size=(32, 40))
    return DataConfig(dataset="folder", root=root, crop=None)


def named(text: Path) -> list[str]:
    """Commands that are running with these words in them; torchrun gives each its own session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # gone meanwhile
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [command for command in found if str(text) in command]


def test_two_processes_are_one_with_the_joint_batch(tmp_path: Path, data: DataConfig) -> None:
    config = tiny_config(steps=2, validation_pairs=1, validate_every=1, data=data)
    with two_processes(config, tmp_path / "two") as process:
        output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    # One of the two speaks, and one writes.
    assert output.count("step 1: loss") == 1
    assert output.count("Best at step") == 1

    train(replace(config, batch=2), tmp_path / "one")
    two, one = (read_curve(tmp_path / name / "curve.csv") for name in ("two", "one"))
    assert [row["number"] for row in two] == ["1", "2"]
    for first, second in zip(two, one, strict=True):
        for name in ("loss", "norm", "val_loss", "val_epe_trained"):
            np.testing.assert_allclose(float(first[name]), float(second[name]), rtol=1e-4)
    weights = [read_weights(tmp_path / name / "last.safetensors")[1] for name in ("two", "one")]
    for name, value in weights[0].items():
        np.testing.assert_allclose(value, weights[1][name], atol=1e-5, rtol=1e-4)
    # With one pair alone they come out otherwise: the test bites.
    train(config, tmp_path / "alone")
    alone = read_weights(tmp_path / "alone" / "last.safetensors")[1]
    assert max(np.abs(alone[name] - weights[0][name]).max() for name in alone) > 1e-3

    _, progress = read_state(tmp_path / "two" / "checkpoint.safetensors")
    assert progress.step == 2
    with pytest.raises(FileError, match=r"\(processes was 2, not 1\)"):
        train(config, tmp_path / "two")


def test_sigterm_ends_both_with_a_checkpoint(tmp_path: Path, data: DataConfig) -> None:
    config = tiny_config(steps=100_000, data=data)
    with two_processes(config, tmp_path / "run") as process:
        wait_for_steps(process, tmp_path / "run", 2)
        assert len(named(tmp_path)) >= 3
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert "Stopped at step" in output
    _, progress = read_state(tmp_path / "run" / "checkpoint.safetensors")
    assert 2 <= progress.step < 100_000
    assert len(read_curve(tmp_path / "run" / "curve.csv")) == progress.step
    assert named(tmp_path) == []
