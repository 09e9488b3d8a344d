"""Large arrays in memory that is handed on: fresh memory costs time, page by page."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native

_SMALLEST = 1 << 16  # bytes; numpy keeps smaller arrays itself


def empty(shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """Return an array of undefined content, as `numpy.empty` does.

    When it is not used any more, its memory serves the next array (native/pages.hpp).
    """
    count = math.prod(shape)
    size = count * np.dtype(dtype).itemsize
    if size < _SMALLEST:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, _native.room(size))


def zeros(shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """Return an array of zeros, as `numpy.zeros` does, cleared by all threads."""
    array = empty(shape, dtype)
    _native.clear(array.reshape(-1).view(np.uint8))
    return array
