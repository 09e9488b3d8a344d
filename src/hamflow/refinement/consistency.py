"""Forward and backward flow against each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._check import as_flow
from hamflow._types import AnyFlow, Field, Flow, Mask
from hamflow.errors import InputError

# Sundaram, Brox, Keutzer: Dense point trajectories by GPU-accelerated large displacement optical
# flow. ECCV 2010. Relative and absolute part of the largest squared disagreement.
HIDING = (0.01, 0.5)


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
    there, back = _both(flow, backward)
    apart = np.empty(there.shape[:2], np.float32)
    _native.there_and_back(there, back, HIDING, apart, None)
    return apart


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
    elsewhere: ``d² > 0.01 (|f|² + |b|²) + 0.5``, with d the disagreement, f the flow and b the
    backward flow at its end.

    Parameters
    ----------
    flow, backward : (H, W, 2) array
        From the first image to the second, and from the second to the first.

    Returns
    -------
    (H, W) array of bool
    """
    there, back = _both(flow, backward)
    hidden = np.empty(there.shape[:2], np.uint8)
    _native.there_and_back(there, back, HIDING, None, hidden)
    return hidden.view(np.bool_)


def _both(flow: AnyFlow, backward: AnyFlow) -> tuple[Flow, Flow]:
    """Return two flows of one shape as the kernel takes them."""
    there, back = as_flow(flow), as_flow(backward, "backward")
    if there.shape != back.shape:
        raise InputError(
            f"flow and backward must have the same shape, not {there.shape} and {back.shape}."
        )
    return np.ascontiguousarray(there, np.float32), np.ascontiguousarray(back, np.float32)
