"""``hamflow bench pair`` on a tiny tree, and OpenCV's methods."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import hamflow
from hamflow.bench import pair as bench
from hamflow.cli import bench_pair
from hamflow.cli.main import main
from hamflow.datasets import demo_scene
from hamflow.errors import InputError
from hamflow.evaluation import opencv_methods
from hamflow.flow import endpoint_error

QUICK = 'preset = "fast"\nmodel = "pairs"\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two groups with a pair each, one with known occlusions."""
    for group, seed in (("one", 0), ("two", 1)):
        scene = demo_scene(64, 96, seed)
        folder = tmp_path / "data" / group / "a"
        folder.mkdir(parents=True)
        hamflow.write_image(folder / "frame1.png", scene.image0)
        hamflow.write_image(folder / "frame2.png", scene.image1)
        hamflow.write_flow(folder / "flow.flo", scene.flow)
        if seed:
            hamflow.write_image(folder / "occ.png", scene.occluded.astype(np.uint8) * 255)
    return tmp_path / "data"


@pytest.fixture
def small_scene(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "demo_scene", lambda **_: demo_scene(64, 96, 2))


@pytest.fixture
def few_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of OpenCV's methods refuse tiny images."""
    few = {name: opencv_methods()[name] for name in ("DIS medium", "DeepFlow")}
    monkeypatch.setattr(bench, "opencv_methods", lambda: few)
    monkeypatch.setattr(bench_pair, "opencv_methods", lambda: few)


@pytest.mark.usefixtures("small_scene", "few_peers")
def test_bench_pair(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preset, file = tmp_path / "quick.toml", tmp_path / "b.json"
    preset.write_text(QUICK)
    args = ["--presets", str(preset), "--rounds", "1", "--ablation", "--json", str(file)]
    assert main(["bench", "pair", str(tree), *args]) == 0
    report = json.loads(file.read_text())
    assert report["peers"] == ["DIS medium", "DeepFlow"]
    assert len(report["rows"]) == 2 * (1 + len(report["peers"]))
    estimator = hamflow.Estimator(preset)
    for group, seed in (("one", 0), ("two", 1)):
        scene = demo_scene(64, 96, seed)
        result = estimator.estimate(scene.image0, scene.image1)
        row = next(r for r in report["rows"] if r["pair"] == f"{group}/a" and "gap" in r)
        error = float(np.nanmean(endpoint_error(result.flow, scene.flow)))
        assert row["epe"] == pytest.approx(error, rel=1e-4)
        assert ("occlusion_f1" in row) == bool(seed)
        assert 0 <= row["ause"] < 1
    assert set(report["ablation"]) == {"one", "two"}
    means = bench.by_group(report["rows"])
    assert report["ablation"]["one"]["all"] == pytest.approx(means["one"][str(preset)])
    assert report["seconds"]["DeepFlow"]["all"] > 0
    assert "next pair of a video" in "".join(report["seconds"])
    printed = capsys.readouterr().out
    assert "DeepFlow" in printed
    assert "one/a" in printed


@pytest.mark.usefixtures("small_scene")
def test_seconds_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    preset = tmp_path / "quick.toml"
    preset.write_text(QUICK)
    args = ["--presets", str(preset), "--rounds", "1", "--no-peers"]
    assert main(["bench", "pair", *args]) == 0
    assert "DIS" not in capsys.readouterr().out


def test_by_group_is_a_mean_over_pairs() -> None:
    rows = [
        {"pair": "g/a", "method": "m", "epe": 1.0},
        {"pair": "g/b", "method": "m", "epe": 4.0},
        {"pair": "h/a", "method": "m", "epe": 7.0, "ause": None},
        {"pair": "h/a", "method": "n", "epe": 1.0},
        {"pair": "h/b", "method": "m", "epe": 9.0},
        {"pair": "h/b", "method": "n", "epe": None, "failed": "no matches"},
    ]
    assert bench.by_group(rows) == {"g": {"m": 2.5}, "h": {"m": 8.0}}
    assert bench.by_group(rows, "ause") == {}


@pytest.mark.parametrize("name", ["DIS medium", "Farneback", "DeepFlow", "PCAFlow", "RLOF RIC"])
def test_opencv_finds_a_small_shift(name: str) -> None:
    """The wrappers hand the images over the right way round."""
    first = demo_scene(200, 300).image0
    second = np.roll(first, (1, 2), axis=(0, 1))
    flow = opencv_methods()[name](first, second)
    assert flow.shape == (200, 300, 2)
    assert np.abs(np.median(flow[20:-20, 20:-20], axis=(0, 1)) - (2, 1)).max() < 0.3


def test_without_opencv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(InputError, match="peers"):
        opencv_methods()
