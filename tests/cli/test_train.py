"""``hamflow train`` as a user meets it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from _learning import (  # noqa: E402
    PATIENCE,
    hidden_extras,  # noqa: F401
    no_extras,  # noqa: F401
    one_thread,  # noqa: F401
    wait_for_steps,
    wait_until_alone,
    write_pairs,
)
from _problems import started_python  # noqa: E402
from hamflow import read_flow, write_flow  # noqa: E402
from hamflow.cli import train as cli  # noqa: E402
from hamflow.cli.main import main  # noqa: E402
from hamflow.errors import FileError  # noqa: E402
from hamflow.learning import loop  # noqa: E402
from hamflow.learning.config import DataConfig, TrainConfig  # noqa: E402
from hamflow.learning.log import read_curve  # noqa: E402
from hamflow.learning.state import TrainingState, read_state  # noqa: E402

TINY = """
window = 16
steps = 3
warmup = 2
validation_pairs = 0
workers = 0
threads = 1

[network]
layers = 3
channels = 8

[data.synthetic]
height = 48
width = 48
max_displacement = 6
max_layers = 2
clean = true
"""


COMMAND = ("train",)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    return file


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TrainConfig, Path, bool]]:
    """Runs that were asked for, none of which takes place."""
    asked: list[tuple[TrainConfig, Path, bool]] = []

    def train(
        config: TrainConfig, output: Path, *, overwrite: bool, callback: Any
    ) -> TrainingState:
        asked.append((config, output, overwrite))
        return TrainingState(step=config.steps)

    monkeypatch.setattr(loop, "train", train)
    return asked


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["train", "--help"])
    assert exit_info.value.code == 0
    printed = capsys.readouterr().out
    for words in (
        "usage: hamflow train",
        "--config",
        "--overwrite",
        "--data ",
        "--subset",
        "--model {ff,fq,qq}",
        "--window INT",
        "--network.layers",
        "--data.synthetic.height",
        "--augment.no-mirror",
        "(default: 4000)",
        "torchrun --nproc-per-node 2 -m hamflow train",
    ):
        assert words in printed
    assert "--validation.root" not in printed  # in the file only


def test_defaults(chosen: list[Any], tmp_path: Path) -> None:
    assert main(["train", "-o", str(tmp_path / "run")]) == 0
    assert chosen == [(TrainConfig(), tmp_path / "run", False)]


def test_file_and_flags(chosen: list[Any], tiny: Path, tmp_path: Path) -> None:
    tiny.write_text(TINY + "\n[validation]\nreduce = 2\n")
    output = str(tmp_path / "run")
    assert main(["train", "--config", str(tiny), "-o", output]) == 0
    # Flags count before the file, wherever they stand; what is in neither has its default.
    flags = ["--steps", "9", "--network.layers", "5", "--data.synthetic.no-clean"]
    assert main(["train", "--output", output, *flags, f"--config={tiny}"]) == 0
    (first, *_), (second, *_) = chosen
    assert (first.steps, first.network.layers, first.data.synthetic.clean) == (3, 3, True)
    assert (second.steps, second.network.layers, second.data.synthetic.clean) == (9, 5, False)
    for config in (first, second):
        assert (config.window, config.network.channels, config.model) == (16, 8, "fq")
        assert config.data.synthetic.width == 48
        assert config.validation == DataConfig(reduce=2)


def test_the_last_file_counts(chosen: list[Any], tiny: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("steps = 77")
    assert main(["train", "-o", "x", "--config", str(tiny), "--config", str(other)]) == 0
    assert chosen[0][0] == TrainConfig(steps=77)


def test_data_and_subset(chosen: list[Any], tmp_path: Path) -> None:
    command = ["train", "-o", "x", "--data", "folder", str(tmp_path), "--subset", "0.2"]
    assert main([*command, "--data.crop", "64", "96"]) == 0
    assert main([*command[:6], "--data.crop", "None"]) == 0
    assert main(["train", "-o", "x", "--data", "synthetic", str(tmp_path)]) == 0
    expected = [
        DataConfig(dataset="folder", root=tmp_path, subset=0.2, crop=(64, 96)),
        DataConfig(dataset="folder", root=tmp_path, crop=None),
        DataConfig(root=tmp_path),
    ]
    assert [config.data for config, *_ in chosen] == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps = ", "is not TOML"),
        ("step = 3", "step is unknown"),
        ("[network]\nwidth = 3", "network.width is unknown"),
        ("steps = 'x'", "steps must be of type int"),
        ("steps = 0", "steps must be a whole number of at least 1"),
    ],
)
def test_a_wrong_file(text: str, words: str, tmp_path: Path, fails: Callable[..., str]) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text)
    error = fails("-o", tmp_path / "run", "--config", file)
    assert words in error
    assert str(file) in error
    assert not (tmp_path / "run").exists()


def test_wrong_flags(tmp_path: Path, fails: Callable[..., str]) -> None:
    output = str(tmp_path / "run")
    for options, words in (
        (["--config", str(tmp_path / "missing.toml")], "does not exist"),
        (["--steps", "0"], "steps must be a whole number of at least 1"),
        (["--subset", "2"], "subset must be a number above 0"),
        (["--network.m", "32"], "fq needs descriptors of m = 64"),
        (["--data", "folder", str(tmp_path / "missing")], "does not exist"),
        (["--start", str(tmp_path / "missing.safetensors")], "missing.safetensors"),
    ):
        assert words in fails("-o", output, *options)
    # Other commands do not care for the file that this one names.
    with pytest.raises(SystemExit) as exit_info:
        main(["doctor", "--config", str(tmp_path / "missing.toml")])
    assert exit_info.value.code == 2


def test_a_run(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], fails: Callable[..., str]
) -> None:
    output = tmp_path / "run"
    options = ["--validation-pairs", "1", "--validate-every", "2"]
    assert main(["train", "-o", str(output), "--config", str(tiny), *options]) == 0
    printed = capsys.readouterr().out
    assert "step 1: loss" in printed
    assert "constant bits" in printed
    assert "winner takes all" in printed
    assert f"px, in {output / 'best.safetensors'}" in printed
    assert len(read_curve(output / "curve.csv")) == 3
    log = (output / "run.jsonl").read_bytes()
    assert len(log.splitlines()) == 4
    # Nothing is left to do.
    assert main(["train", "-o", str(output), "--config", str(tiny)]) == 0
    assert (output / "run.jsonl").read_bytes() == log
    message = fails("-o", output, "--config", tiny, "--window", 32)
    assert "run.jsonl: holds results of other settings (window was 16" in message
    assert "(seed was 0, not 3)" in fails("-o", output, "--config", tiny, "--seed", 3)
    again = ["--config", str(tiny), "--seed", "3", "--steps", "2", "--overwrite"]
    assert main(["train", "-o", str(output), *again]) == 0
    assert len(read_curve(output / "curve.csv")) == 2
    assert not (output / "best.safetensors").exists()


def test_from_pairs_on_the_disk(tiny: Path, tmp_path: Path) -> None:
    root = write_pairs(tmp_path / "data", count=5)
    options = ["--data", "folder", str(root), "--subset", "0.4", "--data.crop", "32", "32"]
    output = tmp_path / "run"
    assert main(["train", "-o", str(output), "--config", str(tiny), *options]) == 0
    config, progress = read_state(output / "checkpoint.safetensors")
    assert (config.data.subset, config.data.root, progress.step) == (0.4, root, 3)


def test_no_pixel_to_validate_on(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_pairs(tmp_path / "data", count=1)
    for file in root.rglob("flow.flo"):
        write_flow(file, np.full_like(read_flow(file), 20))  # the window ends at 8
    table = f'\n[validation]\ndataset = "folder"\nroot = "{root.as_posix()}"\n'
    tiny.write_text(tiny.read_text() + table)
    output = tmp_path / "run"
    options = ["--validation-pairs", "1", "--steps", "1"]
    assert main(["train", "-o", str(output), "--config", str(tiny), *options]) == 0
    printed = capsys.readouterr().out
    assert cli.NOTHING_COUNTED in printed
    assert "nan" not in printed
    assert not (output / "best.safetensors").exists()


@pytest.mark.usefixtures("interruptible")
def test_stopped_and_continued_with_the_settings_it_had(
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fails: Callable[..., str],
) -> None:
    output = tmp_path / "run"
    with monkeypatch.context() as patch:
        shown = cli._Shown.__call__

        def stopping(self: Any, step: Any) -> None:
            shown(self, step)
            signal.raise_signal(signal.SIGINT)

        patch.setattr(cli._Shown, "__call__", stopping)
        assert main(["train", "-o", str(output), "--config", str(tiny)]) == 130
    captured = capsys.readouterr()
    assert "Stopped at step 1; the same command continues." in captured.out
    assert captured.err == "hamflow: Interrupted.\n"
    assert "(window was 16, not 32)" in fails("-o", output, "--window", 32)
    # No file and no flag: the log knows.
    assert main(["train", f"--output={output}"]) == 0
    numbers = [row["number"] for row in read_curve(output / "curve.csv")]
    assert numbers == ["1", "2", "3"]


@pytest.mark.usefixtures("hidden_extras", "interruptible")
@pytest.mark.skipif(sys.platform != "linux", reason="needs sessions as Linux has them")
def test_stopped_from_outside(tmp_path: Path, tiny: Path) -> None:
    output = tmp_path / "run"
    checkpoint = output / "checkpoint.safetensors"
    # As Ctrl-C in a terminal does, the signal reaches all: the worker, too, for which the command
    # may be waiting.
    root = write_pairs(tmp_path / "data", count=2, size=(32, 32))
    options = ["--config", str(tiny), "--workers", "1", "--steps", "100000"]
    options += ["--data", "folder", str(root)]
    with started_python("-m", "hamflow", "train", "-o", str(output), *options) as process:
        wait_for_steps(process, output, 1)
        os.killpg(process.pid, signal.SIGINT)
        printed, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, error
    assert error == "hamflow: Interrupted.\n"
    assert "the same command continues" in printed
    config, progress = read_state(checkpoint)
    assert 1 <= progress.step < 100_000
    curve = output / "curve.csv"
    assert len(read_curve(curve)) == progress.step
    assert wait_until_alone(process.pid) == []

    # Killed, it cannot end its worker; the worker ends by itself.
    with started_python("-m", "hamflow", "train", "-o", str(output)) as process:
        wait_for_steps(process, output, progress.step + 2)
        with pytest.raises(FileError, match=f"in use by another run \\(process {process.pid} on "):
            loop.train(config, output)
        process.kill()
        process.communicate()
    assert wait_until_alone(process.pid) == []

    # All the same it goes on from the checkpoint.
    def stop(_: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    again = loop.train(replace(config, workers=0), output, callback=stop)
    assert again.step == progress.step + 1
    numbers = [int(row["number"]) for row in read_curve(curve)]
    assert numbers == list(range(1, again.step + 1))


def test_only_one_process_speaks(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert main(["train", "-o", str(tmp_path / "run"), "--config", str(tiny)]) == 0
    assert capsys.readouterr().out == ""


def test_without_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str]
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("loop", "checkpoint", "network"):
        monkeypatch.delitem(sys.modules, f"hamflow.learning.{name}", raising=False)
    sentence = "Training needs torch; install it with: pip install 'hamflow[train]'."
    assert sentence in fails("-o", tmp_path / "run")
    assert not (tmp_path / "run").exists()
