"""Motion boundaries of a flow in plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def jumps(flow: Array) -> tuple[Array, Array]:
    """Return how much a flow changes to the right and lower neighbors, 0 at the border."""
    right, down = (np.zeros(flow.shape[:2], np.float32) for _ in range(2))
    right[:, :-1] = np.hypot(*np.moveaxis(np.diff(flow, axis=1), 2, 0))
    down[:-1] = np.hypot(*np.moveaxis(np.diff(flow, axis=0), 2, 0))
    return right, down


def largest_around(right: Array, down: Array, reach: int) -> Array:
    """Return the largest jump to be met within a square of `reach` pixels on all sides."""
    largest = np.maximum(right, down)
    largest[:, 1:] = np.maximum(largest[:, 1:], right[:, :-1])
    largest[1:] = np.maximum(largest[1:], down[:-1])
    height, width = largest.shape
    around = np.empty_like(largest)
    for y, x in np.ndindex(height, width):
        rows = slice(max(y - reach, 0), y + reach + 1)
        around[y, x] = largest[rows, max(x - reach, 0) : x + reach + 1].max()
    return around
