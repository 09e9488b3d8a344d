"""The distance of pixels to the boundaries of a mask."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hamflow.errors import InputError


def boundary(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which pixels share a side with a pixel of the other value, on both sides."""
    marks = np.zeros_like(mask)
    for here, there in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        differs = mask[here] != mask[there]
        marks[here] |= differs
        marks[there] |= differs
    return marks


def boundary_distance(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the Euclidean distance of each pixel to the nearest pixel of `boundary`.

    It is measured between pixel centers, and infinite if there is no boundary. Raises an InputError
    if scipy is not installed.
    """
    marks = boundary(mask)
    if not marks.any():
        return np.full(marks.shape, np.inf)
    try:
        from scipy.ndimage import distance_transform_edt  # noqa: PLC0415  (an extra)
    except ImportError:
        raise InputError(
            "Errors by the distance to occlusions need the package scipy: "
            "pip install 'hamflow[evaluate]'."
        ) from None
    return np.asarray(distance_transform_edt(~marks), np.float64)
