from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hamflow.errors import InputError
from hamflow.visualize import draw_arrows, flow_to_color, typical_length

Picture = NDArray[np.uint8]


def constant(u: float, v: float, height: int = 48, width: int = 64) -> NDArray[np.float32]:
    return np.full((height, width, 2), (u, v), np.float32)


def ink(picture: Picture) -> NDArray[np.bool_]:
    """Where something was drawn on white."""
    return (picture != 255).any(axis=2)


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


@pytest.mark.parametrize("kind", ["color", "gray", "16 bits", "floating point"])
def test_arrows_on_an_image(kind: str) -> None:
    gray = np.random.default_rng(0).integers(0, 256, (48, 64), np.uint8)
    image: Any = {
        "color": np.repeat(gray[..., None], 3, axis=2),
        "gray": gray,
        "16 bits": gray.astype(np.uint16) * 257,
        "floating point": gray / 255,
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
    with pytest.raises(InputError, match="image must be of type uint8, uint16 or floating"):
        draw_arrows(constant(1, 1), np.zeros((48, 64), np.int64))
