"""Small filters of images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from hamflow._types import Flow

_VARIED = 1.0  # pixels: where vectors differ by less, there is nothing to decide
_AT_ONCE = 4096  # pixels, whose distances fit the cache


def box_mean(field: NDArray[Any], radius: int) -> NDArray[np.float64]:
    """Return the mean of the square around each pixel of an (H, W) field; the border repeats."""
    size = 2 * radius + 1
    padded = np.pad(field.astype(np.float64), radius, mode="edge")
    sums = np.pad(padded.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    total = sums[size:, size:] - sums[:-size, size:] - sums[size:, :-size] + sums[:-size, :-size]
    return np.asarray(total / size**2)


def vector_median(flow: Flow, radius: int) -> Flow:
    """Give each pixel the vector of its square that is nearest to all others there.

    So a few stray vectors vanish, and no vector appears that was not there.
    """
    size = 2 * radius + 1
    padded = np.pad(flow, ((radius, radius), (radius, radius), (0, 0)), mode="edge")
    squares = sliding_window_view(padded, (size, size), axis=(0, 1))
    spread = squares.max(axis=(3, 4)) - squares.min(axis=(3, 4))
    varied = np.nonzero(spread.max(axis=2) > _VARIED)
    median = flow.copy()
    around = squares[varied].reshape(len(varied[0]), 2, size * size)
    for part in range(0, len(around), _AT_ONCE):
        vectors = around[part : part + _AT_ONCE]
        apart = np.abs(vectors[:, :, :, None] - vectors[:, :, None]).sum(axis=(1, 3))
        best = apart.argmin(axis=1)[:, None, None]
        rows, columns = (axis[part : part + _AT_ONCE] for axis in varied)
        median[rows, columns] = np.take_along_axis(vectors, best, axis=2)[..., 0]
    return median
