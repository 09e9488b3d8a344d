"""The distance to the boundaries of a mask."""

from __future__ import annotations

import sys
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray
from scipy import ndimage

from hamflow.errors import InputError
from hamflow.evaluation import epe_metrics
from hamflow.evaluation._distance import boundary, boundary_distance

Mask = NDArray[Any]
masks = hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=12))


def scipy_boundary(mask: Mask) -> Mask:
    """Where the mask changes when it grows or shrinks by one pixel."""
    cross = ndimage.generate_binary_structure(2, 1)
    grown = ndimage.binary_dilation(mask, cross)
    shrunk = ndimage.binary_erosion(mask, cross, border_value=1)
    return np.asarray(grown != shrunk)


def test_by_hand() -> None:
    mask = np.zeros((4, 6), bool)
    mask[1, 1] = True
    assert boundary(mask).astype(int).tolist() == [
        [0, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ]
    two, five = np.sqrt(2), np.sqrt(5)
    assert boundary_distance(mask).tolist() == [
        [1, 0, 1, two, five, np.sqrt(10)],
        [0, 0, 0, 1, 2, 3],
        [1, 0, 1, two, five, np.sqrt(10)],
        [two, 1, two, five, np.sqrt(8), np.sqrt(13)],
    ]


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (4, 5)])
@pytest.mark.parametrize("value", [False, True])
def test_no_boundary(shape: tuple[int, int], value: bool) -> None:
    mask = np.full(shape, value)
    assert not boundary(mask).any()
    assert (boundary_distance(mask) == np.inf).all()


@given(masks)
def test_boundary(mask: Mask) -> None:
    assert (boundary(mask) == scipy_boundary(mask)).all()
    assert (boundary(~mask) == boundary(mask)).all()


@given(masks)
def test_distance(mask: Mask) -> None:
    """Equal to the least distance to any pixel of the boundary, computed pixel by pixel."""
    marks = np.argwhere(boundary(mask))
    places = np.argwhere(np.ones_like(mask))
    squares = ((places[:, None] - marks[None]) ** 2).sum(axis=2)
    nearest = np.sqrt(squares.min(axis=1)) if len(marks) else np.full(len(places), np.inf)
    assert (boundary_distance(mask).ravel() == nearest).all()


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.ndimage", None)
    flow = np.zeros((4, 5, 2))
    occluded = np.zeros((4, 5), bool)
    assert epe_metrics(flow, flow).epe_all == 0
    assert epe_metrics(flow, flow, occluded).epe_noc == 0  # no boundary, so nothing to measure
    occluded[1, 2] = True
    with pytest.raises(InputError, match=r"need the package scipy.*hamflow\[evaluate\]"):
        epe_metrics(flow, flow, occluded)
