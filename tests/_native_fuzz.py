"""Random calls of the compiled functions: they may raise a ValueError or TypeError, never crash.

``python tests/_native_fuzz.py SEED COUNT`` makes COUNT calls of each function; with a compiled
module that was built with sanitizers, every access outside of an array is reported.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from _native_calls import FUNCTIONS, Array, good_arguments
from hamflow import _native

WHOLE = (-(2**31), -1, 0, 1, 2, 3, 64, 127, 128, 255, 256, 4096, 32767, 2**24 + 1, 2**31 - 1)
REAL = (0.0, -0.0, 1e-45, 0.5, 1.0, -1.0, 16384.0, 1e9, 3e38, -3e38, np.inf, -np.inf, np.nan)
WORDS = ("u", "v", "rows", "columns", "pixels", "")


def misaligned(array: Array) -> Array:
    """A copy that begins at an odd address."""
    buffer = np.zeros(array.nbytes + 16, np.uint8)
    start = 1 - buffer.ctypes.data % 2
    view = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def random_content(rng: np.random.Generator, array: Array) -> Array:
    kind = array.dtype.kind
    if kind == "f":
        values = np.where(
            rng.random(array.shape) < 0.3,
            rng.choice(REAL, array.shape),
            rng.normal(0, 10, array.shape),
        )
        with np.errstate(all="ignore"):
            return values.astype(array.dtype)
    if kind == "b" or rng.random() < 0.7:  # as labels, pixels and filters are
        return rng.integers(0, 2, array.shape).astype(array.dtype)
    limits = np.iinfo(array.dtype)
    return rng.integers(limits.min, limits.max, array.shape, array.dtype, endpoint=True)


def other_shape(rng: np.random.Generator, array: Array) -> Array:
    shape = list(array.shape)
    axis = rng.integers(0, array.ndim)
    shape[axis] = int(rng.integers(0, 2 * shape[axis] + 2))
    return np.resize(array, shape) if array.size and 0 not in shape else np.zeros(shape, "f4")


CHANGES: list[Callable[[np.random.Generator, Array], Array]] = [
    lambda rng, array: misaligned(array),
    lambda rng, array: np.repeat(array, 2, axis=-1)[..., ::2],
    lambda rng, array: np.asfortranarray(array),
    lambda rng, array: array.astype(rng.choice(["f4", "f8", "i2", "u1", "i8", ">f4", "?"])),
    lambda rng, array: array[None].copy(),
    other_shape,
    *[random_content] * 6,
]


def changed(rng: np.random.Generator, value: Any) -> Any:
    """Return another value in the place of an argument, often of the same type."""
    if isinstance(value, np.ndarray):
        return CHANGES[rng.integers(0, len(CHANGES))](rng, value)
    if isinstance(value, tuple | list):
        chosen = rng.integers(0, max(1, len(value)))  # several large counts could take hours
        return type(value)(changed(rng, v) if k == chosen else v for k, v in enumerate(value))
    choices = {bool: (False, True), int: WHOLE, float: REAL, str: WORDS}
    if type(value) in choices:
        return type(value)(rng.choice(choices[type(value)]))
    return value


def random_call(rng: np.random.Generator, function: str) -> bool:
    """Call a function with some changed arguments; return whether it accepted them."""
    arguments = good_arguments(function)
    # All with other content, so that the ones with other shapes meet something.
    for name, value in arguments.items():
        if isinstance(value, np.ndarray) and rng.random() < 0.5:
            arguments[name] = random_content(rng, value)
        elif rng.random() < 0.2:
            arguments[name] = changed(rng, value)
    name = rng.choice(list(arguments))
    if rng.random() < 0.5:
        arguments[name] = changed(rng, arguments[name])
    try:
        getattr(_native, function)(**arguments)
    except (ValueError, TypeError):
        return False
    return True


def main(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")  # of conversions that lose something
    accepted = 0
    for function in FUNCTIONS:
        here = sum(random_call(rng, function) for _ in range(count))
        assert here, f"{function} accepted nothing"
        accepted += here
    print(f"{count * len(FUNCTIONS)} calls, {accepted} accepted")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
