"""How far a flow can be trusted, pixel by pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Logarithm of the expected error (plus a tenth of a pixel) as a linear function of the logarithms
# of what is known, fitted to rendered scenes: see benchmarks/confidence.py.
_FLOOR = 0.1
_WEIGHTS = {"constant": -0.5, "disagreement": 0.45, "distance": 0.15, "residual": 0.25}
_MOST = 100.0  # pixels: beyond that, lost is lost


def confidence(
    disagreement: NDArray[np.float32],
    distance: NDArray[np.float32],
    residual: NDArray[np.float32],
) -> NDArray[np.float32]:
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
    logs = {
        "disagreement": np.log(np.minimum(disagreement, _MOST) + _FLOOR),
        "distance": np.log(distance + np.float32(0.01)),
        "residual": np.log(residual + np.float32(0.002)),
    }
    return from_logs(logs)


def from_logs(logs: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Return the confidence from the logarithms of the three quantities."""
    expected = np.exp(_WEIGHTS["constant"] + sum(_WEIGHTS[name] * logs[name] for name in logs))
    return (1 / (1 + np.maximum(expected - _FLOOR, 0))).astype(np.float32)
