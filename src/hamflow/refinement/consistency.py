"""Forward and backward flow against each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hamflow._check import as_flow
from hamflow._types import AnyFlow, Field, Mask
from hamflow.errors import InputError
from hamflow.flow import warp

# Sundaram, Brox, Keutzer: Dense point trajectories by GPU-accelerated large displacement optical
# flow. ECCV 2010.
_RELATIVE = 0.01
_ABSOLUTE = 0.5


def disagreement(flow: AnyFlow, backward: AnyFlow) -> Field:
    """Return how far from its start a pixel ends up that goes forward and then back.

    Parameters
    ----------
    flow, backward : (H, W, 2) array
        From the first image to the second, and from the second to the first.

    Returns
    -------
    (H, W) array of float32
        In pixels; infinite where the flow leaves the image by more than half a pixel.
    """
    return _distance(*_there_and_back(flow, backward))


def consistent(flow: AnyFlow, backward: AnyFlow, tolerance: float = 1.0) -> Mask:
    """Return where both directions agree within `tolerance` pixels, for whole-pixel flow."""
    # A little more, for the rounding of the bilinear weights.
    agree: Mask = disagreement(flow, backward) <= tolerance + 0.01
    return agree


def check(flows: Sequence[AnyFlow]) -> list[Mask]:
    """Return where each direction can be trusted: where the forward-backward check is passed.

    Parameters
    ----------
    flows : sequence of (H, W, 2) array
        The flow in whole pixels, forward and backward. With one direction alone there is nothing
        to compare, and all of it is trusted.
    """
    if len(flows) == 1:
        return [np.ones(flows[0].shape[:2], np.bool_)]
    forward, backward = flows
    return [consistent(forward, backward), consistent(backward, forward)]


def occluded(flow: AnyFlow, backward: AnyFlow) -> Mask:
    """Return which pixels of the first image are not to be seen in the second.

    Where the flow leaves the image by more than half a pixel, and where the way back ends
    elsewhere: d² > 0.01 (|f|² + |b|²) + 0.5, with d the disagreement, f the flow and b the backward
    flow at its end.

    Parameters
    ----------
    flow, backward : (H, W, 2) array
        From the first image to the second, and from the second to the first.

    Returns
    -------
    (H, W) array of bool
    """
    there, returned, inside = _there_and_back(flow, backward)
    distance = _distance(there, returned, inside)
    lengths = np.square(there).sum(axis=2) + np.square(returned).sum(axis=2)
    # Unknown flow compares with nothing.
    visible: Mask = np.square(distance) <= _RELATIVE * lengths + _ABSOLUTE
    return ~(visible & inside)


def _there_and_back(flow: AnyFlow, backward: AnyFlow) -> tuple[AnyFlow, AnyFlow, Mask]:
    """Return the flow, the backward flow where it leads to, and where that is inside."""
    there, back = as_flow(flow), as_flow(backward, "backward")
    if there.shape != back.shape:
        raise InputError(
            f"flow and backward must have the same shape, not {there.shape} and {back.shape}."
        )
    # A pixel reaches half a pixel from its center: the outermost ones at rest must not be outside
    # for some rounding.
    target = there.copy()
    for k, side in enumerate(there.shape[1::-1]):
        place = np.arange(side, dtype=there.dtype).reshape((-1,) if k == 0 else (-1, 1))
        inner = target[..., k].clip(-place, side - 1 - place)
        near = np.abs(target[..., k] - inner) <= 0.5
        target[..., k][near] = inner[near]
    return there, *warp(back, target, return_mask=True)


def _distance(there: AnyFlow, returned: AnyFlow, inside: Mask) -> Field:
    apart = there + returned
    distance: Field = np.hypot(apart[..., 0], apart[..., 1]).astype(np.float32)
    distance[~inside] = np.inf
    return distance
