"""``bench models`` on rendered pairs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from _trees import save_mask, save_pair
from experiments.bench.models import coherence, geometric_ratio
from experiments.cli.app import main
from hamflow.datasets import demo_scene


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pairs")
    for seed, hidden in ((0, True), (1, False)):
        scene = demo_scene(96, 128, seed)
        folder = save_pair(root / "demo" / f"scene{seed}", scene)
        if hidden:
            save_mask(folder / "occ.png", scene.occluded)
    return root


def test_command(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "models.json"
    words = ["bench", "models", str(root), "--models", "pairs", "--only", "demo"]
    assert main([*words, "--window", "32", "--json", str(output)]) == 0
    report = json.loads(output.read_text())
    assert report["pairs"] == ["demo/scene0", "demo/scene1"]
    assert report["models"] == ["pairs"]
    assert len(report["rows"]) == 2
    for method in report["methods"]:
        # Against itself; and only the first pair has known occlusions.
        assert report["ratios"]["pairs"][method] == {"all": 1.0, "noc": 1.0}
        assert report["rows"][1][method]["noc"] is None
        assert 0 < report["rows"][0][method]["noc"] < report["rows"][0][method]["all"] < 20
    # The joint model is better than the local one.
    for row in report["rows"]:
        assert row["crf_paper"]["all"] < row["wta"]["all"]
    shown = capsys.readouterr().out
    assert "WTA QQ" in shown
    assert "demo/scene1" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--models", "nonesuch"], "There is no model 'nonesuch'"),
        (["--only", "nonesuch"], "'nonesuch'"),
        (["--scale", "0"], "scale must be at least 1"),
    ],
)
def test_bad_input(
    root: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["bench", "models", str(root), "--models", "pairs", "--only", "demo"]
    assert main([*base, *words]) == 1
    assert said in capsys.readouterr().err


def test_ratio_is_the_geometric_mean() -> None:
    def row(pair: str, model: str, error: float | None) -> dict[str, object]:
        return {"pair": pair, "model": model, "wta": {"all": error}}

    rows = [row("a", "x", 1.0), row("a", "pairs", 2.0), row("b", "x", 8.0), row("b", "pairs", 4.0)]
    assert geometric_ratio(rows, "x", "wta", "all") == pytest.approx(1.0)
    rows = [*rows, row("c", "x", 1.0), row("c", "pairs", 8.0)]
    ratio = geometric_ratio(rows, "x", "wta", "all")
    assert ratio is not None
    assert math.isclose(ratio, 0.5)
    unknown = [row("a", "x", None), row("a", "pairs", None)]
    assert geometric_ratio(unknown, "x", "wta", "all") is None


def test_coherence() -> None:
    truth = np.zeros((4, 8, 2), np.float32)
    flow = truth.copy()
    flow[:2, :4] = 20  # 2×4 pixels that agree, but for the last column
    flow[3, 0] = 30, 0  # one alone
    found = coherence(flow, truth, None, 1)
    assert found == {"wrong": 9 / 32, "coherently_wrong": 6 / 32}
    hidden = np.zeros((4, 8), np.bool_)
    hidden[:2] = True
    assert coherence(flow, truth, hidden, 1) == {"wrong": 1 / 16, "coherently_wrong": 0.0}
    truth[3] = np.nan
    assert coherence(flow, truth, hidden, 1) == {"wrong": 0.0, "coherently_wrong": 0.0}
