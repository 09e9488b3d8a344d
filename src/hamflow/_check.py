"""Validation of the arrays that users hand in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import InputError


def as_flow(flow: ArrayLike, name: str = "flow") -> NDArray[np.floating[Any]]:
    """Return `flow` as an H×W×2 array of float32, or of float64 where it already was.

    Parameters
    ----------
    flow : array_like
        Real numbers, H×W×2, with at least one pixel.
    name : str
        How the error message calls the argument.

    Raises
    ------
    InputError
        If the shape or the type is another.
    """
    array = np.asarray(flow)
    if array.ndim != 3 or array.shape[2] != 2 or array.size == 0:
        raise InputError(
            f"{name} must have the shape (height, width, 2) with at least one pixel, "
            f"but has {array.shape}."
        )
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} must hold real numbers, but is of type {array.dtype}.")
    # A byte-swapped float64 is converted too: everything behind expects native order.
    return array.astype(np.float64 if array.dtype == np.float64 else np.float32, copy=False)


def as_image(image: ArrayLike, name: str = "image") -> NDArray[Any]:
    """Return `image` as an array of shape H×W or H×W×3 with at least one pixel.

    The type of its elements is left to the caller to judge.

    Raises
    ------
    InputError
        If the shape is another.
    """
    array = np.asarray(image)
    gray = array.ndim == 2
    color = array.ndim == 3 and array.shape[2] == 3
    if not (gray or color) or array.size == 0:
        raise InputError(
            f"{name} must have the shape (height, width) or (height, width, 3) with at least "
            f"one pixel, but has {array.shape}."
        )
    return array


def as_intensities(image: ArrayLike, name: str = "image") -> NDArray[Any]:
    """Return `image` as `as_image` does if it is uint8, uint16 or floating point in 0..1.

    Raises
    ------
    InputError
        If its shape, type or values are others.
    """
    array = as_image(image, name)
    if array.dtype.kind == "f":
        if not ((array >= 0) & (array <= 1)).all():
            raise InputError(
                f"{name} must have values from 0 to 1 if it is of floating point; divide it by its "
                "largest possible value."
            )
    elif array.dtype not in (np.uint8, np.uint16):
        raise InputError(
            f"{name} must be of type uint8, uint16 or floating point, but is {array.dtype}."
        )
    return array
