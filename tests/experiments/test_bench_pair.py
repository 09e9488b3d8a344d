"""``bench pair`` on a tiny tree, and OpenCV's methods."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import hamflow
from _trees import save_mask, save_pair
from experiments.bench import pair as bench
from experiments.bench.sequence import read_sequence, rendered_sequence
from experiments.cli import bench_pair
from experiments.cli.app import main
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
        folder = save_pair(tmp_path / "data" / group / "a", scene)
        if seed:
            save_mask(folder / "occ.png", scene.occluded)
    return tmp_path / "data"


@pytest.fixture
def few_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of OpenCV's methods refuse tiny images."""
    few = ["balanced", "opencv-dis", "opencv-deepflow"]
    monkeypatch.setattr(bench_pair, "method_names", lambda: few)


@pytest.fixture
def preset(tmp_path: Path) -> Path:
    file = tmp_path / "quick.toml"
    file.write_text(QUICK)
    return file


SIZE = ["--rounds", "1", "--width", "96", "--height", "64", "--frames", "4"]


@pytest.mark.usefixtures("few_peers")
def test_bench_pair(
    tree: Path, preset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "b.json"
    args = ["--presets", str(preset), "--ablation", "--json", str(file), *SIZE]
    assert main(["bench", "pair", str(tree), *args]) == 0
    report = json.loads(file.read_text())
    assert report["peers"] == ["opencv-dis", "opencv-deepflow"]
    assert (report["width"], report["height"], report["frames"]) == (96, 64, 4)
    assert len(report["rows"]) == 2 * (1 + len(report["peers"]))
    estimator = hamflow.Estimator(preset)
    for group, seed in (("one", 0), ("two", 1)):
        scene = demo_scene(64, 96, seed)
        result = estimator.estimate(scene.image0, scene.image1)
        rows = {r["method"]: r for r in report["rows"] if r["pair"] == f"{group}/a"}
        error = float(np.nanmean(endpoint_error(result.flow, scene.flow)))
        row = rows[str(preset)]
        assert row["epe_all"] == pytest.approx(error, rel=1e-4)
        assert (row["occlusion_f1"] is not None) == bool(seed)
        assert 0 <= row["ause"] < 1
        assert rows["opencv-dis"]["ause"] is None
    assert set(report["ablation"]) == {"one", "two"}
    means = bench.by_group(report["rows"])
    assert report["ablation"]["one"]["all steps"] == pytest.approx(means["one"][str(preset)])
    assert report["ablation"]["one"]["without completion"] != means["one"][str(preset)]
    names = [str(preset), f"{preset}, next pair of a video", *report["peers"]]
    assert list(report["seconds"]) == names
    assert all(times["all"] > 0 for times in report["seconds"].values())
    assert sum(report["seconds"][str(preset)].values()) > report["seconds"][str(preset)]["all"]
    printed = capsys.readouterr().out
    for words in ("opencv-deepflow", "one/a", "96×64 pixels", "Ablation"):
        assert words in printed


def test_seconds_of_a_video_of_one_s_own(
    preset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = tmp_path / "frames", tmp_path / "b.json"
    folder.mkdir()
    for number, image in enumerate(rendered_sequence(48, 80, 5)):
        hamflow.write_image(folder / f"{number}.png", image)
    args = ["--presets", str(preset), "--no-peers", *SIZE, "--json", str(file)]
    assert main(["bench", "pair", "--video", str(folder), *args]) == 0
    report = json.loads(file.read_text())
    assert (report["width"], report["height"], report["frames"]) == (80, 48, 4)
    assert report["rows"] == []
    assert "opencv" not in capsys.readouterr().out


def test_profile_adds_up(preset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "b.json"
    args = ["--presets", str(preset), "--no-peers", "--profile", *SIZE, "--json", str(file)]
    assert main(["bench", "pair", *args]) == 0
    stages, whole = json.loads(file.read_text())["profile"][str(preset)]
    assert {"descriptors", "matching", "completion", "refinement", "between"} <= set(stages)
    assert stages["matching"]["chain_pass"] > 0
    assert sum(sum(functions.values()) for functions in stages.values()) == pytest.approx(
        whole, rel=0.01
    )
    assert "matching" in capsys.readouterr().out
    assert not isinstance(hamflow._native.chain_pass, type(test_profile_adds_up))  # restored


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rounds", "0"], "--rounds"),
        (["--frames", "3"], "at least 4"),
        (["--ablation"], "ROOT"),
        (["--json", "missing/b.json"], "missing/b.json"),
    ],
)
def test_wrong_options(options: list[str], words: str, fails: Callable[..., str]) -> None:
    assert words in fails("bench", "pair", "--no-peers", *options)


def test_a_video_that_is_too_short(tmp_path: Path) -> None:
    for number, image in enumerate(rendered_sequence(40, 60, 4)[:3]):
        hamflow.write_image(tmp_path / f"{number}.png", image)
    with pytest.raises(InputError, match="has 3 frames"):
        read_sequence(tmp_path, 5)


def test_a_method_that_fails_has_no_time() -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("too small")

    frames = rendered_sequence(48, 64, 4)
    found = bench._seconds(frames, [], {"broken": failing}, 2, lambda _: None)
    assert found == {"broken": {}}


def test_rendered_frames_follow_each_other() -> None:
    """The motion continues, so the flows of consecutive pairs are nearly equal."""
    frames = rendered_sequence(96, 128, 4, max_displacement=6.0)
    assert len({frame.tobytes() for frame in frames}) == 4
    estimator = hamflow.Estimator("fast", model="pairs")
    flows = [estimator.estimate(*pair).flow for pair in pairwise(frames)]
    for before, after in pairwise(flows):
        moved = np.median(np.linalg.norm(before, axis=2))
        assert moved > 0.2
        assert np.median(np.linalg.norm(after - before, axis=2)) < 0.3 * moved


def test_a_pair_of_a_video_takes_over_the_state_before() -> None:
    """Each frame is prepared once, in order, and each pair but the first gets the one before."""
    seen: list[object] = []

    class Estimator:
        def frame(self, image: int) -> str:
            seen.append(image)
            return f"frame {image}"

        def between(self, first: str, second: str, previous: object) -> tuple[None, str]:
            seen.append((first, second, previous))
            return None, f"after {second}"

    assert bench._next_pair(Estimator(), [0, 1, 2]) > 0  # type: ignore[arg-type, list-item]
    assert seen == [
        *(0, 1, ("frame 0", "frame 1", None)),
        *(2, ("frame 1", "frame 2", "after frame 1")),
    ]


def test_by_group_is_a_mean_over_pairs() -> None:
    rows = [
        {"pair": "g/a", "method": "m", "epe_all": 1.0, "ause": None},
        {"pair": "g/b", "method": "m", "epe_all": 4.0, "ause": None},
        {"pair": "h/a", "method": "m", "epe_all": 7.0, "ause": None},
        {"pair": "h/a", "method": "n", "epe_all": 1.0, "ause": None},
        {"pair": "h/b", "method": "m", "epe_all": 9.0, "ause": None},
        {"pair": "h/b", "method": "n", "epe_all": None, "ause": None, "failed": "no matches"},
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
