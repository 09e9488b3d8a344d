"""How far a flow can be trusted, pixel by pixel."""

from __future__ import annotations

import numpy as np

from hamflow._types import Field

NAMES = ("disagreement", "distance", "residual")
"""What the confidence is made of."""

# Logarithm of the expected error (plus a tenth of a pixel) as a linear function of the logarithms
# of what is known, fitted to rendered scenes: experiments/scripts/confidence.py.
_FLOOR = 0.1
_CONSTANT = 0.549
_WEIGHTS = {"disagreement": 0.394, "distance": 0.256, "residual": 0.073}
_MOST = 100.0  # pixels: beyond that, lost is lost


def confidence(disagreement: Field, distance: Field, residual: Field) -> Field:
    """Return the confidence in a flow, from 0 to 1.

    It is ``1 / (1 + e)`` with e the error in pixels that is to be expected: 0.5 means about a
    pixel.

    Parameters
    ----------
    disagreement : (H, W) array
        Of forward and backward flow, in pixels; infinite outside of the image.
    distance : (H, W) array
        Length of the path to the nearest match.
    residual : (H, W) array
        Difference between the first image and the second, fetched back by the flow.
    """
    logs = logarithms(disagreement, distance, residual)
    expected = np.exp(_CONSTANT + sum(_WEIGHTS[name] * logs[name] for name in NAMES))
    return (1 / (1 + np.maximum(expected - _FLOOR, 0))).astype(np.float32)


def logarithms(disagreement: Field, distance: Field, residual: Field) -> dict[str, Field]:
    """Return the logarithms that the confidence is a function of."""
    return {
        "disagreement": np.log(np.minimum(disagreement, np.float32(_MOST)) + np.float32(_FLOOR)),
        "distance": np.log(distance + np.float32(0.01)),
        "residual": np.log(residual + np.float32(0.002)),
    }
