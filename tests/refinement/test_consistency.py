"""Forward and backward flow against each other, where the answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hamflow import InputError
from hamflow.refinement import consistent, disagreement, occluded

Array = NDArray[Any]
H, W = 20, 30


def constant(u: float, v: float) -> Array:
    return np.broadcast_to(np.float32([u, v]), (H, W, 2)).copy()


def square(left: int) -> Array:
    inside = np.zeros((H, W), np.bool_)
    inside[6:14, left : left + 8] = True
    return inside


def moving_square(distance: int) -> tuple[Array, Array, Array]:
    """Both flows of a square in front of a background at rest, and what it hides."""
    before, after = square(8), square(8 + distance)
    flow, backward = constant(0, 0), constant(0, 0)
    flow[before] = distance, 0
    backward[after] = -distance, 0
    return flow, backward, after & ~before


@pytest.mark.parametrize("distance", [1, 2, 5, 8, 12, -6])
def test_a_moving_square(distance: int) -> None:
    flow, backward, hidden = moving_square(distance)
    assert (occluded(flow, backward) == hidden).all()
    assert (disagreement(flow, backward) == abs(distance) * hidden).all()
    assert (consistent(flow, backward) == (~hidden | (abs(distance) == 1))).all()
    # The other way round it hides what it has left.
    assert (occluded(backward, flow) == square(8) & ~square(8 + distance)).all()


def test_leaving_the_image() -> None:
    flow, backward = constant(3, -2), constant(-3, 2)
    y, x = np.mgrid[:H, :W]
    outside = (x + 3 > W - 1) | (y - 2 < 0)
    assert (occluded(flow, backward) == outside).all()
    assert (consistent(flow, backward) == ~outside).all()
    distance = disagreement(flow, backward)
    assert distance.dtype == np.float32
    assert (distance == np.where(outside, np.inf, 0)).all()


@pytest.mark.parametrize(("distance", "hidden"), [(1e-6, False), (0.45, False), (0.55, True)])
def test_half_a_pixel_beyond_the_border_is_not_outside(distance: float, hidden: bool) -> None:
    """The outermost pixels of a scene at rest are not hidden because of some rounding."""
    for u, v in ((-distance, 0), (distance, 0), (0, -distance), (0, distance)):
        flow = constant(u, v)
        seen = ~occluded(flow, -flow)
        assert seen.all() != hidden
        assert seen[1:-1, 1:-1].all()
        apart = disagreement(flow, -flow)
        assert (np.isinf(apart) == ~seen).all()
        assert abs(apart[seen]).max() < 1e-6


def test_between_pixels() -> None:
    """The way back starts where the way there ends, between four pixels."""
    backward = constant(0, 0)
    backward[..., 0] = -0.1 * np.arange(W)
    distance = disagreement(constant(0.5, 0), backward)
    assert np.allclose(distance[:, :-1], abs(0.5 - 0.1 * (np.arange(W - 1) + 0.5)), atol=1e-6)
    assert np.allclose(distance[:, -1], 0.1 * (W - 1) - 0.5, atol=1e-6)


@pytest.mark.parametrize("tolerance", [0.0, 0.5, 1.0, 2.0])
def test_tolerance(tolerance: float) -> None:
    for apart in (0.0, 0.25, 0.75, 1.5, 3.0):
        agree = consistent(constant(0, 2), constant(0, apart - 2), tolerance)[:-2]
        assert (agree == (apart <= tolerance)).all()


def test_fast_motion_may_disagree_more() -> None:
    """By a tenth of the lengths, besides half a square pixel."""
    for length, apart, hidden in ((0, 0.7, 0), (0, 0.72, 1), (20, 2.7, 0), (20, 3.1, 1)):
        back = constant(apart - length, 0)
        assert (occluded(constant(length, 0), back)[:, : W - length] == hidden).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_unknown_flow_is_not_visible(value: float) -> None:
    flow, backward = constant(0, 0), constant(0, 0)
    flow[3, 4, 1] = value
    assert np.argwhere(occluded(flow, backward)).tolist() == [[3, 4]]
    assert np.argwhere(~consistent(flow, backward)).tolist() == [[3, 4]]


def test_nor_is_what_has_no_way_back() -> None:
    backward = constant(0, 0)
    backward[3, 4, 1] = np.nan
    assert np.argwhere(occluded(constant(0.5, 0), backward)[:, :-1]).tolist() == [[3, 3], [3, 4]]


def test_whole_numbers() -> None:
    """Their squares need not fit the type."""
    flow, backward = np.zeros((2, 2, 400, 2), np.int16)
    flow[..., 0], backward[..., 0] = 200, -185
    assert not occluded(flow, backward)[:, :200].any()


@pytest.mark.parametrize("function", [disagreement, consistent, occluded])
def test_bad_input(function: Any) -> None:
    flow = constant(0, 0)
    with pytest.raises(InputError, match="flow and backward must have the same shape"):
        function(flow, flow[1:])
    with pytest.raises(InputError, match="flow must have the shape"):
        function(flow[..., 0], flow)
    with pytest.raises(InputError, match="backward must have the shape"):
        function(flow, flow[..., :1])
