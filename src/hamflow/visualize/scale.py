"""The length in pixels that a picture shows in full color: one rule for all pictures."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from statistics import median_low
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_flow
from hamflow.errors import InputError
from hamflow.flow import row_blocks

_SHARE = 95  # percent of the vectors, or of the frames, that are not beyond full color
_LEAST = 1.0  # pixels: what moves less than this should not look like motion
_RECENT = 3  # frames; a single wrong one is never their median
_RISE, _FALL = 0.3, 0.05  # share of the way to the median that is taken with each frame
_FASTEST_RISE, _FASTEST_FALL = 1.5, 1.05  # factors from frame to frame


def typical_length(flow: ArrayLike) -> float:
    """Return the length that pictures of a flow show in full color, unless `max_flow` is given.

    Parameters
    ----------
    flow : (H, W, 2) array_like
        The flow to show.

    Returns
    -------
    length : float
        The 95th percentile of the lengths of known vectors, at least 1 pixel. With the maximum, a
        few wrong vectors would make all others pale.
    """
    vectors = as_flow(flow)
    lengths = np.empty(vectors.shape[:2], vectors.dtype)
    with np.errstate(over="ignore"):
        for rows in row_blocks(*lengths.shape):
            np.hypot(vectors[rows, :, 0], vectors[rows, :, 1], out=lengths[rows])
    known = lengths[np.isfinite(lengths)]
    if not known.size:
        return _LEAST
    return max(_LEAST, float(np.percentile(known, _SHARE, overwrite_input=True)))


def common_length(lengths: Iterable[float]) -> float:
    """Return one length for the pictures of many flows, such as all frames of a video.

    This needs two passes over a video, and gives every frame the same scale. `RunningScale` needs
    one.

    Parameters
    ----------
    lengths : iterable of float
        The `typical_length` of each flow.

    Returns
    -------
    length : float
        Their 95th percentile, so that a few wild frames do not make all others pale; 1 pixel if
        there is no length.

    Raises
    ------
    InputError
        If a length is not positive.

    Examples
    --------
    >>> from hamflow.visualize import common_length
    >>> common_length([1.0] * 10 + [12.0] * 30)
    12.0
    """
    known = [checked_length(length) for length in lengths]
    return max(_LEAST, float(np.percentile(known, _SHARE))) if known else _LEAST


class RunningScale:
    """The length in full color for each frame of a video, without looking ahead.

    It follows the `typical_length` of the frames: up within a few frames, so that motion after a
    still opening soon has shades again, and down over seconds, so that colors do not flicker. A
    single wild frame does not change it. From one frame to the next it grows by at most 50 % and
    shrinks by at most 5 %. Vectors beyond it are clamped to full color, so they are never dark.

    The same lengths always give the same scales: to continue a video, add the lengths of its
    earlier frames again.

    Examples
    --------
    >>> from hamflow.visualize import RunningScale
    >>> scale = RunningScale()
    >>> [round(scale.add(length), 1) for length in (1, 1, 8, 8, 8, 8, 8, 8)]
    [1.0, 1.0, 1.0, 1.5, 2.2, 3.3, 4.3, 5.2]
    """

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._length: float | None = None

    def add(self, length: float) -> float:
        """Take the `typical_length` of the next frame; return the length in full color for it.

        Raises
        ------
        InputError
            If the length is not positive.
        """
        self._recent.append(checked_length(length))
        # Of two, the smaller one: a wild second frame should not count, either.
        usual = median_low(self._recent)
        if self._length is None:
            self._length = usual
        else:
            # In logarithms, so that a rise from 1 to 2 looks as a rise from 10 to 20.
            way = math.log(usual / self._length)
            step = max(_FALL * way, -math.log(_FASTEST_FALL))
            if way > 0:
                step = min(_RISE * way, math.log(_FASTEST_RISE))
            self._length *= math.exp(step)
        return self._length

    def cut(self) -> None:
        """Start anew with the next frame, which shows another scene."""
        self._recent.clear()
        self._length = None


def checked_length(length: float, name: str = "length") -> float:
    """Return a length, if it can be that of vectors in full color."""
    if not 0 < length < math.inf:
        raise InputError(f"{name} must be a positive number of pixels, but is {length}.")
    return float(length)


def to_draw(flow: ArrayLike, max_flow: float | None) -> tuple[NDArray[np.floating[Any]], float]:
    """Return a flow that may have unknown vectors, but no infinite ones, and its full length."""
    vectors = as_flow(flow)
    if np.isinf(vectors).any():
        raise InputError("flow has infinite values; mark unknown pixels with NaN.")
    if max_flow is None:
        return vectors, typical_length(vectors)
    return vectors, checked_length(max_flow, "max_flow")
