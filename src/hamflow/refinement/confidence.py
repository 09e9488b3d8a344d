"""Assessment: how far a flow can be trusted, pixel by pixel, and what is hidden."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._room import empty
from hamflow._scale import reduced, upsample_linear
from hamflow._types import Bits, Field, Flow, FrameLike, Mask
from hamflow.refinement._networks import network
from hamflow.refinement.evidence import NAMES, Matched, surroundings
from hamflow.refinement.variational import features_of

_BLUR = 0.6  # of the compared colors, in pixels


def assess(
    frames: tuple[FrameLike, FrameLike],
    flows: Sequence[Flow],
    bits: tuple[Bits, Bits],
    matched: Sequence[Matched],
    scale: int,
    *,
    finest: int = 1,
    completion: str = "labeling",
) -> tuple[Mask, Field]:
    """Return which pixels are hidden in the second image, and the confidence in the flow.

    The confidence is ``1 / (1 + e)`` with e the error in pixels that is to be expected: the mean of
    the errors of all pixels of which as much is known. Two networks of one layer compute e and
    whether a pixel is hidden from the evidence that `evidence` returns. The first grows with
    everything that speaks for an error, and falls with everything that speaks against one. Where
    the flow leaves the image by more than half a pixel, a pixel is hidden; where the way back ends
    within a tenth of a pixel, it is not. Both networks were
    fitted to rendered scenes by ``experiments/scripts/confidence.py``.

    Parameters
    ----------
    frames : (FrameLike, FrameLike)
        The two images.
    flows : sequence of (H, W, 2) array of float32
        Forward and backward, at full size.
    bits : (Bits, Bits)
        Descriptors of the images at the matching scale.
    matched : sequence of Matched
        What is known of the matches, forward and backward.
    scale : int
        The matching scale.
    finest : int
        The scale at which to assess the flow; see `assessed_at`.
    completion : str
        The method by which the matches were completed: "choice" has errors of its own.

    Returns
    -------
    hidden : (H, W) array of bool
    confidence : (H, W) array of float32
    """
    around = surroundings(frames, bits, matched, scale)
    return assess_with(frames, flows, around, scale, finest=finest, completion=completion)


def assess_with(
    frames: tuple[FrameLike, FrameLike],
    flows: Sequence[Flow],
    around: NDArray[np.float32],
    scale: int,
    *,
    finest: int = 1,
    completion: str = "labeling",
) -> tuple[Mask, Field]:
    """Return what `assess` does, if what `surroundings` returns is known already."""
    fitted = network("confidence-choice" if completion == "choice" else "confidence")
    certain, hidden = _run(frames, flows, around, scale, fitted, finest=finest)
    if certain.shape != frames[0].shape:
        both = np.stack([certain, hidden], axis=2)
        factor = min(finest, scale)
        certain, hidden = np.moveaxis(upsample_linear(both, factor, frames[0].shape), 2, 0)
        certain = np.ascontiguousarray(certain)
    return hidden > 0, certain


def assessed_at(finest: int, scale: int) -> int:
    """Return the scale at which a flow is assessed.

    The finest one at which it was refined; half of the size is enough for coarse matches, and takes
    a quarter of the time.
    """
    return max(finest, min(2, scale // 2))


def evidence(
    frames: tuple[FrameLike, FrameLike],
    flows: Sequence[Flow],
    bits: tuple[Bits, Bits],
    matched: Sequence[Matched],
    scale: int,
    *,
    finest: int = 1,
) -> NDArray[np.float32]:
    """Return what the confidence is computed from, (H, W, N), in the order of `NAMES`.

    Lengths are in pixels of the images, at whatever scale the flow is judged.

    Parameters
    ----------
    frames, flows, bits, matched, scale, finest
        As for `assess`.

    Returns
    -------
    (H, W, N) array of float32
        At the finest scale at which the flow was refined. The logarithms of the forward-backward
        disagreement; how far outside of the image the flow leads; the logarithms of its length, of
        the differences of colors and of gradients between its ends, of the gradients there, and of
        the largest difference to a neighbor; the brightness; how many pixels of the second image
        lead here; then what `surroundings` says; and the logarithm of the matching scale.
    """
    known = np.empty((*frames[0].at(min(finest, scale)).shape[:2], len(NAMES)), np.float32)
    around = surroundings(frames, bits, matched, scale)
    _run(frames, flows, around, scale, network("confidence"), finest=finest, known=known)
    return known


def _run(
    frames: tuple[FrameLike, FrameLike],
    flows: Sequence[Flow],
    around: NDArray[np.float32],
    scale: int,
    fitted: NDArray[np.float32],
    *,
    finest: int,
    known: NDArray[np.float32] | None = None,
) -> tuple[Field, Field]:
    unit = min(finest, scale)
    flow, backward = flows
    if unit > 1:
        flow, backward = (reduced(f, unit) / np.float32(unit) for f in flows)
    first, second = (features_of(frame, unit, _BLUR) for frame in frames)
    shape = flow.shape[:2]
    cover, certain, hidden = (empty(shape, np.float32) for _ in range(3))
    _native.count_arrivals(backward, cover)
    _native.assess(
        flow,
        backward,
        first,
        second,
        cover,
        around,
        scale // unit,
        (unit, math.log2(scale)),
        fitted,
        known,
        certain,
        hidden,
    )
    return certain, hidden
