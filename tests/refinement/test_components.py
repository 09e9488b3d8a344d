"""Small connected regions of a mask, against a flood fill."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from hamflow import _native

Mask = NDArray[np.uint8]


def dropped(mask: Mask, least: int) -> Mask:
    copy = mask.copy()
    _native.drop_small(copy, least)
    return copy


def component(mask: Mask, start: tuple[int, int]) -> set[tuple[int, int]]:
    """Return what is connected with a pixel, along rows and columns."""
    found: set[tuple[int, int]] = set()
    waiting = [start]
    while waiting:
        y, x = waiting.pop()
        inside = 0 <= y < mask.shape[0] and 0 <= x < mask.shape[1]
        if inside and mask[y, x] and (y, x) not in found:
            found.add((y, x))
            waiting += [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
    return found


MASKS = hnp.arrays(
    np.uint8,
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    elements=st.sampled_from([0, 0, 1, 1, 255]),
)


@given(mask=MASKS, least=st.integers(-2, 12))
def test_equals_a_flood_fill(mask: Mask, least: int) -> None:
    expected = mask.copy()
    for place in np.ndindex(mask.shape):
        if len(component(mask, place)) < least:
            expected[place] = 0
    assert (dropped(mask, least) == expected).all()


def test_corners_do_not_connect() -> None:
    mask = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]], np.uint8)
    assert dropped(mask, 3).tolist() == [[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]]


def test_a_long_snake() -> None:
    """One region that a recursive fill could not follow."""
    mask = np.zeros((401, 300), np.uint8)
    mask[::2] = 1
    mask[1::4, -1] = mask[3::4, 0] = 1
    size = int(mask.sum())
    assert (dropped(mask, size) == mask).all()
    assert not dropped(mask, size + 1).any()


@pytest.mark.parametrize(
    "mask", [np.zeros((3, 0), np.uint8), np.zeros((3, 4)), np.zeros((3, 4, 1), np.uint8), None]
)
def test_bad_masks(mask: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        _native.drop_small(mask, 3)
