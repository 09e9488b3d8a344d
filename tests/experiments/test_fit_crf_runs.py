"""The log of a fit, how it is resumed, and its command."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from _fits import QUICK, bowl, same, values
from experiments.cli.app import main
from experiments.fit_crf import points as fit_points
from experiments.fit_crf.fitting import FitResult, fit
from experiments.fit_crf.points import PARAMETERS, FitStep
from hamflow._tables import tomllib
from hamflow.config import preset_config
from hamflow.crf import CrfConfig
from hamflow.datasets.folder import FolderDataset
from hamflow.errors import FileError

# --- the log -------------------------------------------------------------------------------------


def test_resume(fitted: FitResult, pairs: FolderDataset, tmp_path: Path) -> None:
    log = tmp_path / "fit.jsonl"
    fit(pairs, **{**QUICK, "budget": 4}, log=log)
    assert len(log.read_text().splitlines()) == 1 + 4
    steps: list[FitStep] = []
    result = fit(pairs, **QUICK, log=log, resume=True, callback=steps.append)
    assert same(result, fitted)
    # Nothing is evaluated twice.
    assert steps[0].points == 4
    assert len(steps) == 2 * (QUICK["budget"] - 4)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [{name: line[name] for name in PARAMETERS} for line in lines[1:]] == [
        values(point) for point in result.points
    ]
    assert [tuple(line["epe"]) for line in lines[1:]] == [point.epe for point in result.points]
    # And all of it again, from the file alone.
    before = log.read_bytes()
    assert same(fit(pairs, **QUICK, log=log, resume=True, callback=pytest.fail), result)
    assert log.read_bytes() == before


def test_resume_after_a_crash(fitted: FitResult, pairs: FolderDataset, tmp_path: Path) -> None:
    log = tmp_path / "fit.jsonl"
    fit(pairs, **{**QUICK, "budget": 3}, log=log)
    log.write_bytes(log.read_bytes()[:-20])
    steps: list[FitStep] = []
    assert same(fit(pairs, **QUICK, log=log, resume=True, callback=steps.append), fitted)
    assert steps[0].points == 2
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(lines) == 1 + QUICK["budget"]


def test_resume_with_another_objective(pairs: FolderDataset, tmp_path: Path) -> None:
    """The errors in the log are enough for another objective, too."""
    log = tmp_path / "fit.jsonl"
    fit(pairs, **{**QUICK, "budget": 2}, log=log)
    again = {**QUICK, "budget": 2, "objective": "epe"}
    result = fit(pairs, **again, log=log, resume=True, callback=pytest.fail)
    assert same(result, fit(pairs, **again))


def test_resume_without_a_file(pairs: FolderDataset, tmp_path: Path) -> None:
    log = tmp_path / "fit.jsonl"
    assert len(fit(pairs, **{**QUICK, "budget": 1}, log=log, resume=True).points) == 1
    assert log.exists()


def test_log_is_not_overwritten(pairs: FolderDataset, tmp_path: Path) -> None:
    log = tmp_path / "fit.jsonl"
    fit(pairs, **{**QUICK, "budget": 1}, log=log)
    before = log.read_bytes()
    with pytest.raises(FileError, match="earlier fit"):
        fit(pairs, **QUICK, log=log)
    assert log.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"window": 18}, r"\(window was"),
        ({"scale": 2}, r"\(pairs was .*, scale was"),
        ({"cap": 10.0}, r"\(cap was 100\.0, not 10\.0\)"),
        ({"start": CrfConfig(outer=1)}, r"\(solver\.inner was"),
    ],
)
def test_log_of_another_fit(
    changes: dict[str, Any], what: str, pairs: FolderDataset, tmp_path: Path
) -> None:
    log = tmp_path / "fit.jsonl"
    fit(pairs, **{**QUICK, "budget": 1}, log=log)
    before = log.read_bytes()
    with pytest.raises(FileError, match=what):
        fit(pairs, **{**QUICK, **changes}, log=log, resume=True)
    with pytest.raises(FileError, match=r"\(pairs was"):
        fit(pairs[:1], **QUICK, log=log, resume=True)
    assert log.read_bytes() == before


@pytest.mark.parametrize("text", ["no JSON\n", "[1]\n", "precious", "\xff\n", '{"pairs": 1}\n3\n'])
def test_file_that_is_no_log(text: str, pairs: FolderDataset, tmp_path: Path) -> None:
    log = tmp_path / "notes.txt"
    log.write_bytes(text.encode("latin-1"))
    for resume in (False, True):
        with pytest.raises(FileError, match=r"notes\.txt: "):
            fit(pairs, **QUICK, log=log, resume=resume)
    assert log.read_bytes() == text.encode("latin-1")


@pytest.mark.parametrize(
    "damage",
    [{"tau1": None}, {"epe": [1.0]}, {"capped": ["a", "b"]}, {"seconds": math.nan}, {"epe": 3}],
)
def test_damaged_line(damage: dict[str, Any], pairs: FolderDataset, tmp_path: Path) -> None:
    log = tmp_path / "fit.jsonl"
    fit(pairs, **{**QUICK, "budget": 1}, log=log)
    header, point = log.read_text().splitlines()
    log.write_text(f"{header}\n{json.dumps({**json.loads(point), **damage})}\n")
    with pytest.raises(FileError, match="not a point of this fit"):
        fit(pairs, **QUICK, log=log, resume=True)


def interrupt_at(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Press Ctrl-C within the solver's call of that number."""
    true, calls = fit_points.solve, itertools.count()

    def interrupted(**arguments: Any) -> Any:
        if next(calls) == call:
            raise KeyboardInterrupt
        return true(**arguments)

    monkeypatch.setattr(fit_points, "solve", interrupted)


def test_interrupt(
    fitted: FitResult, pairs: FolderDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "fit.jsonl"
    with monkeypatch.context() as patch:
        interrupt_at(patch, 7)
        result = fit(pairs, **QUICK, log=log)
    assert result.ended == "interrupted"
    assert len(result.points) == 3
    assert same(fit(pairs, **QUICK, log=log, resume=True), fitted)


def test_interrupt_before_the_first_point(
    pairs: FolderDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "fit.jsonl"
    interrupt_at(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        fit(pairs, **QUICK, log=log)
    assert not log.exists()


# --- the command ---------------------------------------------------------------------------------


def command(root: Path, *args: object) -> list[str]:
    size = ("--scale", 1, "--window", 20, "--only", "group")
    return [str(arg) for arg in ("fit-crf", root, *size, *args)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_command(
    root: Path, fitted: FitResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fitted.toml"
    assert main(command(root, "-o", file, "--budget", 4)) == 0
    assert "--resume with a larger --budget" in capsys.readouterr().out
    assert main(command(root, "-o", file, "--budget", QUICK["budget"], "--resume")) == 0
    assert sorted(os.listdir(tmp_path)) == ["fitted.jsonl", "fitted.toml"]
    # Exactly what `fit` finds; evaluate --crf-file and --preset can read it.
    assert CrfConfig(outer=2, inner=2).updated(file) == fitted.best.config
    matcher = preset_config(file).matcher
    assert all(getattr(matcher, n) == getattr(fitted.best.config, n) for n in PARAMETERS)
    assert len((tmp_path / "fitted.jsonl").read_text().splitlines()) == 1 + QUICK["budget"]
    printed = capsys.readouterr()
    assert printed.err == ""
    for words in ("group/one", "group/two", "paper", "fitted", f"{fitted.best.epe[1]:.3f}"):
        assert words in printed.out
    assert "three" not in printed.out


def test_progress(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes any file for a terminal
    bowl(monkeypatch, tau1=0.25)
    for budget in (2, 3):
        args = ["-o", tmp_path / "fitted.toml", "--budget", budget, "--resume"]
        assert main(command(root, *args)) == 0
        printed = capsys.readouterr().out
        assert f"point {budget}/{budget}, best 0.1" in printed
        assert f"all {budget} tries" in printed


def test_round_trip(fitted: FitResult, tmp_path: Path) -> None:
    start = CrfConfig(alpha=1e-7, tau1=1 / 3, tau2=1e5, delta=1e22, c_outside=-8)
    point = replace(fitted.best, config=start)
    file = tmp_path / "fitted.toml"
    file.write_text(replace(fitted, best=point).toml())
    assert CrfConfig().updated(file) == start


def test_command_interrupted(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, log = tmp_path / "fitted.toml", tmp_path / "tries"
    interrupt_at(monkeypatch, 5)
    assert main(command(root, "-o", file, "--json", log)) == 130
    printed = capsys.readouterr()
    assert printed.err == "python -m experiments: Interrupted.\n"
    assert "--resume continues" in printed.out
    assert set(tomllib.loads(file.read_text())["matcher"]) == set(PARAMETERS)
    assert len(log.read_text().splitlines()) == 1 + 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--budget", 0], "budget must be at least 1"),
        (["--scale", -1], "scale must be at least 1"),
        (["--cap", "nan"], "cap must be finite"),
        (["--outer", 0], "outer must be at least 1"),
        (["--window", "x"], "--window must be"),
        (["--only", "nothing"], "--only: "),
        (["--parameters"], "parameters must be some of"),
        (["--output", "missing/fitted.toml"], "missing"),
        (["--output", "."], "is a directory"),
        (["--json", "missing/tries"], "missing"),
        (["--json", "."], "is a directory"),
        (["--output", "same", "--json", "./same"], "same file"),
        (["--output", "same.jsonl"], "same file"),
    ],
)
def test_command_bad_options(
    args: list[object], message: str, root: Path, here: Path, fails: Callable[..., str]
) -> None:
    assert message in fails(*command(root, *args))
    assert os.listdir(here) == []


def test_command_on_what_is_no_dataset(here: Path, fails: Callable[..., str]) -> None:
    assert "gone: does not exist" in fails("fit-crf", "gone")
    (here / "empty").mkdir()
    assert "holds no image pairs" in fails("fit-crf", "empty")
    assert os.listdir(here) == ["empty"]


def test_command_does_not_overwrite_earlier_tries(
    root: Path, fails: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "fitted.jsonl").write_text('{"pairs": []}\n')
    assert "earlier fit" in fails(*command(root, "-o", tmp_path / "fitted.toml"))
    assert os.listdir(tmp_path) == ["fitted.jsonl"]


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["fit-crf", "--help"])
    assert exit_info.value.code == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "usage: python -m experiments fit-crf" in words
    assert "keep some pairs held out" in words
