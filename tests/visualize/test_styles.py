"""A result as one picture."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hamflow.datasets import demo_scene
from hamflow.errors import InputError
from hamflow.visualize import (
    STYLES,
    add_arrow_key,
    add_key,
    draw_arrows,
    flow_to_color,
    overlay,
    render,
    side_by_side,
    typical_length,
)

SCENE = demo_scene(96, 144)
LONGEST = typical_length(SCENE.flow)


def result(**changes: Any) -> Any:
    confidence = np.linspace(0, 1, 96 * 144, dtype=np.float32).reshape(96, 144)
    fields = {"flow": SCENE.flow, "occlusion": SCENE.occluded, "confidence": confidence}
    return SimpleNamespace(**(fields | changes))


def test_color() -> None:
    assert (render(None, result(), "color") == flow_to_color(SCENE.flow)).all()
    assert (render(None, SCENE.flow, "color", 9) == flow_to_color(SCENE.flow, 9)).all()
    keyed = render(None, result(), "color", 9, key=True)
    assert (keyed == add_key(flow_to_color(SCENE.flow, 9), 9)).all()


def test_arrows() -> None:
    assert (render(None, result(), "arrows") == draw_arrows(SCENE.flow)).all()
    picture = draw_arrows(SCENE.flow, SCENE.image0, 20, max_flow=9)
    assert (render(SCENE.image0, result(), "arrows", 9, step=20) == picture).all()
    keyed = render(SCENE.image0, result(), "arrows", 9, step=20, key=True)
    assert (keyed == add_arrow_key(picture, 9, 20)).all()


def test_overlay_keeps_the_colors_and_the_light_of_the_image() -> None:
    picture = render(SCENE.image0, result(), "overlay", 9)
    assert (picture == overlay(SCENE.flow, SCENE.image0, max_flow=9)).all()
    white = overlay(SCENE.flow, np.full((96, 144), 255, np.uint8), max_flow=9)
    assert (white == flow_to_color(SCENE.flow, 9)).all()
    black = overlay(SCENE.flow, np.zeros((96, 144), np.uint8), max_flow=9)
    assert (black == np.rint(0.4 * white)).all()
    still = overlay(np.zeros_like(SCENE.flow), SCENE.image0)
    assert (still.min(axis=2) == still.max(axis=2)).all()
    assert np.corrcoef(still[..., 0].ravel(), SCENE.image0.mean(axis=2).ravel())[0, 1] > 0.9
    unknown = overlay(np.full_like(SCENE.flow, np.nan), SCENE.image0)
    assert not unknown.any()


def quarters(picture: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    """The four panels, without the upper left corner, where the label is."""
    return [picture[y : y + 96, x : x + 144][24:].astype(int) for y in (0, 96) for x in (0, 144)]


def test_side_by_side() -> None:
    shown = result()
    picture = side_by_side(SCENE.image0, shown, key=False)
    assert picture.shape == (192, 288, 3)
    image, flow, occlusion, confidence = quarters(picture)
    assert (image == SCENE.image0[24:]).all()
    assert (flow == flow_to_color(SCENE.flow)[24:]).all()
    assert (occlusion == 255 * SCENE.occluded[24:, :, None]).all()
    assert (confidence == np.rint(255 * shown.confidence[24:, :, None])).all()
    # Every panel has a label.
    corners = [picture[y : y + 20, x : x + 40] for y in (0, 96) for x in (0, 144)]
    assert all((corner == 255).all(axis=2).any() for corner in corners)
    keyed = render(SCENE.image0, shown, "side-by-side", key=True)
    assert (quarters(keyed)[1] == add_key(flow_to_color(SCENE.flow), LONGEST)[24:]).all()


def test_side_by_side_without_an_assessment() -> None:
    for shown in (SCENE.flow, result(confidence=None), result(occlusion=None)):
        picture = render(SCENE.image0, shown, "side-by-side")
        assert picture.shape == (96, 288, 3)
        assert (picture[24:, :144] == SCENE.image0[24:]).all()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (9, 7), (17, 16)])
def test_small_pictures(style: Any, shape: tuple[int, int]) -> None:
    flow = np.ones((*shape, 2), np.float32)
    picture = render(np.zeros(shape, np.uint8), flow, style, key=True)
    assert picture.shape == (shape[0], shape[1] * (2 if style == "side-by-side" else 1), 3)
    assert picture.dtype == np.uint8


@pytest.mark.parametrize("style", STYLES)
def test_one_scale(style: Any) -> None:
    usual = render(SCENE.image0, result(), style)
    assert (render(SCENE.image0, result(), style, LONGEST) == usual).all()
    assert (render(SCENE.image0, result(), style, 2 * LONGEST) != usual).any()


@pytest.mark.parametrize("style", ["overlay", "side-by-side"])
def test_images_that_are_missing_or_do_not_fit(style: Any) -> None:
    with pytest.raises(InputError, match=f"image is missing, which the style '{style}' needs"):
        render(None, result(), style)
    with pytest.raises(InputError, match="as many rows and columns as flow, 96 and 144"):
        render(SCENE.image0[1:], result(), style)


def test_wrong_options() -> None:
    with pytest.raises(InputError, match=r"style must be one of color, .*, not 'quiver'"):
        render(None, result(), "quiver")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="step is for the style 'arrows'"):
        render(None, result(), "color", step=8)
    with pytest.raises(InputError, match="max_flow must be"):
        render(None, result(), "color", 0)
