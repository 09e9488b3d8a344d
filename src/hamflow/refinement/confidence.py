"""Assessment: how far a flow can be trusted, pixel by pixel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._room import empty
from hamflow._scale import upsample_linear
from hamflow._types import Field, Flow, FrameLike, Mask
from hamflow.flow import warp
from hamflow.refinement.consistency import HIDING, disagreement
from hamflow.refinement.variational import features_of

NAMES = ("disagreement", "distance", "residual")
"""What the confidence is made of."""

# Logarithm of the expected error (plus a tenth of a pixel) as a linear function of the logarithms
# of what is known, fitted to rendered scenes: experiments/scripts/confidence.py.
_FLOOR = 0.1
_CONSTANT = 0.404
_WEIGHTS = {"disagreement": 0.549, "distance": 0.105, "residual": 0.085}
_MOST = 100.0  # pixels: larger disagreements all count as this one
_BLUR = 0.6  # of the compared colors, in pixels


def assess(
    frames: tuple[FrameLike, FrameLike], flows: Sequence[Flow], distance: Field, scale: int
) -> tuple[Mask, Field]:
    """Return what `occluded` and `confidence` say of a flow, in one pass.

    Parameters are those of `evidence`.
    """
    flow, backward = flows
    first, second = (features_of(frame, 1, _BLUR) for frame in frames)
    shape = flow.shape[:2]
    hidden, certain = empty(shape, np.uint8), empty(shape, np.float32)
    _native.assess(
        flow,
        backward,
        HIDING,
        first,
        second,
        distance,
        scale,
        (_CONSTANT, _WEIGHTS["disagreement"], _WEIGHTS["distance"], _WEIGHTS["residual"]),
        (_MOST, _FLOOR),
        hidden,
        certain,
    )
    return hidden.view(np.bool_), certain


def confidence(apart: Field, distance: Field, residual: Field) -> Field:
    """Return the confidence in a flow, from 0 to 1.

    It is ``1 / (1 + e)`` with e the error in pixels that is to be expected: 0.5 means about a
    pixel.

    Parameters
    ----------
    apart : (H, W) array
        Disagreement of forward and backward flow, in pixels; infinite outside of the image.
    distance : (H, W) array
        Length of the path to the nearest match.
    residual : (H, W) array
        Mean absolute difference between the first image and the second one, warped by the flow.
    """
    logs = logarithms(apart, distance, residual)
    expected = np.exp(_CONSTANT + sum(_WEIGHTS[name] * logs[name] for name in NAMES))
    return (1 / (1 + np.maximum(expected - _FLOOR, 0))).astype(np.float32)


def logarithms(apart: Field, distance: Field, residual: Field) -> dict[str, Field]:
    """Return the logarithms that the confidence is a function of."""
    return {
        "disagreement": np.log(np.minimum(apart, np.float32(_MOST)) + np.float32(_FLOOR)),
        "distance": np.log(distance + np.float32(0.01)),
        "residual": np.log(residual + np.float32(0.002)),
    }


def evidence(
    frames: tuple[FrameLike, FrameLike], flows: Sequence[Flow], distance: Field, scale: int
) -> tuple[Field, Field, Field]:
    """Return what the confidence is computed from.

    Parameters
    ----------
    frames : (FrameLike, FrameLike)
        The two images.
    flows : sequence of (H, W, 2) array of float32
        Forward and backward, at full size.
    distance : (H, W) array of float32
        Of each pixel to the nearest match, at the matching scale.
    scale : int
        The matching scale.

    Returns
    -------
    disagreement, distance, residual : (H, W) array of float32
        At full size, as `confidence` takes them.
    """
    first, second = (features_of(frame, 1, _BLUR)[..., :3] for frame in frames)
    residual = np.abs(first - warp(second, flows[0])).mean(axis=2)
    distance = upsample_linear(distance, scale, frames[0].shape)
    return disagreement(flows[0], flows[1]), distance, residual
