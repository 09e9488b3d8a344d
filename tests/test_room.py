"""Memory that is handed on from array to array."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hamflow import Estimator, _native, set_num_threads
from hamflow._room import empty, zeros

MOST_KEPT, ALWAYS_KEPT = 512 << 20, 128 << 20
"""The limits in native/pages.cpp."""


@pytest.mark.parametrize("shape", [(), (0, 4), (5,), (300, 400, 2)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_shape_and_type(shape: tuple[int, ...], dtype: type[np.generic]) -> None:
    for array in (empty(shape, dtype), zeros(shape, dtype)):
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.aligned


@pytest.mark.parametrize("threads", [1, 3])
def test_zeros_after_use(threads: int) -> None:
    set_num_threads(threads)
    for _ in range(3):
        array = zeros((1000, 1501), np.int16)
        assert not array.any()
        array[:] = -1
        del array


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 300_000)), max_size=40))
def test_living_arrays_share_nothing(steps: list[tuple[int, int]]) -> None:
    alive: dict[int, np.ndarray] = {}
    for number, (name, size) in enumerate(steps):
        alive.pop(name, None)
        alive[name] = empty((size,), np.uint32)
        alive[name][:] = number
        expected = {n: i for i, (n, _) in enumerate(steps[: number + 1])}
        for other, array in alive.items():
            assert (array == expected[other]).all()


def test_memory_is_used_again() -> None:
    first = empty((3 << 20,), np.uint8)
    address = first.ctypes.data
    view = first[10:]
    del first
    assert empty((3 << 20,), np.uint8).ctypes.data != address  # the view still needs it
    before = _native.kept_bytes()
    del view
    assert _native.kept_bytes() > before
    assert empty((3 << 20,), np.uint8).ctypes.data == address


def test_little_is_kept() -> None:
    rooms = [empty((150 << 20,), np.uint8) for _ in range(6)]  # of which no page is touched
    del rooms
    assert 0 < _native.kept_bytes() <= MOST_KEPT


def test_what_is_kept_makes_nothing_larger() -> None:
    _native.release_kept()
    empty((300 << 20,), np.uint8)
    assert _native.kept_bytes() >= 300 << 20  # so much was in use
    larger = empty((400 << 20,), np.uint8)
    assert _native.kept_bytes() <= ALWAYS_KEPT  # beside the larger one there is no room for it
    del larger
    assert _native.kept_bytes() >= 400 << 20
    _native.release_kept()
    rooms = [empty((30 << 20,), np.uint8) for _ in range(4)]
    rooms.pop()
    small = empty((5 << 20,), np.uint8)  # for which that one is too large
    assert 30 << 20 <= _native.kept_bytes() <= ALWAYS_KEPT
    del rooms, small


def test_a_limit_of_memory_counts_what_others_left() -> None:
    empty((400 << 20,), np.uint8)
    assert _native.kept_bytes() >= 400 << 20
    image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    Estimator("realtime", max_memory="300MB").estimate(image, image)
    assert _native.kept_bytes() <= ALWAYS_KEPT


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_after_fork() -> None:
    array = zeros((1 << 20,), np.uint8)
    child = os.fork()
    if child == 0:
        array[:] = 1  # its own copy
        fresh = zeros((1 << 20,), np.uint8)
        os._exit(0 if array.all() and not fresh.any() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not array.any()


@given(
    arrays.arrays(
        arrays.integer_dtypes(endianness="=")
        | arrays.floating_dtypes(endianness="=", sizes=(32, 64)),
        arrays.array_shapes(min_dims=2, max_dims=3, max_side=40),
    )
)
def test_turn(array: np.ndarray) -> None:
    array = array.reshape(*array.shape[:2], -1)
    expected = np.ascontiguousarray(array.swapaxes(0, 1))
    out = np.empty_like(expected)
    _native.turn(array.view(np.uint8), out.view(np.uint8))
    assert out.tobytes() == expected.tobytes()


def test_turn_refuses_other_shapes() -> None:
    array = np.zeros((4, 5, 2), np.uint8)
    for shape in ((4, 5, 2), (5, 4, 1), (5, 3, 2)):
        with pytest.raises(ValueError, match="wrong shape"):
            _native.turn(array, np.zeros(shape, np.uint8))


def test_what_is_kept_can_be_given_back() -> None:
    empty((1 << 20,), np.uint8)  # not used any more at once
    assert _native.kept_bytes() >= 1 << 20
    _native.release_kept()
    assert _native.kept_bytes() == 0
    assert empty((1 << 20,), np.uint8).shape == (1 << 20,)
