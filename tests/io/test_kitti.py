from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from PIL import Image

from _flows import error_for, fixture_is_fine
from _paths import DATA, needs_data
from _png import SIGNATURE, chunk, header
from hamflow.errors import InputError
from hamflow.io import read_image
from hamflow.io.kitti import outside_kitti_range, read_kitti_flow, write_kitti_flow

LAST = 2**15 - 1
flows = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.integers(1, 6), st.just(2)),
    elements=st.floats(-512, LAST / 64, width=32) | st.just(float("nan")),
)


def png(samples: list[list[int]], color: int = 2, depth: int = 16) -> bytes:
    """One unfiltered row, as the specification of PNG writes it."""
    letter = "H" if depth == 16 else "B"
    row = b"".join(struct.pack(f">{len(pixel)}{letter}", *pixel) for pixel in samples)
    return (
        SIGNATURE
        + header(len(samples), 1, depth, color)
        + chunk(b"IDAT", zlib.compress(b"\0" + row))
        + chunk(b"IEND", b"")
    )


@fixture_is_fine
@given(flow=flows)
def test_round_trip(tmp_path: Path, flow: NDArray[np.float32]) -> None:
    path = tmp_path / "f.png"
    write_kitti_flow(path, flow)
    back = read_kitti_flow(path)
    assert back.dtype == np.float32
    assert back.shape == flow.shape
    assert back.flags.writeable
    unknown = np.isnan(flow).any(axis=2)
    assert (np.isnan(back) == unknown[:, :, None]).all()
    assert np.abs(back[~unknown].astype(float) - flow[~unknown]).max(initial=0) <= 1 / 128
    assert os.listdir(tmp_path) == ["f.png"]
    # What was read is already rounded, so it survives exactly.
    write_kitti_flow(path, back)
    assert np.array_equal(read_kitti_flow(path), back, equal_nan=True)


@fixture_is_fine
@given(flow=flows)
def test_opencv_and_we_agree_on_the_bytes(tmp_path: Path, flow: NDArray[np.float32]) -> None:
    cv2 = pytest.importorskip("cv2")
    path = tmp_path / "f.png"
    write_kitti_flow(path, flow)
    decoded = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)[:, :, ::-1]
    assert decoded.dtype == np.uint16
    known = ~np.isnan(flow).any(axis=2)
    expected = np.zeros((*flow.shape[:2], 3))
    expected[known, :2] = np.rint(flow[known].astype(float) * 64) + 2**15
    expected[known, 2] = 1
    assert (decoded == expected).all()
    cv2.imwrite(str(tmp_path / "g.png"), decoded[:, :, ::-1])
    back = read_kitti_flow(tmp_path / "g.png")
    assert np.array_equal(back, read_kitti_flow(path), equal_nan=True)


def test_values_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f.png"
    pixels = [[2**15, 2**15, 1], [0, 2**16 - 1, 1], [2**15 + 1, 2**15 - 64, 7], [9, 9, 0]]
    path.write_bytes(png(pixels))
    flow = read_kitti_flow(path)
    assert flow[0, :3].tolist() == [[0, 0], [-512, LAST / 64], [1 / 64, -1]]
    assert np.isnan(flow[0, 3]).all()


def test_values_written(tmp_path: Path) -> None:
    path = tmp_path / "f.png"
    write_kitti_flow(path, [[[0, 0], [-512, 511.99], [np.nan, 3], [0.01, -1]]])
    assert read_image(path).tolist() == [
        [[2**15, 2**15, 1], [0, 2**16 - 1, 1], [0, 0, 0], [2**15 + 1, 2**15 - 64, 1]]
    ]


@pytest.mark.parametrize(
    "value", [512, 511.995, -512.01, -600, 1e9, 1e300, np.inf, -np.inf, 1024, 65536]
)
def test_values_that_the_format_cannot_hold(tmp_path: Path, value: float) -> None:
    flow = np.zeros((2, 2, 2))
    flow[1, 0, 1] = value
    with pytest.raises(InputError, match=r"^flow .*-512 to 511\.98 .*NaN"):
        write_kitti_flow(tmp_path / "f.png", flow)
    assert os.listdir(tmp_path) == []


@fixture_is_fine
@given(
    flow=hnp.arrays(
        np.float32,
        (2, 3, 2),
        elements=st.floats(-520, 520, width=32)
        | st.sampled_from([-512, -512.01, LAST / 64, 511.995, 1e9, np.inf, np.nan]),
    )
)
def test_outside_is_what_is_refused(tmp_path: Path, flow: NDArray[np.float32]) -> None:
    path = tmp_path / "f.png"
    before, outside = flow.copy(), outside_kitti_range(flow)
    if outside.any():
        with pytest.raises(InputError):
            write_kitti_flow(path, flow)
    flow[outside] = np.nan
    write_kitti_flow(path, flow)
    assert not (outside & np.isnan(before).any(axis=2)).any()
    assert (np.isnan(read_kitti_flow(path)) == np.isnan(flow).any(axis=2)[..., None]).all()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"PIEH" + bytes(40), id="flo"),
        pytest.param(png([[1, 2, 3]])[:20], id="no header"),
        pytest.param(png([[1, 2, 3]], depth=8), id="8 bits"),
        pytest.param(png([[1]], color=0), id="gray"),
        pytest.param(png([[1, 2]], color=4), id="gray and alpha"),
        pytest.param(png([[1, 2, 3, 4]], color=6), id="RGBA"),
    ],
)
def test_other_files(tmp_path: Path, content: bytes) -> None:
    assert "not a 16-bit RGB PNG" in error_for(tmp_path / "bad.png", content)


def test_picture_of_a_flow(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (5, 4)).save(buffer, "PNG")
    assert "colors of a flow" in error_for(tmp_path / "bad.png", buffer.getvalue())


@needs_data
def test_real_file(tmp_path: Path) -> None:
    file = next(DATA.glob("kitti/*/flow.png"))
    flow = read_kitti_flow(file)
    assert 0.05 < (~np.isnan(flow)).mean() < 0.95
    assert 100 < np.nanmax(np.abs(flow)) < 300
    write_kitti_flow(tmp_path / "f.png", flow)
    assert np.array_equal(read_kitti_flow(tmp_path / "f.png"), flow, equal_nan=True)
