"""How far pixels are from the boundaries of a mask: exact, in whole numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
    """Return the Euclidean distance of each pixel to the nearest of `boundary`.

    Parameters
    ----------
    mask : (H, W) array of bool
        With at least one pixel.

    Returns
    -------
    distance : (H, W) array
        Between the centers of the pixels; 0 on the boundary itself, infinite if there is none.
    """
    return distance_to(boundary(mask))


def distance_to(marks: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the Euclidean distance of each pixel to the nearest one that is marked.

    Parameters
    ----------
    marks : (H, W) array of bool
        With at least one pixel.

    Returns
    -------
    distance : (H, W) array
        Square roots of whole numbers, rounded once; infinite if nothing is marked.

    References
    ----------
    .. [1] P. F. Felzenszwalb, D. P. Huttenlocher: Distance transforms of sampled functions. Theory
       of Computing 8, 2012.
    .. [2] A. Meijster, J. Roerdink, W. Hesselink: A general algorithm for computing distance
       transforms in linear time. Mathematical Morphology and its Applications, 2000.
    """
    if not marks.any():
        return np.full(marks.shape, np.inf)
    gap = _gap_in_column(marks)
    return np.sqrt(_lower_envelope(gap * gap))


def _gap_in_column(marks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how far the nearest mark of the same column is; too far to matter without one."""
    height, width = marks.shape
    far = 2 * (height + width)
    rows = np.arange(height, dtype=np.int64)[:, None]
    above = np.maximum.accumulate(np.where(marks, rows, -far))
    below = np.minimum.accumulate(np.where(marks, rows, far)[::-1])[::-1]
    # Without a mark this is above height + width, and so loses against any column with one.
    return np.minimum(rows - above, below - rows)


def _lower_envelope(cost: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the minimum over k of (x - k)² + cost[y, k] for each pixel (y, x).

    In each row this is the lower envelope of parabolas, built from the left on a stack. All rows
    are done at once, which is what makes it fast enough in Python.
    """
    height, width = cost.shape
    rows = np.arange(height)
    apex = np.zeros((height, width), np.int64)  # the column k of each parabola on the stack
    start = np.zeros((height, width), np.int64)  # the first column where it is the lowest
    top = np.zeros(height, np.int64)
    for x in range(1, width):
        # Take away the parabolas that the new one is below of from their first column on.
        active = rows
        while active.size:
            first, old = start[active, top[active]], apex[active, top[active]]
            above = (first - old) ** 2 + cost[active, old] > (first - x) ** 2 + cost[active, x]
            active = active[above]
            top[active] -= 1
            active = active[top[active] >= 0]
        # What remains on top is the lowest up to where the two meet; of whole columns, all before
        # the next. An empty stack is overwritten from column 0 on: what stood there is to its left,
        # so that nothing is divided by 0.
        old = apex[rows, np.maximum(top, 0)]
        meet = (x * x - old * old + cost[:, x] - cost[rows, old]) // (2 * (x - old))
        first = np.where(top < 0, 0, meet + 1)
        pushed = rows[first < width]
        top[pushed] += 1
        apex[pushed, top[pushed]] = x
        start[pushed, top[pushed]] = first[pushed]

    nearest = np.empty_like(cost)
    for x in reversed(range(width)):
        nearest[:, x] = apex[rows, top]
        top -= start[rows, top] == x
    offset = np.arange(width) - nearest
    return np.asarray(offset * offset + np.take_along_axis(cost, nearest, axis=1))
