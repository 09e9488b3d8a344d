"""The native function that undoes the filters of PNG files, against the specification."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from _png import ADAM7, SIGNATURE, chunk, header
from hamflow import _native
from hamflow.io import read_image


def unfiltered(lines: NDArray[np.uint8], depth: int) -> NDArray[np.uint8]:
    """Undo the filters byte by byte, as the specification writes them."""
    rows, length = lines.shape
    out = np.zeros((rows, length - 1), int)
    for y in range(rows):
        for i in range(length - 1):
            a = out[y, i - depth] if i >= depth else 0
            b = out[y - 1, i] if y else 0
            c = out[y - 1, i - depth] if y and i >= depth else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            out[y, i] = (int(lines[y, i + 1]) + (0, a, b, (a + b) // 2, paeth)[lines[y, 0]]) % 256
    return out.astype(np.uint8)


def native(lines: NDArray[np.uint8], depth: int) -> NDArray[np.uint8]:
    pixels = np.full((len(lines), lines.shape[1] - 1), 99, np.uint8)
    assert _native.png_unfilter(lines, depth, pixels)
    return pixels


@given(
    seed=st.integers(0, 2**32),
    filters=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    columns=st.integers(0, 9),
    depth=st.sampled_from([2, 4, 6, 8]),
    extreme=st.booleans(),
)
def test_agrees_with_the_specification(
    seed: int, filters: list[int], columns: int, depth: int, extreme: bool
) -> None:
    rng = np.random.default_rng(seed)
    lines = rng.integers(0, 256, (len(filters), 1 + columns * depth), np.uint8)
    if extreme:  # all that can overflow does
        lines = np.where(lines > 127, 255, 0).astype(np.uint8)
    lines[:, 0] = filters
    assert (native(lines, depth) == unfiltered(lines, depth)).all()


@pytest.mark.parametrize("number", [5, 255])
def test_undefined_filters(number: int) -> None:
    lines = np.zeros((3, 13), np.uint8)
    lines[2, 0] = number
    assert not _native.png_unfilter(lines, 6, np.empty((3, 12), np.uint8))


@pytest.mark.parametrize(
    ("lines", "depth", "pixels"),
    [
        ((3, 13), 6, (3, 13)),
        ((3, 13), 6, (2, 12)),
        ((3, 13), 0, (3, 12)),
        ((3, 13), 9, (3, 12)),
        ((3, 0), 6, (3, 0)),
    ],
)
def test_bad_arguments(lines: tuple[int, ...], depth: int, pixels: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"pixels|depth|lines"):
        _native.png_unfilter(np.zeros(lines, np.uint8), depth, np.zeros(pixels, np.uint8))


@pytest.mark.parametrize("size", [(1, 200_000), (200_000, 1), (400, 500)])
@pytest.mark.parametrize("interlace", [0, 1])
@pytest.mark.parametrize("number", [3, 4])
def test_small_files_of_many_pixels(
    tmp_path: Path, size: tuple[int, int], interlace: int, number: int
) -> None:
    """Files of about a kilobyte; no loop over rows or diagonals in Python."""
    width, height = size
    steps = ADAM7 if interlace else [(0, 0, 1, 1)]
    packer, data = zlib.compressobj(9), b""
    for x, y, dx, dy in steps:
        columns, rows = len(range(x, width, dx)), len(range(y, height, dy))
        if columns:
            data += packer.compress((bytes([number]) + bytes(6 * columns)) * rows)
    data += packer.flush()
    content = SIGNATURE + header(width, height, interlace=interlace) + chunk(b"IDAT", data)
    path = tmp_path / "a.png"
    path.write_bytes(content + chunk(b"IEND", b""))
    assert path.stat().st_size < 4000
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        image = read_image(path)
    finally:
        sys.setprofile(None)
    assert calls < 2000
    assert image.shape == (height, width, 3)
    assert not image.any()
