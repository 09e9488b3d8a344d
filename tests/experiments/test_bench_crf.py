"""The benchmark of the joint model at a small size: that it measures, not how fast it is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import hamflow
from _trees import save_pair
from experiments.bench import crf as bench
from experiments.cli.app import main
from hamflow.crf import CrfConfig
from hamflow.crf.dual import PlaneDual
from hamflow.datasets import demo_scene

SIZE = ["--width", "96", "--height", "64", "--d", "16", "--rounds", "1"]


@pytest.fixture(autouse=True)
def _small_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes a gigabyte and a compiler."""
    monkeypatch.setattr(bench, "copy_bandwidth", lambda size: 1e9 + size)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with one of the real pairs' names, of another size than the benchmark."""
    save_pair(tmp_path / "data" / bench.REAL_PAIRS[1], demo_scene(72, 80))
    return tmp_path / "data"


def positive(figures: dict[str, Any]) -> bool:
    return all(figure > 0 for figure in figures.values())


def test_bench_crf(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, plot = tmp_path / "b.json", tmp_path / "b.svg"
    options = ["--data", str(data), "--json", str(file), "--plot", str(plot), "--full"]
    assert main(["bench", "crf", *SIZE, *options]) == 0
    report = json.loads(file.read_text())
    assert (report["width"], report["height"], report["d"]) == (96, 64, 16)
    assert report["machine"]["level"] == hamflow.get_isa()
    assert positive(report["seconds"])
    assert report["copy bytes per second"] == max(report["each copy bytes per second"]) > 0

    assert list(report["default schedule"]) == [bench.REAL_PAIRS[1], bench.RENDERED]
    real = report["default schedule"][bench.REAL_PAIRS[1]]
    assert (real["width"], real["height"]) == (80, 72)
    paper = report["paper schedule"]
    assert (paper["iterations"], len(paper["history"])) == (5, 5)
    inner = report["inner"]
    assert list(inner) == ["1", "2", "4", "8"]
    for outcome in (paper, *report["default schedule"].values(), *inner.values()):
        assert outcome["bound"] <= outcome["energy"]
        assert outcome["gap"] == (outcome["energy"] - outcome["bound"]) / -outcome["bound"]
        assert outcome["epe"] > 0
    for outcome in (paper, *report["default schedule"].values()):
        assert outcome["times QQ"] > 0
    assert real["epe of WTA"] > 0

    kinds = {f"{kind} {way}" for kind in ("int16", "float32") for way in ("horizontal", "vertical")}
    assert set(report["passes"]) == kinds | {f"{kind}, final" for kind in kinds}
    for entry in report["passes"].values():
        assert positive(entry)
    floats = report["F against Q"]
    assert set(floats) == {"Q, 1×8", "F, 1×8", "F, 5×8", "ratio 1×8", "ratio 5×8"}
    assert list(report["extra bytes"]) == ["4", "8", "16", "32"]
    assert {"1 thread", "2 threads", "half the rows", "D = 8"} <= set(report["one outer iteration"])

    assert report["convergence"]["scene"] == bench.RENDERED
    assert len(report["convergence"]["history"]) == 8
    assert plot.read_text().startswith("<?xml")
    printed = capsys.readouterr().out
    for words in ("Titan X", "cave_2_0002", "F / Q time, 5×8", str(file)):
        assert words in printed.replace("\n", "") or words in printed


def test_what_is_left_out_unless_asked_for() -> None:
    report = bench.run(64, 64, 8, 1)
    assert "convergence" not in report
    assert "ratio 5×8" not in report["F against Q"]


def test_parts_make_up_the_total() -> None:
    scene = demo_scene(64, 64)
    case = bench.Case.of("scene", scene.image0, scene.image1, scene.flow)
    original = PlaneDual.run_pass
    result, parts = bench._timed(lambda: case.solve(16, CrfConfig(outer=2)))
    assert PlaneDual.run_pass is original
    assert result.bound <= result.energy
    total = parts.pop("total")
    assert math.isclose(sum(parts.values()), total)
    assert positive(parts)


def test_methods_and_threads_are_put_back_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = demo_scene(64, 64)
    case = bench.Case.of("scene", scene.image0, scene.image1, scene.flow)
    original, threads = PlaneDual.run_pass, hamflow.get_num_threads()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench.Case, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bench._one_outer(case, 16, 1, lambda step: None)
    assert PlaneDual.run_pass is original
    assert hamflow.get_num_threads() == threads


def test_outputs_are_checked_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "run", lambda *_, **__: pytest.fail("too late"))
    missing = tmp_path / "missing"
    for options, words in (
        (["--json", str(missing / "b.json")], str(missing)),
        (["--plot", str(missing / "b.png")], str(missing)),
        (["--plot", str(tmp_path / "b.gif")], "suffix"),
        (["--data", str(missing)], str(missing)),
        (["--d", "12"], "multiple of 8"),
        (["--rounds", "0"], "positive"),
        (["--width", "63"], "at least 64"),
    ):
        assert main(["bench", "crf", *options]) == 1
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


def test_data_without_the_pairs(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The folder itself, not the one that holds it.
    assert main(["bench", "crf", *SIZE, "--data", str(data / "sintel-clean")]) == 1
    assert "none of sintel-clean/market_5_0002" in capsys.readouterr().err
