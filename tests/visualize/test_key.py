from __future__ import annotations

import numpy as np
import pytest

from hamflow.errors import InputError
from hamflow.visualize import add_arrow_key, add_key, draw_arrows, flow_to_color, wheel_picture


def test_wheel_shows_the_colors_of_its_places() -> None:
    size = 101
    wheel = wheel_picture(size)
    assert wheel.shape == (size, size, 3)
    assert (wheel[[0, 0, -1, -1], [0, -1, 0, -1]] == 255).all()
    # Not on the axes, where the wheel has a seam.
    for x, y in ((80, 58), (45, 80), (20, 42), (58, 20), (70, 65), (30, 40)):
        vector = (np.array([x, y]) + 0.5) * 2 / size - 1
        color = flow_to_color([[vector]], max_flow=1)[0, 0].astype(int)
        assert np.abs(wheel[y, x] - color).max() <= 6


@pytest.mark.parametrize("size", [1, 2, 16, 161])
def test_sizes_of_the_wheel(size: int) -> None:
    assert wheel_picture(size).shape == (size, size, 3)


@pytest.mark.parametrize("size", [0, -3, 5000])
def test_bad_sizes_of_the_wheel(size: int) -> None:
    with pytest.raises(InputError, match="size must be"):
        wheel_picture(size)


def test_key_in_the_corner() -> None:
    picture = np.full((200, 300, 3), 77, np.uint8)
    keyed = add_key(picture, 12.34)
    assert (picture == 77).all()
    wheel = wheel_picture(48)
    found = [
        (keyed[top : top + 48, left : left + 48] == wheel).all()
        for top in range(100, 153)
        for left in range(200, 253)
    ]
    assert sum(found) == 1
    changed = (keyed != 77).any(axis=2)
    assert not changed[:, :200].any()
    assert not changed[:100].any()
    # Neither does it touch the border.
    assert not changed[-1].any()
    assert not changed[:, -1].any()
    # The number is part of it, with three digits.
    assert (keyed != add_key(picture, 12.44)).any()
    assert (keyed == add_key(picture, 12.3)).all()


def test_numbers_without_room_are_left_out() -> None:
    for shape in ((20, 200), (200, 30)):
        picture = np.zeros(shape, np.uint8)
        assert (add_key(picture, 1234) == add_key(picture, 5678)).all()
        assert add_key(picture, 1234).any()


def test_pictures_too_small_for_a_key() -> None:
    assert add_key(np.zeros((16, 16), np.uint8), 3).any()
    small = np.zeros((15, 40), np.uint8)
    for keyed in (add_key(small, 3), add_arrow_key(small, 3, 16)):
        assert keyed.shape == (15, 40, 3)
        assert not keyed.any()


def test_key_of_arrows() -> None:
    picture = np.full((200, 300, 3), 77, np.uint8)
    keyed = add_arrow_key(picture, 12.34, 24)
    changed = (keyed != 77).any(axis=2)
    assert not changed[:, :220].any()
    assert not changed[:120].any()
    # The arrow is as long as the longest ones of the picture, in the color of its direction.
    flow = np.full((24, 60, 2), np.nan)
    flow[12, 12] = 9, 0
    red = flow_to_color([[[1, 0]]], max_flow=1)[0, 0]
    drawn = (draw_arrows(flow, step=24, max_flow=9) == red).all(axis=2)
    assert drawn.sum() > 50
    assert ((keyed == red).all(axis=2)).sum() == drawn.sum()
    assert (keyed != add_arrow_key(picture, 99, 24)).any()


@pytest.mark.parametrize("max_flow", [0, -1, np.nan, np.inf])
def test_bad_lengths(max_flow: float) -> None:
    picture = np.zeros((40, 60, 3), np.uint8)
    with pytest.raises(InputError, match="max_flow must be"):
        add_key(picture, max_flow)
    with pytest.raises(InputError, match="max_flow must be"):
        add_arrow_key(picture, max_flow, 8)
