"""The look that narrows the window of the coarsest scale."""

from __future__ import annotations

import numpy as np
import pytest

from _problems import everywhere, random_bits
from hamflow import Window
from hamflow.pipeline.look import narrowed

WINDOW = Window(-30, 61, -20, 41)


def moved(shift: tuple[int, int], words: int) -> tuple[np.ndarray, np.ndarray]:
    """Random bits, and the same moved by (u, v); a tenth of them is replaced."""
    rng = np.random.default_rng(1)
    first = random_bits(rng, 60, 90, words)
    second = np.roll(first, shift[::-1], axis=(0, 1))
    noise = rng.random((60, 90)) < 0.1
    second[noise] = random_bits(rng, 60, 90, words)[noise]
    return first, second


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("shift", [(0, 0), (7, -4), (-12, 9), (29, 1)])
def test_finds_the_motion(shift: tuple[int, int], words: int) -> None:
    windows = narrowed(moved(shift, words), (WINDOW, WINDOW.opposite()))
    assert windows[0].contains(*shift)
    assert windows[1] == windows[0].opposite()
    assert windows[0].du * windows[0].dv < 0.4 * WINDOW.du * WINDOW.dv
    for side in ("u0", "v0"):
        assert getattr(windows[0], side) >= getattr(WINDOW, side)
    assert len(narrowed(moved(shift, words), (WINDOW,))) == 1


def test_finds_a_small_thing_too() -> None:
    first, second = moved((2, 1), 2)
    second[30:40, 60:70] = first[22:32, 35:45]  # moved by (25, 8)
    window = narrowed((first, second), (WINDOW, WINDOW.opposite()))[0]
    assert window.contains(2, 1)
    assert window.contains(25, 8)


def test_keeps_the_window_where_nothing_is_found() -> None:
    rng = np.random.default_rng(2)
    bits = random_bits(rng, 60, 90), random_bits(rng, 60, 90)
    assert narrowed(bits, (WINDOW, WINDOW.opposite())) == (WINDOW, WINDOW.opposite())


def test_same_everywhere() -> None:
    bits = moved((7, -4), 2)
    assert len(set(everywhere(lambda: narrowed(bits, (WINDOW, WINDOW.opposite()))))) == 1
