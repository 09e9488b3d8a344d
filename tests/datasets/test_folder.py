from __future__ import annotations

import os
import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from _paths import DATA, needs_data
from _trees import save_flow, save_mask, save_pair
from hamflow.datasets import FlowPair, SyntheticScene, demo_scene
from hamflow.datasets.folder import FolderDataset
from hamflow.errors import FileError, InputError
from hamflow.io import write_image

NAMES = ("chairs/one", "chairs/two", "deep/er/one", "kitti/one")


@pytest.fixture(scope="module")
def scene() -> SyntheticScene:
    return demo_scene(32, 48)


def write_pair(folder: Path, scene: SyntheticScene, flow: str = "flow.flo") -> Path:
    save_pair(folder, scene, flow)
    (folder / "SOURCE.txt").write_text("drawn by formulas")
    return folder


@pytest.fixture
def root(tmp_path: Path, scene: SyntheticScene) -> Path:
    root = tmp_path / "data"
    write_pair(root / "chairs/two", scene)
    one = write_pair(root / "chairs/one", scene)
    save_mask(one / "occ.png", scene.occluded)
    save_mask(one / "invalid.png", invalid(scene))
    write_pair(root / "deep/er/one", scene)
    kitti = write_pair(root / "kitti/one", scene, "flow.png")
    visible = np.where(scene.occluded[:, :, None], np.nan, scene.flow)
    save_flow(kitti / "flow_noc.png", visible)
    (root / "README.md").write_text("no pair")
    (root / "empty").mkdir()
    return root


def invalid(scene: SyntheticScene) -> NDArray[np.bool_]:
    mask = np.zeros(scene.occluded.shape, np.bool_)
    mask[:5, 7:] = True
    return mask


def message_of(error: pytest.ExceptionInfo[FileError], path: Path) -> str:
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_tree(root: Path, scene: SyntheticScene) -> None:
    data = FolderDataset(root)
    assert data.names == NAMES
    assert data.groups == ("chairs", "deep/er", "kitti")
    assert len(data) == 4
    assert [pair.name for pair in data] == list(NAMES)
    assert [pair.group for pair in data] == ["chairs", "chairs", "deep/er", "kitti"]
    for pair in data:
        assert (pair.image0 == scene.image0).all()
        assert (pair.image1 == scene.image1).all()
        assert pair.flow.dtype == np.float32
    assert "4 pairs" in repr(data)


def test_truth(root: Path, scene: SyntheticScene) -> None:
    one, two, _, kitti = FolderDataset(str(root))
    assert (np.isnan(one.flow) == invalid(scene)[:, :, None]).all()
    assert (one.flow == scene.flow)[~invalid(scene)].all()
    assert one.occluded is not None
    assert (one.occluded == scene.occluded).all()
    assert (two.flow == scene.flow).all()
    assert two.occluded is None
    assert np.abs(kitti.flow - scene.flow).max() <= 1 / 128
    assert kitti.occluded is not None
    assert (kitti.occluded == scene.occluded).all()


def test_pixels_of_unknown_flow_are_not_occluded(root: Path, scene: SyntheticScene) -> None:
    save_mask(root / "kitti/one/invalid.png", invalid(scene))
    pair = FolderDataset(root / "kitti")[0]
    assert pair.occluded is not None
    assert (pair.occluded == (scene.occluded & ~invalid(scene))).all()


def test_one_group_and_one_pair(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = FolderDataset(root / "chairs")
    assert group.names == ("one", "two")
    assert group.groups == ("",)
    assert FolderDataset(root / "chairs/two").names == ("two",)
    monkeypatch.chdir(root / "chairs/two")
    assert FolderDataset(".").names == ("two",)


def test_indices_and_slices(root: Path) -> None:
    data = FolderDataset(root)
    assert data[-1].name == data[np.int64(3)].name == "kitti/one"
    assert data[1:3].names == ("chairs/two", "deep/er/one")
    assert isinstance(data[::-1], FolderDataset)
    assert data[::-1].names == NAMES[::-1]
    assert len(data[4:]) == 0
    assert data.index(data[2]) == 2
    assert data[0] in data
    assert data[0] != data[1]
    with pytest.raises(IndexError):
        data[4]


def test_subset(root: Path) -> None:
    data = FolderDataset(root)
    assert data.subset("chairs").names == ("chairs/one", "chairs/two")
    assert data.subset("deep").names == data.subset("deep/er").names == ("deep/er/one",)
    assert data.subset(["kitti/one", "chairs/two", "chairs/two"]).names == (
        "chairs/two",
        "kitti/one",
    )
    assert data.subset(iter(["chairs", "chairs/one"])).names == ("chairs/one", "chairs/two")
    assert len(data) == 4
    for name in ("chair", "one", "", "chairs/"):
        with pytest.raises(InputError, match=f"^names contains '{name}', which is neither"):
            data.subset(["kitti", name])
    with pytest.raises(InputError, match=r"^names must contain at least one"):
        data.subset([])


def test_reads_only_what_is_asked_for_and_once(root: Path, scene: SyntheticScene) -> None:
    for file in root.glob("chairs/one/*.png"):
        file.write_bytes(b"damaged")
    data = FolderDataset(root)
    pair = data[0]
    with pytest.raises(FileError, match="not an image"):
        _ = pair.image0
    pair = data[1]
    assert pair.flow is pair.flow
    (root / "chairs/two/frame1.png").unlink()
    assert (pair.image0 == scene.image0).all()
    # The dataset itself keeps nothing of it.
    with pytest.raises(FileError, match="does not exist"):
        _ = data[1].image0


def test_pairs_are_plain_values(root: Path, scene: SyntheticScene) -> None:
    pair = FolderDataset(root)[0]
    assert (pickle.loads(pickle.dumps(pair)).flow == scene.flow)[~invalid(scene)].all()
    assert len({pair, FolderDataset(root)[0]}) == 1
    with pytest.raises(AttributeError):
        pair.name = "other"  # type: ignore[misc]
    folder = root / "chairs/two"
    own = FlowPair("x", folder / "frame1.png", folder / "frame2.png", folder / "flow.flo")
    assert own.group == ""
    assert (own.flow == scene.flow).all()


def test_the_names_that_hamflow_writes(root: Path, scene: SyntheticScene) -> None:
    folder = root / "kitti/one"
    for name in ("flow", "flow_noc"):
        (folder / f"{name}.png").rename(folder / f"{name}.kitti.png")
    write_image(folder / "flow.png", scene.image0)  # a picture of it does not matter
    pair = FolderDataset(root / "kitti")[0]
    assert np.abs(pair.flow - scene.flow).max() <= 1 / 128
    assert pair.occluded is not None
    assert (pair.occluded == scene.occluded).all()


def test_flo_before_png(root: Path, scene: SyntheticScene) -> None:
    write_image(root / "chairs/two/flow.png", scene.image0)
    assert (FolderDataset(root)[1].flow == scene.flow).all()


def test_nothing_found(root: Path) -> None:
    for path in (root / "empty", root / "gone", root / "README.md", Path("a\0b")):
        with pytest.raises(FileError) as caught:
            FolderDataset(path)
        # Characters that would confuse a terminal are written as Python writes them.
        message = message_of(caught, Path(str(path).replace("\0", r"\x00")))
        for part in ("<group>/<pair>/", "frame1.png", "frame2.png", "flow.flo", "flow.png"):
            assert part in message


@pytest.mark.parametrize("file", ["frame1.png", "frame2.png"])
def test_missing_frame(root: Path, file: str) -> None:
    (root / "chairs/two" / file).unlink()
    with pytest.raises(
        FileError, match=r"does not exist; expected is a tree .*frame1\.png"
    ) as caught:
        FolderDataset(root)
    message_of(caught, root / "chairs/two" / file)


def test_missing_flow(root: Path) -> None:
    (root / "chairs/two/flow.flo").unlink()
    with pytest.raises(FileError, match="holds no flow; expected is a tree") as caught:
        FolderDataset(root)
    message_of(caught, root / "chairs/two")


@pytest.mark.parametrize(
    ("file", "attribute"),
    [("frame2.png", "image1"), ("occ.png", "occluded"), ("invalid.png", "flow")],
)
def test_mismatched_sizes(root: Path, file: str, attribute: str) -> None:
    path = root / "chairs/one" / file
    write_image(path, np.zeros((9, 7), np.uint8))
    with pytest.raises(FileError, match=r"has 7 × 9 pixels, but frame1\.png has 48 × 32") as caught:
        getattr(FolderDataset(root)[0], attribute)
    message_of(caught, path)


@pytest.mark.parametrize("file", ["flow.png", "flow_noc.png"])
def test_mismatched_flow(root: Path, file: str) -> None:
    path = root / "kitti/one" / file
    save_flow(path, np.zeros((9, 7, 2), np.float32))
    with pytest.raises(FileError, match="has 7 × 9 pixels") as caught:
        _ = FolderDataset(root)[3].occluded
    message_of(caught, path)


def test_masks_are_black_and_white(root: Path, scene: SyntheticScene) -> None:
    path = root / "chairs/one/occ.png"
    write_image(path, scene.occluded.astype(np.uint8))
    with pytest.raises(FileError, match="other colors than black and white") as caught:
        _ = FolderDataset(root)[0].occluded
    message_of(caught, path)
    for mask in (scene.occluded, scene.occluded * np.uint16(2**16 - 1)):
        Image.fromarray(mask).save(path)
        occluded = FolderDataset(root)[0].occluded
        assert occluded is not None
        assert (occluded == scene.occluded).all()


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_links(root: Path) -> None:
    (root / "again").symlink_to(root / "chairs")
    (root / "circle").symlink_to(root)
    (root / "self").symlink_to(root / "self")
    (root / "nowhere").symlink_to(root / "gone")
    assert FolderDataset(root).names == ("again/one", "again/two", *NAMES)


def test_folder_that_cannot_be_searched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(FileError, match=r"cannot be searched .*Permission denied") as caught:
        FolderDataset(root)
    message_of(caught, root)


@needs_data
def test_real_pairs() -> None:
    data = FolderDataset(DATA)
    assert Counter(pair.group for pair in data) == {
        "flyingchairs": 6,
        "kitti": 1,
        "middlebury-flow": 4,
        "middlebury-stereo-as-flow": 4,
        "sintel-clean": 5,
        "sintel-final": 7,
    }
    for pair in data:
        assert pair.image0.shape == pair.image1.shape == (*pair.flow.shape[:2], 3)
        known = ~np.isnan(pair.flow).any(axis=2)
        assert 0.05 < known.mean() <= 1
        assert np.nanmax(np.abs(pair.flow)) < 512
        has_mask = pair.occluded_path is not None or pair.group == "kitti"
        assert (pair.occluded is not None) == has_mask
        if pair.occluded is not None:
            assert 0 < pair.occluded.mean() < 0.6
    (kitti,) = data.subset("kitti")
    assert 100 < np.nanmax(np.abs(kitti.flow)) < 300
    assert np.isnan(kitti.flow).any()
