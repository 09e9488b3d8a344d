"""Middlebury's flow and stereo benchmarks."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from _trees import check_pair, message_of, save_flow, save_image, scene
from hamflow.datasets.middlebury import MiddleburyDataset
from hamflow.datasets.middlebury_stereo import MiddleburyStereoDataset
from hamflow.errors import InputError

WITH_FLOW = ("Dimetrodon", "RubberWhale")


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    root = tmp_path / "middlebury"
    for number, name in enumerate((*WITH_FLOW, "Walking")):
        shown = scene(number)
        for kind in ("other-data", "eval-data"):
            for frame, image in ((10, shown.image0), (11, shown.image1)):
                save_image(root / kind / name / f"frame{frame}.png", image)
                gray = image.mean(axis=2).astype(np.uint8)
                save_image(root / f"{kind}-gray" / name / f"frame{frame}.png", gray)
        # Of the version with all frames.
        save_image(root / "other-data" / name / "frame09.png", shown.image0)
        if name in WITH_FLOW:
            save_flow(root / "other-gt-flow" / name / "flow10.flo", shown.flow)
    return root


def test_flow(flow: Path) -> None:
    data = MiddleburyDataset(flow)
    assert data.names == WITH_FLOW
    for number, pair in enumerate(data):
        check_pair(pair, scene(number))
        assert pair.occluded is None


def test_gray(flow: Path) -> None:
    pair = MiddleburyDataset(flow, gray=True)[1]
    assert np.array_equal(pair.image0[:, :, 2], scene(1).image0.mean(axis=2).astype(np.uint8))
    assert (pair.flow == scene(1).flow).all()
    assert len(MiddleburyDataset(flow, split="test", gray=True)) == 3


def test_evaluation_scenes_have_no_flow(flow: Path) -> None:
    data = MiddleburyDataset(flow, split="test")
    assert data.names == (*WITH_FLOW, "Walking")
    assert np.array_equal(data[2].image1, scene(2).image1)
    message_of(lambda: data[2].flow, flow / "eval-data/Walking/frame10.png")


def test_unknown_flow(flow: Path) -> None:
    known = scene(0).flow.copy()
    known[3, 5] = np.nan
    save_flow(flow / "other-gt-flow/Dimetrodon/flow10.flo", known)
    assert np.argwhere(np.isnan(MiddleburyDataset(flow)[0].flow[:, :, 1])).tolist() == [[3, 5]]


def test_missing_pieces_of_flow(flow: Path) -> None:
    for file in ("other-data/RubberWhale/frame11.png", "other-gt-flow/RubberWhale/flow10.flo"):
        (flow / file).rename(flow / "away")
        said = message_of(lambda: MiddleburyDataset(flow), flow / file)
        assert "does not exist; expected is Middlebury's tree" in said
        (flow / "away").rename(flow / file)
    shutil.rmtree(flow / "other-gt-flow")
    message_of(lambda: MiddleburyDataset(flow), flow / "other-gt-flow")
    shutil.rmtree(flow / "eval-data-gray")
    message_of(lambda: MiddleburyDataset(flow, split="test", gray=True), flow / "eval-data-gray")
    with pytest.raises(InputError, match="split must be training or test, not 'eval'"):
        MiddleburyDataset(flow, split="eval")  # type: ignore[arg-type]


# Stereo


def disparity() -> NDArray[np.float32]:
    """From 3 to 17.75 in quarters, unknown in two places."""
    values = 3 + np.arange(40 * 56, dtype=np.float32).reshape(40, 56) % 60 / 4
    values[0, 1] = values[30, 50] = np.inf
    return values


def save_pfm(path: Path, values: NDArray[np.float32], scale: str = "-0.003922") -> None:
    order = "<f4" if scale.startswith("-") else ">f4"
    header = f"Pf\n{values.shape[1]} {values.shape[0]}\n{scale}\n".encode()
    path.write_bytes(header + values[::-1].astype(order).tobytes())


def write_stereo(folder: Path, names: tuple[str, str] = ("im0.png", "im1.png")) -> Path:
    for name, image in zip(names, (scene().image0, scene().image1), strict=True):
        save_image(folder / name, image)
    return folder


def check_stereo(flow: NDArray[np.float32], precision: float = 0) -> None:
    unknown = np.isinf(disparity())
    assert flow.dtype == np.float32
    assert (np.isnan(flow) == unknown[:, :, None]).all()
    assert np.abs(flow[~unknown, 0] + disparity()[~unknown]).max() <= precision
    assert (flow[~unknown, 1] == 0).all()


@pytest.fixture
def stereo(tmp_path: Path) -> Path:
    root = tmp_path / "stereo"
    save_pfm(write_stereo(root / "2014/Piano-perfect") / "disp0.pfm", disparity())
    imperfect = write_stereo(root / "2014/Piano-imperfect")
    save_pfm(imperfect / "disp0.pfm", disparity())
    save_pfm(imperfect / "disp0y.pfm", disparity())
    midd = write_stereo(root / "MiddEval3/trainingQ/Adirondack")
    save_pfm(midd / "disp0GT.pfm", disparity(), "1")
    mask = np.where(scene().occluded, 128, 255).astype(np.uint8)
    mask[np.isinf(disparity())] = 0
    save_image(midd / "mask0nocc.png", mask)
    write_stereo(root / "MiddEval3/testQ/Australia")
    gray = np.where(np.isinf(disparity()), 0, 8 * disparity()).astype(np.uint8)
    old = write_stereo(root / "2001/sawtooth", ("im2.ppm", "im6.ppm"))
    save_image(old / "disp2.pgm", gray)
    venus = write_stereo(root / "2001/venus", ("im2.png", "im6.png"))
    write_stereo(venus)  # which are then not the two to take
    save_image(venus / "disp2.png", gray)
    return root


def test_stereo(stereo: Path) -> None:
    data = MiddleburyStereoDataset(stereo)
    assert data.names == (
        "2001/sawtooth",
        "2001/venus",
        "2014/Piano-perfect",
        "MiddEval3/trainingQ/Adirondack",
    )
    for pair in data:
        assert np.array_equal(pair.image0, scene().image0)
        assert np.array_equal(pair.image1, scene().image1)
        check_stereo(pair.flow)
    assert data[1].image0_path.name == "im2.png"
    assert [pair.occluded is None for pair in data] == [True, True, True, False]
    expected = scene().occluded & ~np.isinf(disparity())
    assert np.array_equal(data[3].occluded, expected)
    assert data.subset("2001").names == data.names[:2]


def test_stereo_without_disparities(stereo: Path) -> None:
    (pair,) = MiddleburyStereoDataset(stereo, split="test")
    assert pair.name == "MiddEval3/testQ/Australia"
    message_of(lambda: pair.flow, stereo / "MiddEval3/testQ/Australia/im0.png")


def test_scales(tmp_path: Path) -> None:
    names = ("im2.png", "im6.png")
    gray = np.where(np.isinf(disparity()), 0, 4 * disparity()).astype(np.uint8)
    for scene_name in ("conesQ", "mine"):
        folder = write_stereo(tmp_path / scene_name, names)
        save_image(folder / "disp2.png", gray)
    cones, mine = MiddleburyStereoDataset(tmp_path)
    # These 56 pixels are far less than the 1800 of the full size.
    np.testing.assert_allclose(cones.flow[1, 1, 0], -int(gray[1, 1]) * 56 / 1800, rtol=1e-6)
    said = message_of(lambda: mine.flow, tmp_path / "mine/disp2.png")
    assert "only for the scenes barn1, " in said
    assert "option scale" in said
    for pair in MiddleburyStereoDataset(tmp_path, scale=4):
        check_stereo(pair.flow)
    for scale in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="scale must be a positive number"):
            MiddleburyStereoDataset(tmp_path, scale=scale)


def test_quarter_size_of_2003(tmp_path: Path) -> None:
    folder = tmp_path / "teddy"
    for name in ("im2.png", "im6.png"):
        save_image(folder / name, np.zeros((375, 450, 3), np.uint8))
    save_image(folder / "disp2.png", np.full((375, 450), 50, np.uint8))
    assert np.unique(MiddleburyStereoDataset(tmp_path)[0].flow).tolist() == [-12.5, 0]


def test_missing_pieces_of_stereo(stereo: Path) -> None:
    path = stereo / "2001/venus/im6.png"
    path.unlink()
    said = message_of(lambda: MiddleburyStereoDataset(stereo), path)
    assert "does not exist; expected are scene folders with im0.png" in said
    (stereo / "empty").mkdir()
    for root in (stereo / "empty", stereo / "gone"):
        message_of(lambda root=root: MiddleburyStereoDataset(root), root)  # type: ignore[misc]
    with pytest.raises(InputError, match="split must be training or test"):
        MiddleburyStereoDataset(stereo, split="all")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "does not start with Pf"),
        (b"PF\n56 40\n-1\n" + bytes(12 * 56 * 40), "is not a .pfm file with 1 channel"),
        (b"Pf\n56 40\n-1\n" + bytes(4 * 56 * 40 - 1), "take 8972 bytes, but the file has 8971"),
        (b"Pf\n56 40\n-1\n" + bytes(4 * 56 * 40 + 1), "take 8972 bytes, but the file has 8973"),
        (b"Pf\n0 40\n-1\n", "impossible size"),
        (b"Pf\n99999 99999\n-1\n", "more than the"),
        (b"Pf\n40 56\n-1\n" + bytes(4 * 56 * 40), "has 40 × 56 pixels, but im0.png has 56 × 40"),
    ],
)
def test_damaged_disparities(stereo: Path, content: bytes, words: str) -> None:
    path = stereo / "2014/Piano-perfect/disp0.pfm"
    path.write_bytes(content)
    pair = MiddleburyStereoDataset(stereo / "2014")[0]
    assert words in message_of(lambda: pair.flow, path)


def test_colored_disparities(stereo: Path) -> None:
    path = stereo / "2001/venus/disp2.png"
    save_image(path, scene().image0)
    pair = MiddleburyStereoDataset(stereo / "2001/venus")[0]
    assert "has colors" in message_of(lambda: pair.flow, path)
