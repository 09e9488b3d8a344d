"""Rectangles, and images covered with them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hamflow.pipeline.box import Box, cover

SIDES = st.integers(1, 200)


@given(SIDES, SIDES, st.integers(1, 20_000), st.integers(0, 12), st.sampled_from([1, 2, 4, 16]))
def test_an_image_is_covered_once(
    height: int, width: int, most: int, margin: int, grid: int
) -> None:
    boxes = list(cover((height, width), most, margin, grid))
    count = np.zeros((height, width), int)
    for box in boxes:
        assert box.x % grid == box.y % grid == 0
        count[box.slices] += 1
        outer = box.grown((margin, margin), (margin, margin), 1, (height, width))
        # Unless even a single cell of the grid with its margin has more pixels.
        assert outer.pixels <= max(most, (grid + 2 * margin) * (grid + 2 * margin + grid))
    assert (count == 1).all()


def test_little_work() -> None:
    """Three tiles beside each other are less work than six, and one is the least."""
    assert list(cover((100, 300), 30_000, 8, 1)) == [Box(0, 0, 300, 100)]
    assert len(list(cover((100, 300), 12_000, 8, 1))) == 3


@given(st.integers(0, 40), st.integers(0, 40), SIDES, SIDES, st.sampled_from([1, 4, 8]))
def test_what_is_around(x: int, y: int, width: int, height: int, grid: int) -> None:
    shape = (y + height + 13, x + width + 5)
    outer = Box(x, y, width, height).grown((3, 9), (2, 11), grid, shape)
    assert outer.x <= max(0, x - 3)
    assert outer.y <= max(0, y - 9)
    assert outer.x % grid == outer.y % grid == 0
    assert outer.x > x - 3 - grid
    for first, size, end, limit in (
        (outer.x, outer.width, x + width + 2, shape[1]),
        (outer.y, outer.height, y + height + 11, shape[0]),
    ):
        assert min(end, limit) <= first + size <= min(limit, end + grid - 1)


@given(st.integers(0, 9), st.integers(0, 9), SIDES, SIDES, st.sampled_from([2, 4, 8]))
def test_scales(x: int, y: int, width: int, height: int, factor: int) -> None:
    box = Box(factor * x, factor * y, width, height)
    small = box.reduced(factor)
    assert small.enlarged(factor, (box.y + height, box.x + width)) == box
    assert Box(0, 0, 5, 7).enlarged(4, (26, 17)) == Box(0, 0, 17, 26)


@given(SIDES, SIDES, st.sampled_from([1, 8]))
def test_halves(width: int, height: int, grid: int) -> None:
    box = Box(16, 24, width, height)
    parts = box.halves(grid)
    assert sum(part.pixels for part in parts) == box.pixels
    if max(width, height) > 2 * grid:
        assert len(parts) == 2
        assert max(part.pixels for part in parts) < box.pixels
        assert all(part.x % grid == part.y % grid == 0 for part in parts)
