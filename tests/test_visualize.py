from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hamflow.errors import InputError
from hamflow.flow import flow_to_color
from hamflow.visualize import (
    add_wheel,
    draw_arrows,
    error_map,
    to_bytes,
    typical_length,
    wheel_picture,
)

Picture = NDArray[np.uint8]


def constant(u: float, v: float, height: int = 48, width: int = 64) -> NDArray[np.float32]:
    return np.full((height, width, 2), (u, v), np.float32)


def ink(picture: Picture) -> NDArray[np.bool_]:
    """Where something was drawn on white."""
    return (picture != 255).any(axis=2)


# --- arrows --------------------------------------------------------------------------------------


def test_an_arrow_begins_at_its_pixel_and_points_along_the_flow() -> None:
    for u, v in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        flow = np.full((41, 41, 2), np.nan, np.float32)
        flow[20, 20] = 5 * u, 5 * v
        picture = draw_arrows(flow, step=40, max_flow=20)
        rows, columns = np.nonzero(ink(picture))
        along = (columns - 20) * u + (rows - 20) * v
        across = (columns - 20) * v + (rows - 20) * u
        # A fourth of the longest, which is 1.3 steps.
        assert 12 <= along.max() <= 15
        assert -4 <= along.min() <= 0
        assert np.abs(across).max() <= 6
        # The body is in the color of the direction; the first half has no head.
        color = flow_to_color([[[u, v]]], max_flow=1)[0, 0]
        assert (picture[20 + 4 * v, 20 + 4 * u] == color).all()


def test_all_arrows_are_drawn_in_bands_as_if_at_once() -> None:
    rng = np.random.default_rng(0)
    flow = rng.normal(size=(200, 70, 2)) * 4
    tall = draw_arrows(flow, max_flow=8)
    # One step lower, every arrow falls to other rows of the bands.
    low = draw_arrows(np.concatenate([np.full((16, 70, 2), np.nan), flow]), max_flow=8)
    assert (low[48:] == tall[32:]).all()


def test_longer_vectors_are_cut() -> None:
    long, longer = (draw_arrows(constant(u, 0), max_flow=10) for u in (10, 1000))
    assert (long == longer).all()
    assert (draw_arrows(constant(5, 0), max_flow=10) != long).any()


def test_still_and_unknown_pixels() -> None:
    dots = ink(draw_arrows(constant(0, 0)))
    assert dots[6:11, 6:11].any()
    assert not dots[:5].any()
    assert 0 < dots.mean() < 0.1
    assert not ink(draw_arrows(constant(np.nan, 0))).any()


def test_default_scale_is_the_typical_length() -> None:
    flow = np.random.default_rng(0).normal(size=(48, 64, 2)) * 9
    assert (draw_arrows(flow) == draw_arrows(flow, max_flow=typical_length(flow))).all()
    assert (draw_arrows(flow) != draw_arrows(flow, max_flow=2 * typical_length(flow))).any()


@pytest.mark.parametrize("kind", ["color", "gray", "16 bits"])
def test_arrows_on_an_image(kind: str) -> None:
    gray = np.random.default_rng(0).integers(0, 256, (48, 64), np.uint8)
    image: Any = {
        "color": np.repeat(gray[..., None], 3, axis=2),
        "gray": gray,
        "16 bits": gray.astype(np.uint16) * 257,
    }[kind]
    before = image.copy()
    picture = draw_arrows(constant(3, 2), image)
    assert (image == before).all()
    untouched = ~ink(draw_arrows(constant(3, 2)))
    faded = np.rint(0.55 * gray + 0.45 * 255)
    assert untouched.mean() > 0.5
    assert (picture[untouched] == faded[untouched][:, None]).all()
    assert (picture != faded[..., None]).any()


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (3, 3)])
def test_small_flows_get_arrows(shape: tuple[int, int]) -> None:
    picture = draw_arrows(constant(1, 1, *shape))
    assert picture.shape == (*shape, 3)
    assert ink(picture).any()


@pytest.mark.parametrize("options", [{"step": 3}, {"max_flow": 0}, {"max_flow": np.nan}])
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=rf"^{next(iter(options))} must be"):
        draw_arrows(constant(1, 1), **options)


def test_bad_arrays() -> None:
    with pytest.raises(InputError, match="infinite"):
        draw_arrows(constant(np.inf, 0))
    with pytest.raises(InputError, match="as many rows and columns"):
        draw_arrows(constant(1, 1), np.zeros((48, 63), np.uint8))
    with pytest.raises(InputError, match="uint8 or uint16"):
        draw_arrows(constant(1, 1), np.zeros((48, 64)))


def test_typical_length() -> None:
    flow = np.full((10, 10, 2), np.nan)
    assert typical_length(flow) == 1
    flow[:] = 3, 4
    flow[0, 0] = np.nan
    flow[5, 5] = 1e6  # one wild match
    assert typical_length(flow) == 5
    assert typical_length(flow / 1e9) == 1


def test_to_bytes() -> None:
    image = np.array([[0, 128, 129, 65535]], np.uint16)
    assert to_bytes(image).tolist() == [[0, 0, 1, 255]]


# --- errors --------------------------------------------------------------------------------------


def test_limits_of_the_errors() -> None:
    limits = [0.1875, 0.375, 0.75, 1.5, 3, 6, 12, 24, 48]
    below = [np.nextafter(np.float32(x), np.float32(0)) for x in limits]
    errors = np.array([[0, *below], [*limits, 1e6]], np.float32)
    flow = np.stack([errors, np.zeros_like(errors)], axis=2)
    picture = error_map(flow, np.zeros_like(flow), legend=False)
    assert picture.shape == (2, 10, 3)
    # Below a limit the color is still that of the limit before.
    assert (picture[0, 2:] == picture[1, :-2]).all()
    assert (picture[0, 0] == picture[0, 1]).all()
    assert (picture[1, 9] == picture[1, 8]).all()
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) == 10
    # Blue up to 3 pixels, then red.
    assert (picture[0, :6, 2] > picture[0, :6, 0]).all()
    assert (picture[1, 4:, 0] > picture[1, 4:, 2]).all()


def test_unknown_pixels_of_both_kinds() -> None:
    flow, truth = constant(1, 1, 1, 4), constant(1, 1, 1, 4)
    flow[0, 1:3, 0] = np.nan
    truth[0, 2:4, 1] = np.nan
    picture = error_map(flow, truth, legend=False)
    assert picture[0, 1:].tolist() == [[128] * 3, [0] * 3, [0] * 3]
    assert picture[0, 0].max() > 128


@pytest.mark.parametrize("width", [1, 5, 20, 60, 200, 1024])
def test_legend(width: int) -> None:
    zeros = constant(0, 0, 7, width)
    with_legend, without = error_map(zeros, zeros), error_map(zeros, zeros, legend=False)
    assert with_legend.shape[1:] == (width, 3)
    assert (with_legend[:7] == without).all()
    strip = with_legend[7:]
    if width >= 20:
        colors = {tuple(color) for color in strip[5].tolist()}
        assert len(colors) == 10
        # Something is written below the colors.
        assert (strip[len(strip) // 2 :] < 128).all(axis=2).any()


def test_errors_of_different_size() -> None:
    with pytest.raises(InputError, match="same shape"):
        error_map(constant(0, 0), constant(0, 0, 5, 5))


# --- the wheel -----------------------------------------------------------------------------------


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


def test_wheel_in_the_corner() -> None:
    picture = np.full((200, 300, 3), 77, np.uint8)
    plain, named = add_wheel(picture), add_wheel(picture, "12 px")
    assert (picture == 77).all()
    wheel = wheel_picture(50)
    corner = plain[-58:-8, -58:-8]
    assert (corner == wheel).all()
    for drawn in (plain, named):
        changed = (drawn != 77).any(axis=2)
        assert not changed[:, :200].any()
        assert not changed[:100].any()
        # Neither does it touch the border.
        assert not changed[-1].any()
        assert not changed[:, -1].any()
    assert (named != plain).any()


def test_captions_without_room_are_left_out() -> None:
    picture = np.zeros((20, 200), np.uint8)
    assert (add_wheel(picture, "1234 px") == add_wheel(picture)).all()
    picture = np.zeros((200, 30), np.uint8)
    assert (add_wheel(picture, "1234 px") == add_wheel(picture)).all()


def test_pictures_too_small_for_a_wheel() -> None:
    assert add_wheel(np.zeros((16, 16), np.uint8)).any()
    with pytest.raises(InputError, match="at least 16 × 16 pixels"):
        add_wheel(np.zeros((15, 40), np.uint8))
