"""What the kernel of a chain pass refuses, past the checks of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hamflow import _native


def arguments(dtype: Any = np.int16) -> dict[str, Any]:
    """Good arguments, all arrays new."""
    share = np.float32 if dtype == np.float32 else np.uint16
    volumes = {name: np.zeros((4, 5, 6), dtype) for name in ("lam", "hold", "s")}
    arrays = {"edges": np.zeros((4, 5, 3), dtype), "shares": np.zeros(4, share)}
    return volumes | arrays | {"vertical": False, "reverse": False, "reach": 1}


def call(dtype: Any = np.int16, **changed: Any) -> None:
    kernel: Callable[..., Any] = _native.chain_pass
    kernel(**(arguments(dtype) | changed))


ARRAYS = ("lam", "hold", "s", "edges", "shares")
BOTH = pytest.mark.parametrize("dtype", [np.int16, np.float32])


@BOTH
def test_good_arguments(dtype: Any) -> None:
    call(dtype)
    call(dtype, s=None)
    call(dtype, shares=None)
    call(dtype, vertical=True, shares=arguments(dtype)["shares"][:3])


@BOTH
@pytest.mark.parametrize("name", ARRAYS)
def test_wrong_shapes(dtype: Any, name: str) -> None:
    array = arguments(dtype)[name]
    for axis in range(array.ndim):
        for size in (array.shape[axis] - 1, array.shape[axis] + 1):
            shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
            with pytest.raises(ValueError, match="shape"):
                call(dtype, **{name: np.zeros(shape, array.dtype)})
    for other in (array[0], array[None], 3, array.tolist()):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call(dtype, **{name: other})


@BOTH
def test_shares_are_of_the_chains(dtype: Any) -> None:
    with pytest.raises(ValueError, match="shares"):
        call(dtype, vertical=True)
    with pytest.raises(ValueError, match="shares"):
        call(dtype, shares=arguments(dtype)["shares"][:3])


@BOTH
@pytest.mark.parametrize("reach", [0, -1, -4, 3, 6, 8192, 2**31 - 1])
def test_reaches(dtype: Any, reach: int) -> None:
    with pytest.raises(ValueError, match="reach"):
        call(dtype, reach=reach)


@BOTH
@pytest.mark.parametrize("labels", [0, 4097])
def test_numbers_of_labels(dtype: Any, labels: int) -> None:
    volume = np.zeros((4, 5, labels), dtype)
    with pytest.raises(ValueError, match="labels"):
        call(dtype, lam=volume, hold=volume.copy(), s=None)


@BOTH
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("vertical", [False, True])
def test_empty_images(dtype: Any, axis: int, vertical: bool) -> None:
    good = arguments(dtype)
    empty = {name: np.delete(good[name], np.s_[:], axis) for name in ("lam", "hold", "edges")}
    for shares in (None, good["shares"][:0]):
        with pytest.raises(ValueError, match="side must be 1 to"):
            call(dtype, **empty, s=None, shares=shares, vertical=vertical)


@BOTH
@pytest.mark.parametrize("name", ARRAYS)
def test_wrong_types(dtype: Any, name: str) -> None:
    array = arguments(dtype)[name]
    other = np.float32 if dtype == np.int16 else np.int16
    for wrong in (other, np.float64, np.int32, np.int8, np.bool_):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call(dtype, **{name: array.astype(wrong)})


@BOTH
@pytest.mark.parametrize("name", ["lam", "hold", "s"])
def test_what_cannot_be_written(dtype: Any, name: str) -> None:
    array = arguments(dtype)[name]
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call(dtype, **{name: np.repeat(array, 2, axis=-1)[..., ::2]})  # no copy is made
    array.flags.writeable = False
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call(dtype, **{name: array})


def test_flags() -> None:
    for name in ("vertical", "reverse", "reach"):
        for bad in (None, "x", 0.5):
            with pytest.raises(TypeError, match="incompatible function arguments"):
                call(**{name: bad})
