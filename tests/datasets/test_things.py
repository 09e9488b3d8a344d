from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from _trees import message_of, save_flow, save_image, scene
from hamflow.datasets.things import FlyingThingsDataset
from hamflow.errors import InputError

FRAMES = (6, 7, 8)
FUTURE, PAST = "OpticalFlowIntoFuture", "OpticalFlowIntoPast"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frame k shows what the seed k gives, one brighter in the right; the flow of the past is -."""
    root = tmp_path_factory.mktemp("things")
    for split, scenes in (("TRAIN", ("A/0000", "B/0003")), ("TEST", ("C/0001",))):
        for name in scenes:
            for k in FRAMES:
                image = scene(k).image0 // 2
                for number, camera in enumerate(("left", "right")):
                    place = f"{split}/{name}/{camera}/{k:04}.png"
                    save_image(root / "frames_cleanpass" / place, image + np.uint8(number))
                    save_image(root / "frames_finalpass" / place, image + np.uint8(number + 2))
                    flows = root / "optical_flow" / split / name
                    letter = camera[0].upper()
                    # The last frame has a flow into the future, too, and the first into the past.
                    future = flows / f"into_future/{camera}/{FUTURE}_{k:04}_{letter}.pfm"
                    save_flow(future, scene(k).flow)
                    past = flows / f"into_past/{camera}/{PAST}_{k:04}_{letter}.pfm"
                    save_flow(past, -scene(k).flow)
    return root


@pytest.fixture
def tree(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "things"))


def test_full(written: Path) -> None:
    data = FlyingThingsDataset(written)
    assert data.names == (
        "A/0000/left/forward/0006",
        "A/0000/left/forward/0007",
        "B/0003/left/forward/0006",
        "B/0003/left/forward/0007",
    )
    for pair, first in zip(data, (6, 7, 6, 7), strict=True):
        assert np.array_equal(pair.image0, scene(first).image0 // 2)
        assert np.array_equal(pair.image1, scene(first + 1).image0 // 2)
        assert np.array_equal(pair.flow, scene(first).flow)
        assert pair.occluded is None
    assert data.subset("A").names == data.names[:2]


def test_views_and_passes(written: Path) -> None:
    data = FlyingThingsDataset(written, pass_="final", camera="right", direction="backward")
    first, second, *_ = data
    assert first.name == "A/0000/right/backward/0007"
    assert np.array_equal(first.image0, scene(7).image0 // 2 + 3)
    assert np.array_equal(first.image1, scene(6).image0 // 2 + 3)
    assert np.array_equal(first.flow, -scene(7).flow)
    assert second.name == "A/0000/right/backward/0008"
    everything = FlyingThingsDataset(written, camera="both", direction="both")
    assert len(everything) == len(set(everything.names)) == 16
    assert set(data.names) < set(everything.names)
    assert everything.subset("B/0003/right").groups == (
        "B/0003/right/backward",
        "B/0003/right/forward",
    )


def test_test_has_truth(written: Path) -> None:
    data = FlyingThingsDataset(written, split="test")
    assert data.names == ("C/0001/left/forward/0006", "C/0001/left/forward/0007")
    assert np.array_equal(data[1].flow, scene(7).flow)


def test_missing_pieces(tree: Path) -> None:
    for file in (
        "frames_cleanpass/TRAIN/A/0000/left/0007.png",
        f"optical_flow/TRAIN/B/0003/into_future/left/{FUTURE}_0007_L.pfm",
    ):
        (tree / file).rename(tree / "away")
        said = message_of(lambda: FlyingThingsDataset(tree), tree / file)
        assert "does not exist; expected is FlyingThings3D's tree" in said
        assert "train/image_clean/left/0000000.png" in said
        (tree / "away").rename(tree / file)
    shutil.rmtree(tree / "optical_flow/TRAIN/A/0000/into_past")
    assert len(FlyingThingsDataset(tree)) == 4
    path = tree / "optical_flow/TRAIN/A/0000/into_past/left"
    message_of(lambda: FlyingThingsDataset(tree, direction="both"), path)
    shutil.rmtree(tree / "frames_finalpass")
    message_of(lambda: FlyingThingsDataset(tree, pass_="final"), tree / "frames_finalpass/TRAIN")


@pytest.mark.parametrize("option", ["split", "pass_", "camera", "direction"])
def test_wrong_options(written: Path, option: str) -> None:
    with pytest.raises(InputError, match=f"^{option} must be .* or .*, not 'up'"):
        FlyingThingsDataset(written, **{option: "up"})  # type: ignore[arg-type]


# The subset


@pytest.fixture
def subset(tmp_path: Path) -> Path:
    """Two scenes of two frames in each split: 0, 1 and 2, 3."""
    root = tmp_path / "subset"
    for split in ("train", "val"):
        base = root / split
        for k in range(4):
            save_image(base / f"image_clean/left/{k:07}.png", scene(k).image0)
        for k, into, sign in ((0, "future", 1), (2, "future", 1), (1, "past", -1), (3, "past", -1)):
            save_flow(base / f"flow/left/into_{into}/{k:07}.flo", sign * scene(k).flow)
            mask = scene(k).occluded.astype(np.uint8)
            save_image(base / f"flow_occlusions/left/into_{into}/{k:07}.png", mask)
    return root


def test_subset(subset: Path) -> None:
    data = FlyingThingsDataset(subset, direction="both")
    assert data.names == (
        "left/backward/0000001",
        "left/backward/0000003",
        "left/forward/0000000",
        "left/forward/0000002",
    )
    for pair, (first, second, sign) in zip(
        data, ((1, 0, -1), (3, 2, -1), (0, 1, 1), (2, 3, 1)), strict=True
    ):
        assert np.array_equal(pair.image0, scene(first).image0)
        assert np.array_equal(pair.image1, scene(second).image0)
        assert np.array_equal(pair.flow, sign * scene(first).flow)
        assert np.array_equal(pair.occluded, scene(first).occluded)
    assert FlyingThingsDataset(subset, split="test").names == data.names[2:]


def test_subset_with_missing_pieces(subset: Path) -> None:
    # There is no frame for it to go to.
    save_flow(subset / "train/flow/left/into_future/0000003.flo", scene(3).flow)
    shutil.rmtree(subset / "train/flow_occlusions")
    data = FlyingThingsDataset(subset)
    assert len(data) == 2
    assert data[0].occluded is None
    path = subset / "train/image_clean/left/0000002.png"
    path.unlink()
    message_of(lambda: FlyingThingsDataset(subset), path)
    path = subset / "train/image_final/left"
    message_of(lambda: FlyingThingsDataset(subset, pass_="final"), path)
    shutil.rmtree(subset / "val")
    message_of(lambda: FlyingThingsDataset(subset, split="test"), subset / "val")


def test_neither(tmp_path: Path) -> None:
    said = message_of(lambda: FlyingThingsDataset(tmp_path), tmp_path / "frames_cleanpass/TRAIN")
    assert "or its subset's with train/image_clean/left/0000000.png" in said
