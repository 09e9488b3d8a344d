"""Checks of the arrays and settings that users pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import InputError


def pixel_array(image: Any, name: str) -> NDArray[Any]:
    """Return an image as `to_array` does."""
    if image is None:
        raise InputError(
            f"{name} is None; OpenCV's imread returns this for a file that it cannot read, so "
            "check the path."
        )
    return to_array(image, name)


def to_array(value: Any, name: str) -> NDArray[Any]:
    """Return what a user passes as an array: anything that NumPy can read without copying it.

    Tensors on the CPU are read by NumPy's own protocol, so no other library is imported here.
    """
    if value is None:
        raise InputError(f"{name} is None; pass an array.")
    try:
        return np.asarray(value)
    except Exception as error:  # of many kinds, depending on the library that the value is from
        calls = ".detach()" if getattr(value, "requires_grad", False) else ""
        calls += ".cpu()" if str(getattr(value, "device", "cpu")) != "cpu" else ""
        calls += ".float()" if str(getattr(value, "dtype", "")).endswith("bfloat16") else ""
        if calls:
            raise InputError(
                f"{name} is a tensor that NumPy cannot read as it is; pass {name}{calls}."
            ) from error
        why = next(iter(str(error).splitlines()), type(error).__name__).removesuffix(".")
        raise InputError(
            f"{name} cannot be read as an array ({why}); pass a NumPy array."
        ) from error


def as_flow(flow: ArrayLike, name: str = "flow") -> NDArray[np.floating[Any]]:
    """Return a flow as an H×W×2 array of float32, or of float64 if it is one.

    If it has another shape, no pixel or no real numbers, the InputError calls it `name`.
    """
    array = to_array(flow, name)
    if array.ndim != 3 or array.shape[2] != 2 or array.size == 0:
        raise InputError(
            f"{name} must have the shape (height, width, 2) with at least one pixel, "
            f"but has {array.shape}{_other_order(array, name, (2,))}."
        )
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} must hold real numbers, but is of type {array.dtype}.")
    # A byte-swapped float64 is converted, too: all later code expects the native order.
    return array.astype(np.float64 if array.dtype == np.float64 else np.float32, copy=False)


def as_image(image: ArrayLike, name: str = "image") -> NDArray[Any]:
    """Return an image as an array of shape H×W or H×W×3, of any type, with at least one pixel."""
    array = pixel_array(image, name)
    gray = array.ndim == 2
    color = array.ndim == 3 and array.shape[2] == 3
    if not (gray or color) or array.size == 0:
        raise InputError(
            f"{name} must have the shape (height, width) or (height, width, 3) with at least "
            f"one pixel, but has {array.shape}{_other_order(array, name, (1, 3, 4))}."
        )
    return array


def _other_order(array: NDArray[Any], name: str, channels: tuple[int, ...]) -> str:
    """Return a remedy for shapes that come from other libraries, as the end of a sentence."""
    if array.size == 0:
        return "; check how it was read or cut out"
    if array.ndim == 4:
        return f"; pass one of them at a time, such as {name}[0]"
    if array.ndim == 3 and array.shape[0] in channels and array.shape[2] not in channels:
        return (
            "; its channels come first, so move them to the end by .transpose(1, 2, 0), or by "
            ".permute(1, 2, 0) if it is a tensor"
        )
    return ""


def as_intensities(image: ArrayLike, name: str = "image") -> NDArray[Any]:
    """Return an image, H×W or H×W×3, of uint8, uint16, or floating point from 0 to 1."""
    array = as_image(image, name)
    if array.dtype.kind == "f":
        least, most = array.min(), array.max()
        if not (least >= 0 and most <= 1):  # NaN fails both
            raise InputError(
                f"{name} must have values from 0 to 1 if it is floating point; "
                f"{_into_range(float(least), float(most))}."
            )
    elif array.dtype not in (np.uint8, np.uint16):
        raise InputError(
            f"{name} must be of type uint8, uint16 or floating point, but is {array.dtype}; if its "
            f"values are from 0 to 255, pass it as uint8."
        )
    return array


def _into_range(least: float, most: float) -> str:
    if not (math.isfinite(least) and math.isfinite(most)):
        return "replace those that are NaN or infinite"
    if least < 0:
        return f"its smallest is {least:.3g}, so undo its normalization"
    if most <= 65535:
        return f"its largest is {most:.3g}, so divide it by {255 if most <= 255 else 65535}"
    return "divide it by its largest possible value"


def unit_intensities(image: ArrayLike) -> NDArray[np.float32]:
    """Return an image, which `as_intensities` checks, as float32 from 0 to 1."""
    array = as_intensities(image)
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    return array.astype(np.float32) / np.float32(np.iinfo(array.dtype).max)


def to_bytes(image: ArrayLike, name: str = "image") -> NDArray[np.uint8]:
    """Return an image as uint8; it may be a mask, uint8, uint16, or floating point from 0 to 1.

    A mask (bool) becomes black and white.
    """
    array = as_image(image, name)
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    array = as_intensities(array, name)
    if array.dtype == np.uint8:
        return array
    scale = 1 / 257 if array.dtype == np.uint16 else 255
    return np.rint(array * scale).astype(np.uint8)


def to_rgb(image: ArrayLike, name: str = "image") -> NDArray[np.uint8]:
    """Return an image as `to_bytes` does, and gray in three channels."""
    pixels = to_bytes(image, name)
    return np.repeat(pixels[:, :, None], 3, axis=2) if pixels.ndim == 2 else pixels


def check_range(
    config: object,
    name: str,
    least: float,
    most: float = math.inf,
    *,
    whole: bool = False,
    above: bool = False,
) -> None:
    """Raise an InputError unless the field `name` of the settings is a number in a range.

    The range is from `least` to `most`, or above `least` if `above` is set; `whole` demands a whole
    number.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_range(SimpleNamespace(rounds=2.5), "rounds", 0, 1000, whole=True)
    Traceback (most recent call last):
    ...
    hamflow.errors.InputError: rounds must be a whole number from 0 to 1000, not 2.5.
    """
    value = getattr(config, name)
    right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    # NaN fails the comparisons.
    if right and least <= value <= most and not (above and value == least):
        return
    low, high = (str(x) if isinstance(x, int) else f"{x:g}" for x in (least, most))
    if above:
        limits = f"above {low}" + (f" and at most {high}" if most < math.inf else "")
    else:
        limits = f"from {low} to {high}" if most < math.inf else f"of at least {low}"
    raise InputError(
        f"{name} must be {'a whole number' if whole else 'a number'} {limits}, not {value!r}."
    )
