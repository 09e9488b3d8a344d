"""How far pixels are from the boundaries of a mask."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hamflow.errors import InputError


def boundary(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which pixels share a side with one of the other value.

    These are on both sides of a boundary; the border of the image is none.
    """
    marks = np.zeros_like(mask)
    for here, there in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        differs = mask[here] != mask[there]
        marks[here] |= differs
        marks[there] |= differs
    return marks


def boundary_distance(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the exact Euclidean distance of each pixel to the nearest of `boundary`.

    Parameters
    ----------
    mask : (H, W) array of bool
        With at least one pixel.

    Returns
    -------
    distance : (H, W) array
        Between the centers of the pixels; 0 on the boundary itself, infinite if there is none.

    Raises
    ------
    InputError
        If scipy is not installed.
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
