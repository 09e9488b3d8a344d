"""Forward and backward flow against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._check import as_flow
from hamflow.errors import InputError
from hamflow.flow import warp

Flow = NDArray[np.floating[Any]]

# Sundaram, Brox, Keutzer: Dense point trajectories by GPU-accelerated large displacement optical
# flow. ECCV 2010.
_RELATIVE = 0.01
_ABSOLUTE = 0.5


def disagreement(flow: Flow, backward: Flow) -> NDArray[np.float32]:
    """Return how far from its start a pixel ends up that goes forward and then back.

    Parameters
    ----------
    flow, backward : (H, W, 2) array
        From the first image to the second, and from the second to the first.

    Returns
    -------
    (H, W) array of float32
        In pixels; infinite where the flow leaves the image.
    """
    there, back = as_flow(flow), as_flow(backward, "backward")
    if there.shape != back.shape:
        raise InputError(
            f"flow and backward must have the same shape, not {there.shape} and {back.shape}."
        )
    fetched, inside = warp(back, there, return_mask=True)
    apart = there + fetched
    distance: NDArray[np.float32] = np.hypot(apart[..., 0], apart[..., 1]).astype(np.float32)
    distance[~inside] = np.inf
    return distance


def consistent(flow: Flow, backward: Flow, tolerance: float = 1.0) -> NDArray[np.bool_]:
    """Return where both directions agree within `tolerance` pixels, for whole-pixel flow."""
    # A little more, for the rounding of the bilinear weights.
    agree: NDArray[np.bool_] = disagreement(flow, backward) <= tolerance + 0.01
    return agree


def occluded(flow: Flow, backward: Flow) -> NDArray[np.bool_]:
    """Return which pixels of the first image are not to be seen in the second.

    Where the flow leaves the image, and where the way back ends elsewhere: farther away than a
    tenth of the lengths and half a pixel explain.

    Parameters
    ----------
    flow, backward : (H, W, 2) array
        From the first image to the second, and from the second to the first.

    Returns
    -------
    (H, W) array of bool
    """
    distance = disagreement(flow, backward)
    there = as_flow(flow)
    fetched = warp(as_flow(backward), there)
    lengths = np.square(there).sum(axis=2) + np.square(fetched).sum(axis=2)
    # Unknown flow compares with nothing.
    visible: NDArray[np.bool_] = np.square(distance) <= _RELATIVE * lengths + _ABSOLUTE
    return ~visible | np.isinf(distance)
