"""KITTI 2012 and 2015, and HD1K, which has KITTI's encoding."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from _trees import KITTI_STEP, check_pair, message_of, save_flow, save_image, scene, visible_flow
from hamflow.datasets.hd1k import Hd1kDataset
from hamflow.datasets.kitti import Kitti2012Dataset, Kitti2015Dataset
from hamflow.errors import InputError


def write_kitti(root: Path, images: str) -> Path:
    for split in ("training", "testing"):
        for number in (0, 3):
            shown, name = scene(number), f"{number:06}"
            save_image(root / split / images / f"{name}_10.png", shown.image0)
            save_image(root / split / images / f"{name}_11.png", shown.image1)
            # As in the multi-view extension.
            save_image(root / split / images / f"{name}_12.png", shown.image1)
            if split == "training":
                save_flow(root / split / "flow_occ" / f"{name}_10.png", shown.flow)
                save_flow(root / split / "flow_noc" / f"{name}_10.png", visible_flow(shown))
    return root


@pytest.fixture
def kitti(tmp_path: Path) -> Path:
    return write_kitti(tmp_path / "kitti", "image_2")


def test_2015(kitti: Path) -> None:
    data = Kitti2015Dataset(kitti)
    assert data.names == ("000000_10", "000003_10")
    assert data.groups == ("",)
    for pair, number in zip(data, (0, 3), strict=True):
        check_pair(pair, scene(number), KITTI_STEP)
        assert np.array_equal(pair.occluded, scene(number).occluded)
    assert data.subset("000003_10").names == ("000003_10",)


def test_sparse_truth(kitti: Path) -> None:
    flow = scene(0).flow.copy()
    flow[::2] = np.nan
    save_flow(kitti / "training/flow_occ/000000_10.png", flow)
    pair = Kitti2015Dataset(kitti)[0]
    assert np.array_equal(np.isnan(pair.flow), np.isnan(flow))
    expected = scene(0).occluded.copy()
    expected[::2] = False
    assert np.array_equal(pair.occluded, expected)


def test_without_noc(kitti: Path) -> None:
    (kitti / "training/flow_noc/000000_10.png").unlink()
    first, second = Kitti2015Dataset(kitti)
    assert first.occluded is None
    assert second.occluded is not None
    shutil.rmtree(kitti / "training/flow_noc")
    assert [pair.occluded for pair in Kitti2015Dataset(kitti)] == [None, None]


def test_2015_test(kitti: Path) -> None:
    data = Kitti2015Dataset(kitti, split="test")
    assert data.names == ("000000_10", "000003_10")
    assert data[0].occluded is None
    assert np.array_equal(data[0].image1, scene(0).image1)
    message_of(lambda: data[0].flow, kitti / "testing/image_2/000000_10.png")


def test_2012(tmp_path: Path) -> None:
    root = write_kitti(tmp_path, "image_0")
    gray = {path: scene(0).image0.mean(axis=2).astype(np.uint8) for path in root.rglob("image_0/*")}
    for path, image in gray.items():
        save_image(path, image)
    first = Kitti2012Dataset(root)[0]
    assert first.image0_path.parent.name == "image_0"
    assert np.array_equal(first.image0[:, :, 1], next(iter(gray.values())))
    assert np.abs(first.flow - scene(0).flow).max() <= KITTI_STEP
    write_kitti(root, "colored_0")
    assert np.array_equal(Kitti2012Dataset(root)[0].image0, scene(0).image0)
    assert Kitti2012Dataset(root, images="image_0")[0].image0_path.parent.name == "image_0"
    assert len(Kitti2012Dataset(root, split="test", images="colored_0")) == 2
    with pytest.raises(InputError, match="images must be None, colored_0 or image_0, not 'image_"):
        Kitti2012Dataset(root, images="image_2")
    with pytest.raises(InputError, match="split must be training or test, not 'testing'"):
        Kitti2012Dataset(root, split="testing")  # type: ignore[arg-type]


def test_missing_pieces(kitti: Path) -> None:
    for file in ("image_2/000003_11.png", "flow_occ/000000_10.png"):
        path = kitti / "training" / file
        path.rename(kitti / "away")
        said = message_of(lambda: Kitti2015Dataset(kitti), path)
        assert "does not exist; expected is KITTI's tree" in said
        assert "training/flow_occ/000000_10.png" in said
        (kitti / "away").rename(path)
    said = message_of(lambda: Kitti2012Dataset(kitti), kitti / "training/image_0")
    assert "<colored_0 or image_0>" in said
    shutil.rmtree(kitti / "training/flow_occ")
    message_of(lambda: Kitti2015Dataset(kitti), kitti / "training/flow_occ")
    message_of(lambda: Kitti2015Dataset(kitti / "training"), kitti / "training/training")


# HD1K


@pytest.fixture
def hd1k(tmp_path: Path) -> Path:
    """Two sequences, and a third of only one frame."""
    root = tmp_path / "hd1k"
    for sequence, frames in (("000000", (0, 1, 2)), ("000007", (10, 11)), ("000009", (0,))):
        for frame in frames:
            name = f"{sequence}_{frame:04}.png"
            save_image(root / "hd1k_input/image_2" / name, scene(frame % 10).image0)
            save_flow(root / "hd1k_flow_gt/flow_occ" / name, scene(frame % 10).flow)
    for frame in (10, 11):
        save_image(root / f"hd1k_challenge/image_2/000001_{frame}.png", scene(frame % 10).image0)
    return root


def test_hd1k(hd1k: Path) -> None:
    data = Hd1kDataset(hd1k)
    assert data.names == ("000000/0000", "000000/0001", "000007/0010")
    assert data.groups == ("000000", "000007")
    for pair, first in zip(data, (0, 1, 0), strict=True):
        assert np.array_equal(pair.image0, scene(first).image0)
        assert np.array_equal(pair.image1, scene(first + 1).image0)
        assert np.abs(pair.flow - scene(first).flow).max() <= KITTI_STEP
        assert pair.occluded is None
    assert data.subset("000000").names == data.names[:2]


def test_hd1k_test(hd1k: Path) -> None:
    (pair,) = Hd1kDataset(hd1k, split="test")
    assert pair.name == "000001/10"
    assert np.array_equal(pair.image1, scene(1).image0)
    message_of(lambda: pair.flow, hd1k / "hd1k_challenge/image_2/000001_10.png")


def test_hd1k_missing_pieces(hd1k: Path) -> None:
    path = hd1k / "hd1k_flow_gt/flow_occ/000000_0001.png"
    path.unlink()
    said = message_of(lambda: Hd1kDataset(hd1k), path)
    assert "does not exist; expected is HD1K's tree" in said
    shutil.rmtree(hd1k / "hd1k_flow_gt")
    message_of(lambda: Hd1kDataset(hd1k), hd1k / "hd1k_flow_gt/flow_occ")
    shutil.rmtree(hd1k / "hd1k_challenge")
    message_of(lambda: Hd1kDataset(hd1k, split="test"), hd1k / "hd1k_challenge/image_2")
    with pytest.raises(InputError, match="split must be training or test"):
        Hd1kDataset(hd1k, split="challenge")  # type: ignore[arg-type]
