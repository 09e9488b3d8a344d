"""The benchmark of training at a small size: that it measures, not how fast it is."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import hamflow  # noqa: E402
from _learning import hidden_extras, no_extras, one_thread  # noqa: E402, F401
from experiments.bench import training  # noqa: E402
from experiments.cli.app import main  # noqa: E402
from hamflow import InputError  # noqa: E402

SIZE = ["--size", "48", "--layers", "3", "--d", "16", "--rounds", "1", "--steps", "2"]
PARTS = ("CNN", "matching", "loss")


@pytest.mark.slow
@pytest.mark.usefixtures("hidden_extras")
def test_bench_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "FULL_SIZE", (64, 96))
    file = tmp_path / "b.json"
    threads = hamflow.get_num_threads()
    assert main(["bench", "training", *SIZE, "--memory", "--json", str(file)]) == 0
    assert hamflow.get_num_threads() == threads
    report = json.loads(file.read_text())
    assert (report["width"], report["height"], report["d"]) == (48, 48, 16)
    assert (report["layers"], report["model"]) == (3, "fq")
    assert report["machine"]["torch"] == torch.__version__
    times = report["seconds"]
    names = {f"{part} {way}" for part in PARTS for way in ("forward", "backward")}
    assert set(times) == names | {"optimizer", "rendering a scene"}
    assert all(time > 0 for time in times.values())
    ratio = (times["matching forward"] + times["matching backward"]) / (
        times["CNN forward"] + times["CNN backward"]
    )
    assert math.isclose(report["ratios"]["matching / CNN"], ratio)
    loop = report["loop"]
    assert (loop["steps"], loop["workers"]) == (2, 1)
    assert math.isclose(loop["steps per second"], 1 / loop["seconds per step"])
    assert 0 <= loop["seconds waited per step"] <= loop["longest wait"]
    assert (report["memory"]["width"], report["memory"]["height"]) == (96, 64)
    if sys.platform == "linux":
        assert report["memory"]["peak bytes"] > report["memory"]["peak bytes before"] > 1e7
    printed = capsys.readouterr().out
    for words in ("matching / CNN", "steps per second", "96×64"):
        assert words in printed


def test_memory_is_measured_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_looped", lambda *_: {"seconds per step": 1.0, **WAITED})
    monkeypatch.setattr(training, "_memory", lambda *_: {})
    for rounds, memory, model in ((1, True, "ff"), (2, False, "qq")):
        config = training.bench_config(3, (48, 48), 16, model)  # type: ignore[arg-type]
        report = training.run(config, rounds, 1, memory=memory)
        assert ("memory" in report) == memory
        assert report["model"] == model


WAITED = {"seconds waited per step": 0.0}


def test_a_failure_of_the_measuring_process_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    config = training.bench_config(3, (48, 48), 16, "fq")
    for code, errors, words in ((1, "Traceback\nMemoryError: no room", "no room"), (-9, "", "-9")):
        done = subprocess.CompletedProcess([], code, "", errors)
        monkeypatch.setattr(subprocess, "run", lambda *_, done=done, **__: done)
        with pytest.raises(InputError, match=rf"measures the memory failed \(.*{words}\)"):
            training._memory(config)


def test_wrong_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for options, words in (
        (["--d", "12"], "multiple of 8"),
        (["--rounds", "0"], "positive"),
        (["--steps", "0"], "positive"),
        (["--size", "8"], "height must be a whole number from 32"),
        (["--layers", "4"], "layers must be odd"),
        (["--json", str(tmp_path / "missing" / "b.json")], "missing"),
    ):
        assert main(["bench", "training", *options]) == 1
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


def test_without_torch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "experiments.bench.training")
    monkeypatch.delattr("experiments.bench.training")
    assert main(["bench", "training"]) == 1
    assert "pip install 'hamflow[train]'" in capsys.readouterr().err
