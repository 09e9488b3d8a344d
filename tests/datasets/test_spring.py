from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from _trees import message_of, save_flow, save_image, scene
from hamflow.datasets.spring import SpringDataset, SpringPair
from hamflow.errors import InputError
from hamflow.evaluation import epe_metrics

pytest.importorskip("h5py")


def doubled(flow: NDArray[np.float32]) -> NDArray[np.float32]:
    """Four values of each pixel: the flow, and with 1, 2 and 3 more to the right."""
    double = flow.repeat(2, axis=0).repeat(2, axis=1)
    double[::2, 1::2, 0] += 1
    double[1::2, ::2, 0] += 2
    double[1::2, 1::2, 0] += 3
    return double


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("spring")
    for split, names in (("train", ("0001", "0004")), ("test", ("0003",))):
        for name in names:
            for camera in ("left", "right"):
                for k in (1, 2, 3):
                    path = root / split / name / f"frame_{camera}/frame_{camera}_{k:04}.png"
                    save_image(path, scene(k).image0)
    for name in ("0001", "0004"):
        for camera in ("left", "right"):
            for code, numbers, sign in (("FW", (1, 2), 1), ("BW", (2, 3), -1)):
                for k in numbers:
                    kind = f"flow_{code}_{camera}"
                    flow = doubled(sign * scene(k).flow)
                    save_flow(root / f"train/{name}/{kind}/{kind}_{k:04}.flo5", flow)
                    if name == "0001":
                        colors = np.zeros((40, 56, 3), np.uint8)
                        # Hidden and outside have colors of their own; blue means neither.
                        colors[..., 2] = 255
                        colors[scene(k).occluded, k % 2] = 255
                        matched = f"matchmap_{kind}"
                        place = f"train/{name}/maps/{matched}/{matched}_{k:04}.png"
                        save_image(root / place, colors)
    return root


@pytest.fixture
def tree(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "spring"))


def test_training(written: Path) -> None:
    data = SpringDataset(written)
    assert data.names == (
        "0001/left/forward/0001",
        "0001/left/forward/0002",
        "0004/left/forward/0001",
        "0004/left/forward/0002",
    )
    for pair, first in zip(data, (1, 2, 1, 2), strict=True):
        assert np.array_equal(pair.image0, scene(first).image0)
        assert np.array_equal(pair.image1, scene(first + 1).image0)
        # At the resolution of the frames, and with vectors that are not divided.
        assert np.array_equal(pair.flow, scene(first).flow)
        assert pair.flow.flags.c_contiguous
        assert isinstance(pair, SpringPair)
        assert np.array_equal(pair.double_flow(), doubled(scene(first).flow))
    assert np.array_equal(data[1].occluded, scene(2).occluded)
    assert data[2].occluded is None


def test_views(written: Path) -> None:
    everything = SpringDataset(written, camera="both", direction="both")
    assert len(everything) == len(set(everything.names)) == 16
    (pair,) = everything.subset("0004/right/backward/0003")
    assert np.array_equal(pair.image0, scene(3).image0)
    assert np.array_equal(pair.image1, scene(2).image0)
    assert np.array_equal(pair.flow, -scene(3).flow)
    backward = SpringDataset(written, direction="backward").subset("0001")
    assert backward.names == ("0001/left/backward/0002", "0001/left/backward/0003")
    assert np.array_equal(backward[0].occluded, scene(2).occluded)


def test_test_has_no_truth(written: Path) -> None:
    data = SpringDataset(written, split="test", camera="right", direction="backward")
    assert data.names == ("0003/right/backward/0002", "0003/right/backward/0003")
    pair = data[0]
    assert isinstance(pair, SpringPair)
    path = written / "test/0003/frame_right/frame_right_0002.png"
    message_of(lambda: pair.flow, path)
    message_of(pair.double_flow, path)


def test_the_nearest_of_four(tree: Path) -> None:
    truth = scene(1).flow
    path = tree / "train/0001/flow_FW_left/flow_FW_left_0001.flo5"
    double = doubled(truth)
    double[5, 7] = np.nan  # one of the four of (2, 3)
    save_flow(path, double)
    pair = SpringDataset(tree)[0]
    assert isinstance(pair, SpringPair)
    estimate = truth.copy()
    estimate[:20, :, 0] += 2.2
    nearest = pair.nearest_flow(estimate)
    assert nearest.shape == truth.shape
    assert nearest.dtype == np.float32
    assert np.argwhere(np.isnan(nearest).all(axis=2)).tolist() == [[2, 3]]
    # What Spring's benchmark computes: the smallest of four errors.
    places = [double[i::2, j::2].astype(np.float64) for i in (0, 1) for j in (0, 1)]
    four = np.stack([np.linalg.norm(place - estimate, axis=2) for place in places])
    metrics = epe_metrics(estimate, nearest)
    assert metrics.pixels == 40 * 56 - 1
    np.testing.assert_allclose(metrics.epe_all, np.nanmean(four.min(axis=0)), rtol=1e-5)
    assert abs(metrics.epe_all - 0.1) < 0.001
    with pytest.raises(InputError, match="estimate must have the shape"):
        pair.nearest_flow(double)


def test_flow_of_another_size(tree: Path) -> None:
    path = tree / "train/0001/flow_FW_left/flow_FW_left_0001.flo5"
    save_flow(path, scene(1).flow)
    pair = SpringDataset(tree)[0]
    said = message_of(lambda: pair.flow, path)
    assert "has 56 × 40 pixels, but should have 112 × 80, twice as many" in said


def test_map_of_another_size(tree: Path) -> None:
    path = tree / "train/0001/maps/matchmap_flow_FW_left/matchmap_flow_FW_left_0001.png"
    save_image(path, np.zeros((80, 112), np.uint8))
    assert "112 × 80" in message_of(lambda: SpringDataset(tree)[0].occluded, path)


def test_missing_pieces(tree: Path) -> None:
    for file in ("frame_left/frame_left_0002.png", "flow_FW_left/flow_FW_left_0002.flo5"):
        path = tree / "train/0004" / file
        path.rename(tree / "away")
        said = message_of(lambda: SpringDataset(tree), path)
        assert "does not exist; expected is Spring's tree" in said
        assert "train/0001/flow_FW_left/flow_FW_left_0001.flo5" in said
        (tree / "away").rename(path)
    shutil.rmtree(tree / "train/0001/frame_right")
    assert len(SpringDataset(tree)) == 4
    path = tree / "train/0001/frame_right"
    message_of(lambda: SpringDataset(tree, camera="both"), path)
    shutil.rmtree(tree / "test")
    message_of(lambda: SpringDataset(tree, split="test"), tree / "test")


@pytest.mark.parametrize("option", ["split", "camera", "direction"])
def test_wrong_options(written: Path, option: str) -> None:
    with pytest.raises(InputError, match=f"^{option} must be .* or .*, not 'up'"):
        SpringDataset(written, **{option: "up"})  # type: ignore[arg-type]
