"""A closer look: which part of a flow replaces that of the coarser scale before it."""

from __future__ import annotations

import numpy as np

from hamflow._types import Flow, Mask
from hamflow.stages import MatchEvidence

# How far a decided match speaks for what is around it, how decided it has to be, and changes that
# need no match. In pixels of the closer look (docs/decisions.md).
_RADIUS = 8
_DECIDED = 0.5
_LITTLE = 4.0


def closer_flow(matches: MatchEvidence, completed: Flow) -> Flow:
    """Return the completed flow where it is certain, and that of the coarser scale elsewhere.

    At a finer scale, borders and thin things are found where they are; but descriptors see less
    around each pixel, so that surfaces without texture are more often wrong, and as a whole.

    Parameters
    ----------
    matches : MatchEvidence
        What was matched at this scale, with the flow of the coarser one (`coarse`).
    completed : (H, W, 2) array of float32
        What the completion has made of it.
    """
    assert matches.coarse is not None
    assert matches.decided is not None
    change = np.einsum("yxc,yxc->yx", *[completed - matches.coarse] * 2)
    certain = _around(matches.trusted & (matches.decided > _DECIDED), _RADIUS)
    certain |= change < _LITTLE**2
    return np.where(certain[..., None], completed, matches.coarse)


def _around(mask: Mask, radius: int) -> Mask:
    """Return which pixels have one of the mask in the square around them."""
    for axis in (0, 1):
        sides = [(0, 0), (0, 0)]
        sides[axis] = radius + 1, radius
        sums = np.moveaxis(np.cumsum(np.pad(mask, sides), axis=axis, dtype=np.int32), axis, 0)
        mask = np.moveaxis(sums[2 * radius + 1 :] > sums[: -2 * radius - 1], 0, axis)
    return mask
