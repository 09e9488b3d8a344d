"""Checks of arguments before they reach the kernels; each error is one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow import _native
from hamflow._types import Bits, Phi
from hamflow.errors import InputError

FLOAT_MAX = float(np.finfo(np.float32).max)
_PHI_MAX = 1e15
"""Descriptors up to here cannot overflow, whatever m is: 2^24 products of 1e30 fit a float32."""

_MOST_WORDS = 2
"""Distances up to 128 are exact in every arithmetic of the kernels."""

Describe = Callable[[NDArray[Any]], Bits]
"""A function that gives every pixel of an image its 64 bits."""


def _array(value: object, name: str, dtype: type[np.generic], axes: str) -> NDArray[Any]:
    if not isinstance(value, np.ndarray):
        raise InputError(f"{name} must be a numpy array, not {type(value).__name__}.")
    ndim = axes.count("×") + 1
    if value.ndim != ndim or value.size == 0:
        raise InputError(
            f"{name} must have {ndim} axes ({axes}) and at least one element, "
            f"but its shape is {value.shape}."
        )
    if value.dtype != dtype:
        remedy = f"convert it with .astype(numpy.{np.dtype(dtype).name})"
        raise InputError(
            f"{name} must be of type {np.dtype(dtype).name}, not {value.dtype}; {remedy}."
        )
    if not value.flags.c_contiguous:
        raise InputError(
            f"{name} is not contiguous in memory; pass numpy.ascontiguousarray({name})."
        )
    return value


def check_bits(bits0: object, bits1: object) -> tuple[Bits, Bits]:
    """Return two descriptor fields, H×W or H×W×K uint64, of one shape."""
    first, second = _bits(bits0, "bits0"), _bits(bits1, "bits1")
    _same_shape(first, second, "bits0", "bits1")
    if words_of(first) > _MOST_WORDS:
        raise InputError(
            f"bits0 and bits1 must have one or two words per pixel, not {words_of(first)}."
        )
    return first, second


def _bits(value: object, name: str) -> Bits:
    return _array(value, name, np.uint64, "H×W×K" if getattr(value, "ndim", 2) == 3 else "H×W")


def words_of(bits: Bits) -> int:
    """Return how many words of 64 bits a pixel's descriptor has."""
    return 1 if bits.ndim == 2 else bits.shape[2]


def check_phi(phi0: object, phi1: object) -> tuple[Phi, Phi]:
    """Return two descriptor fields, H×W×m float32, of one shape and finite."""
    first = _array(phi0, "phi0", np.float32, "H×W×m")
    second = _array(phi1, "phi1", np.float32, "H×W×m")
    _same_shape(first, second, "phi0", "phi1")
    for array, name in ((first, "phi0"), (second, "phi1")):
        if not _native.all_within(array, _PHI_MAX):
            check_finite(array, name)
            raise InputError(
                f"{name} has values beyond ±{_PHI_MAX:g}, whose products overflow; scale it down."
            )
    return first, second


def check_volume(
    value: object, name: str, dtype: type[np.generic], shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return a volume of exactly this type and shape."""
    array = _array(value, name, dtype, "×".join(("H", "W", "D")[: len(shape)]))
    if array.shape != shape:
        raise InputError(f"{name} must have the shape {shape}, but has {array.shape}.")
    return array


def check_finite(array: NDArray[np.float32], name: str) -> None:
    """Refuse NaN and infinity, which would make every comparison meaningless."""
    if not _native.all_within(array, FLOAT_MAX):
        raise InputError(f"{name} has values that are NaN or infinite; replace them first.")


def check_distance(outside: object, words: int) -> int:
    """Return the Hamming distance of a target outside of the image."""
    if isinstance(outside, bool) or not isinstance(outside, int | np.integer):
        raise InputError(f"outside must be a whole number of bits, not {outside!r}.")
    if not 0 <= outside <= 64 * words:
        raise InputError(
            f"outside must be a Hamming distance from 0 to {64 * words}, not {outside}."
        )
    return int(outside)


def check_cost(outside: object, name: str = "outside") -> float:
    """Return a finite cost."""
    if isinstance(outside, bool) or not isinstance(outside, int | float | np.integer | np.floating):
        raise InputError(f"{name} must be a number, not {outside!r}.")
    # Compared before any conversion, which would warn of an overflow; NaN fails it too.
    size: Any = abs(outside)
    if not size <= float(np.finfo(np.float32).max):
        raise InputError(f"{name} must be finite in float32, not {outside!r}.")
    return float(outside)


def _same_shape(a: NDArray[Any], b: NDArray[Any], name_a: str, name_b: str) -> None:
    if a.shape != b.shape:
        raise InputError(
            f"{name_a} and {name_b} must have one shape, but have {a.shape} and {b.shape}."
        )
