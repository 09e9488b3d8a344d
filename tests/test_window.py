from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from hamflow import InputError, Window
from hamflow.matching import min_projection
from hamflow.window import MAX_DISPLACEMENT, MAX_LABELS, kernel_window


def test_square() -> None:
    assert Window.of(128) == Window.square(128) == Window(-64, 128, -64, 128)
    assert Window.square(2) == Window(-1, 2, -1, 2)
    assert Window.square(MAX_LABELS).du == MAX_LABELS


def test_tuple_and_window() -> None:
    window = Window(-100, 101, 0, 1)
    assert Window.of((-100, 101, 0, 1)) == window
    assert Window.of(window) is window
    assert window.as_tuple() == (-100, 101, 0, 1)


def test_contains() -> None:
    window = Window(-3, 5, 2, 1)
    inside = {(u, v) for u in range(-9, 9) for v in range(-9, 9) if window.contains(u, v)}
    assert inside == {(u, 2) for u in range(-3, 2)}


@pytest.mark.parametrize("kind", [np.int64, np.int16, np.uint8])
def test_numpy_integers(kind: type[np.integer[Any]]) -> None:
    assert Window.of(kind(8)) == Window.of(8)
    window = Window(*(kind(n) for n in (1, 8, 2, 4)))  # type: ignore[arg-type]
    assert window == Window(1, 8, 2, 4)
    # Python's own, or sums of narrow types would overflow later on.
    assert all(type(number) is int for number in window.as_tuple())


def test_frozen_and_hashable() -> None:
    window = Window.of(16)
    with pytest.raises(dataclasses.FrozenInstanceError):
        window.du = 3  # type: ignore[misc]
    assert len({window, Window.of(16), Window.of(18)}) == 2


@pytest.mark.parametrize("d", [0, 1, 3, 127, -2, -4, True])
def test_square_needs_an_even_side(d: int) -> None:
    for make in (Window.of, Window.square):
        with pytest.raises(InputError, match=f"even number .* at least 2, not {d};"):
            make(d)


@pytest.mark.parametrize("d", [4.0, 2.5, np.float32(4), "8", None, [1, 2, 3, 4], np.ones(2, int)])
def test_not_whole(d: Any) -> None:
    for make in (Window.of, Window.square):
        with pytest.raises(InputError, match=r"A window must be a whole number D, a tuple"):
            make(d)


@pytest.mark.parametrize("sides", [(), (1,), (1, 2, 3), (1, 2, 3, 4, 5)])
def test_wrong_number_of_sides(sides: Any) -> None:
    with pytest.raises(InputError, match=f"four numbers, but {len(sides)} were given"):
        Window.of(sides)


def test_tuple_of_other_things() -> None:
    with pytest.raises(InputError, match=r"whole number.*not 4\.0"):
        Window.of((1, 2, 3, 4.0))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["u0", "du", "v0", "dv"])
@pytest.mark.parametrize("value", [1.0, "1", None])
def test_parts_that_are_not_whole(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"The window's {name} must be a whole number"):
        Window(**({"u0": 0, "du": 1, "v0": 0, "dv": 1} | {name: value}))


@pytest.mark.parametrize("name", ["du", "dv"])
@pytest.mark.parametrize("count", [0, -1, MAX_DISPLACEMENT + 1, 10**30])
def test_bad_counts(name: str, count: int) -> None:
    with pytest.raises(InputError, match=f"The window's {name} must be from 1 to 16777216, not"):
        Window(**({"u0": 0, "du": 1, "v0": 0, "dv": 1} | {name: count}))


@pytest.mark.parametrize("name", ["u0", "v0"])
@pytest.mark.parametrize("first", [MAX_DISPLACEMENT + 1, -MAX_DISPLACEMENT - 1, 10**30])
def test_too_far(name: str, first: int) -> None:
    with pytest.raises(InputError, match=f"The window's {name} must be within"):
        Window(**({"u0": 0, "du": 1, "v0": 0, "dv": 1} | {name: first}))


def test_more_labels_than_the_kernels_have() -> None:
    """Windows are in pixels of the image, and searched at a coarser scale: they may be large."""
    assert kernel_window((0, MAX_LABELS, 0, 1)) == Window(0, MAX_LABELS, 0, 1)
    large = Window(-5000, 10001, 0, 1)
    assert large.reduced(4).du == 2501
    bits = np.zeros((2, 3), np.uint64)
    with pytest.raises(InputError, match=r"The window's du is 10001, but at most 4096 .*\."):
        min_projection(bits, bits, large)


@pytest.mark.parametrize("scale", [1, 2, 8])
def test_a_window_comes_back_from_a_scale(scale: int) -> None:
    small = Window(-3, 8, 2, 5)
    full = small.enlarged(scale)
    assert full.reduced(scale) == small
    # The first and the last displacement of each component.
    assert (full.u0, full.u0 + full.du - 1) == (-3 * scale, 4 * scale)
    assert (full.v0, full.v0 + full.dv - 1) == (2 * scale, 6 * scale)
