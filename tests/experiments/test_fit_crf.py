from __future__ import annotations

import itertools
import json
import math
import os
import tomllib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hamflow import crf
from hamflow.cli.main import main
from hamflow.crf import CrfConfig, FitPoint, FitResult, FitStep, fit, fit_points
from hamflow.crf.fit_case import FitCase
from hamflow.crf.fit_points import PARAMETERS
from hamflow.datasets import FolderDataset, demo_scene
from hamflow.descriptors import pair_bits
from hamflow.errors import FileError, InputError
from hamflow.evaluation import epe_metrics
from hamflow.io import write_flow, write_image
from hamflow.matching import local_flow

QUICK: dict[str, Any] = {"window": 20, "scale": 1, "budget": 8}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pairs")
    for seed, name in enumerate(("group/one", "group/two", "three")):
        scene = demo_scene(72, 96, seed)
        folder = root / name
        folder.mkdir(parents=True)
        write_image(folder / "frame1.png", scene.image0)
        write_image(folder / "frame2.png", scene.image1)
        write_flow(folder / "flow.flo", scene.flow)
    return root


@pytest.fixture(scope="module")
def pairs(root: Path) -> FolderDataset:
    return FolderDataset(root).subset("group")


@pytest.fixture(scope="module")
def fitted(pairs: FolderDataset) -> FitResult:
    return fit(pairs, **QUICK)


def values(point: FitPoint) -> dict[str, float]:
    return {name: getattr(point.config, name) for name in PARAMETERS}


def without_seconds(point: FitPoint) -> FitPoint:
    return replace(point, seconds=0.0)


def same(first: FitResult, second: FitResult) -> bool:
    """Whether two results agree in all but the times."""
    a, b = ([without_seconds(p) for p in (*r.points, r.best, r.wta)] for r in (first, second))
    return a == b and first.ended == second.ended


def one_pair(**changes: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"name": "it", **vars(demo_scene(40, 48)), **changes})


def bowl(monkeypatch: pytest.MonkeyPatch, **optimum: float) -> list[CrfConfig]:
    """Replace the errors by a function with a known minimum; return the points as they come."""
    asked: list[CrfConfig] = []

    def solved(config: CrfConfig, **_: Any) -> SimpleNamespace:
        asked.append(config)
        return SimpleNamespace(flow=config)

    def errors(self: FitCase, flow: Any, cap: float) -> tuple[float, float]:
        if not isinstance(flow, CrfConfig):
            return 10.0, 10.0
        away = 0.0
        for name, best in optimum.items():
            value = getattr(flow, name)
            if name == "c_outside":
                away += abs(value - best) / 16
            else:
                away += abs(math.log2((value + 1e-9) / best))
        return 1 + away, 1 + away

    monkeypatch.setattr(fit_points, "solve", solved)
    monkeypatch.setattr(FitCase, "errors", errors)
    return asked


# --- the fit -------------------------------------------------------------------------------------


def test_starts_with_the_paper_and_never_gets_worse(fitted: FitResult) -> None:
    assert asdict(fitted.start.config) == asdict(CrfConfig(outer=2, inner=2))
    assert fitted.points[0] is fitted.start
    assert fitted.best in fitted.points
    # On these scenes there is something to gain.
    assert fitted.best.objective < fitted.start.objective < fitted.wta.objective
    assert fitted.wta.objective == pytest.approx(1)
    assert fitted.best.objective <= 1.001 * min(point.objective for point in fitted.points)


def test_table_is_complete(fitted: FitResult) -> None:
    assert fitted.names == ("group/one", "group/two")
    assert fitted.ended == "budget"
    assert len(fitted.points) == QUICK["budget"]
    assert len({tuple(values(point).values()) for point in fitted.points}) == QUICK["budget"]
    for point in (*fitted.points, fitted.wta):
        assert len(point.epe) == len(point.capped) == 2
        assert all(0 < capped <= epe for epe, capped in zip(point.epe, point.capped, strict=True))
        assert point.seconds > 0


def test_errors_are_those_of_the_solver(fitted: FitResult, pairs: FolderDataset) -> None:
    for place, pair in enumerate(pairs):
        flow = crf.solve(
            bits0=pair_bits(pair.image0),
            bits1=pair_bits(pair.image1),
            image=pair.image0,
            window=20,
            config=fitted.best.config,
        ).flow
        assert fitted.best.epe[place] == pytest.approx(epe_metrics(flow, pair.flow).epe_all)
        flow = local_flow(pair.image0, pair.image1, 20)
        assert fitted.wta.epe[place] == pytest.approx(epe_metrics(flow, pair.flow).epe_all)


def test_deterministic(fitted: FitResult, pairs: FolderDataset) -> None:
    assert same(fit(pairs, **QUICK), fitted)


def test_defaults_stay_the_papers() -> None:
    assert values(SimpleNamespace(config=CrfConfig())) == {  # type: ignore[arg-type]
        "tau1": 0.25,
        "tau2": 25.0,
        "delta": 2.0,
        "c_outside": 0.0,
        "alpha": 8.5,
    }


@pytest.mark.parametrize("objective", ["relative", "capped", "epe"])
def test_objectives(objective: Any) -> None:
    pairs = [one_pair(), one_pair(**vars(demo_scene(40, 48, 1)))]
    result = fit(pairs, window=12, scale=1, budget=2, cap=0.8, objective=objective)
    for point in result.points:
        ratios = np.array(point.capped) / result.wta.capped
        expected = {
            "relative": np.sqrt(ratios[0] * ratios[1]),
            "capped": np.mean(point.capped),
            "epe": np.mean(point.epe),
        }
        assert point.objective == pytest.approx(expected[objective], rel=0.01)
        assert max(point.capped) <= 0.8 < max(result.wta.epe)


def test_finds_a_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    optimum = {"tau1": 4.0, "tau2": 100.0, "delta": 4.0, "c_outside": -24.0, "alpha": 4.25}
    asked = bowl(monkeypatch, **optimum)
    result = fit([one_pair()], budget=200)
    assert result.ended == "converged"
    assert values(result.best) == optimum
    assert len(asked) == len(result.points) == len(set(asked)) < 80


def test_from_zero_and_from_odd_values(monkeypatch: pytest.MonkeyPatch) -> None:
    bowl(monkeypatch, tau1=1.0, tau2=8.0, delta=5.0, alpha=2.0)
    start = CrfConfig(tau1=0, tau2=0, delta=5, alpha=0)
    result = fit([one_pair()], start, budget=300)
    # Nearest to that: along a diagonal of tau2 >= tau1, no step may leave the model.
    assert all(point.config.tau1 <= point.config.tau2 for point in result.points)
    assert values(result.best) == {
        "tau1": 1.0,
        "tau2": 8.0,
        "delta": 5.0,
        "c_outside": 0.0,
        "alpha": 2.0,
    }


def test_fits_only_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    bowl(monkeypatch, tau1=4.0, tau2=100.0, alpha=1.0)
    result = fit([one_pair()], parameters=("tau2",))
    assert {**values(result.best), "tau2": 25.0} == values(result.start)
    assert result.best.config.tau2 == 100


def test_what_hardly_matters_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gain of less than 0.1 % is no reason to leave the paper's values."""
    bowl(monkeypatch)
    result = fit([one_pair()])
    assert result.ended == "converged"
    assert result.best is result.start


def test_callback(pairs: FolderDataset) -> None:
    steps: list[FitStep] = []
    result = fit(pairs, **{**QUICK, "budget": 3}, callback=steps.append)
    assert [(step.points, step.pairs) for step in steps] == list(
        itertools.product(range(3), range(2))
    )
    assert steps[0].best is None
    assert steps[2].best is result.start


# --- scale and truth -----------------------------------------------------------------------------


def test_scale() -> None:
    """Errors are in pixels of full resolution; incomplete boxes do not count."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (30, 40, 3), np.uint8)
    image0, image1 = (
        np.repeat(np.repeat(image, 3, axis=0), 3, axis=1)
        for image in (small, np.roll(small, 2, axis=1))
    )
    flow = np.full((92, 121, 2), (6.0, 0.0), np.float32)
    flow[:, 114:] = np.nan  # leaves the frame
    flow[90:], flow[:, 120:] = 1e3, 1e3
    flow[0, 0] = 6, 4
    pad = ((0, 2), (0, 1), (0, 0))
    pair = one_pair(image0=np.pad(image0, pad), image1=np.pad(image1, pad), flow=flow)
    case = FitCase.of(pair, 3)
    assert (case.image == small).all()
    assert (case.bits0 == pair_bits(small)).all()
    right = np.full((30, 40, 2), (2.0, 0.0), np.float32)
    pixels = 90 * 114
    assert case.errors(right, 20) == pytest.approx((4 / pixels, 4 / pixels))
    assert case.errors(right, 1) == pytest.approx((4 / pixels, 1 / pixels))
    off = right + np.float32([0, -1])
    assert case.errors(off, 1e9)[0] == pytest.approx(3 + 4 / pixels)
    assert fit([pair], window=8, scale=3, budget=1).best.epe[0] < 0.5


@pytest.mark.parametrize("kind", ["gray", "uint16", "float"])
def test_other_images(kind: str) -> None:
    scene = demo_scene(40, 48)
    images = [scene.image0, scene.image1]
    if kind == "gray":
        images = [image[..., 0] for image in images]
    elif kind == "uint16":
        images = [image.astype(np.uint16) * 257 for image in images]  # type: ignore[misc]
    else:
        images = [image.astype(np.float32) / 255 for image in images]  # type: ignore[misc]
    case = FitCase.of(one_pair(image0=images[0], image1=images[1]), 2)
    assert case.image.dtype == images[0].dtype
    assert case.image.shape == (20, 24, *images[0].shape[2:])
    assert case.bits0.shape == (20, 24)


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
    """The errors of the points are good for that, too."""
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
    with pytest.raises(FileError, match="no point of this fit"):
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


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 0}, "budget must be at least 1"),
        ({"budget": 2.5}, "budget must be a whole number"),
        ({"scale": 0}, "scale must be at least 1"),
        ({"scale": 73}, "scale = 73 leaves nothing of the pair 'group/one', which has 96×72"),
        ({"cap": 0.0}, "cap must be a positive"),
        ({"cap": math.inf}, "cap must be finite"),
        ({"window": 3}, "even"),
        ({"objective": "best"}, "objective must be one of"),
        ({"parameters": ()}, "parameters must be some of"),
        ({"parameters": ("tau3",)}, "not 'tau3'"),
        ({"resume": True}, "resume needs a log"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], message: str, pairs: FolderDataset) -> None:
    with pytest.raises(InputError, match=message) as error:
        fit(pairs, **{**QUICK, **changes})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flow": np.full((40, 48, 2), np.nan)}, "no pixel of known flow"),
        ({"flow": np.zeros((40, 47, 2))}, "differ in size"),
        ({"flow": np.zeros((40, 48))}, "shape"),
        ({"image1": np.zeros((40, 49, 3), np.uint8)}, "differ in size"),
    ],
)
def test_bad_pairs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit([one_pair(**changes)], **QUICK)


def test_no_pairs() -> None:
    with pytest.raises(InputError, match="at least one"):
        fit([], **QUICK)


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
    assert "--resume with a larger one" in capsys.readouterr().out
    assert main(command(root, "-o", file, "--budget", QUICK["budget"], "--resume")) == 0
    assert sorted(os.listdir(tmp_path)) == ["fitted.jsonl", "fitted.toml"]
    # Exactly what the library finds, and ready to be a config's arguments.
    read = CrfConfig(**tomllib.loads(file.read_text()), outer=2, inner=2)
    assert read == fitted.best.config
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


def test_round_trip(fitted: FitResult) -> None:
    start = CrfConfig(alpha=1e-7, tau1=1 / 3, tau2=1e5, delta=1e22, c_outside=-8)
    point = replace(fitted.best, config=start)
    assert CrfConfig(**tomllib.loads(replace(fitted, best=point).toml())) == start


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
    assert printed.err == "hamflow: Interrupted.\n"
    assert "--resume continues" in printed.out
    assert set(tomllib.loads(file.read_text())) == set(PARAMETERS)
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
    assert "gone: is not a folder" in fails("fit-crf", "gone")
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
    assert "usage: hamflow fit-crf" in words
    assert "must not be reported on the same pairs" in words
    assert "paper's values stay the defaults" in words
