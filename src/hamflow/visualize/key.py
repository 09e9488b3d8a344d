"""The keys to the pictures: the Middlebury color wheel, and the longest arrow."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw, ImageFont

from hamflow._check import to_rgb
from hamflow.errors import InputError
from hamflow.visualize._drawing import FINE, INK, WHITE, Picture
from hamflow.visualize.arrows import REACH, draw_arrows
from hamflow.visualize.colors import flow_to_color
from hamflow.visualize.scale import checked_length

_SMALLEST = 16  # pixels; smaller pictures get no key


def wheel_picture(size: int = 160) -> Picture:
    """Draw the Middlebury color wheel: the color of each point is that of the vector to it.

    Parameters
    ----------
    size : int
        Width and height in pixels.

    Returns
    -------
    picture : (size, size, 3) uint8
        RGB: a disk on white, whose rim is a vector of the length `max_flow` of
        `hamflow.flow_to_color`.

    Raises
    ------
    InputError
        If `size` is not in 1..4096.
    """
    if not 1 <= size <= 4096:
        raise InputError(f"size must be in 1..4096 pixels, but is {size}.")
    fine = FINE * size
    place = (np.arange(fine) + 0.5) * 2 / fine - 1
    vectors = np.stack(np.meshgrid(place, place), axis=2)
    disk = flow_to_color(vectors, max_flow=1)
    radius = np.hypot(vectors[:, :, 0], vectors[:, :, 1])
    disk[radius > 1] = 255
    # A thin dark line, because the colors next to it are bright.
    disk[(radius <= 1) & (radius > 1 - 2.5 / size)] = INK
    return np.array(Image.fromarray(disk).reduce(FINE))


def add_key(picture: ArrayLike, max_flow: float) -> Picture:
    """Put the key to the colors into the lower right corner of a picture.

    It is the color wheel and the length at its rim.

    Parameters
    ----------
    picture : (H, W) or (H, W, 3) array_like
        The picture to draw on; it is not changed.
    max_flow : float
        The length in pixels that the picture shows in full color.

    Returns
    -------
    picture : (H, W, 3) uint8
        RGB. The length is left out if there is no room for it, and the key is left out if the
        picture is less than 16 pixels wide or high.

    Raises
    ------
    InputError
        If the picture has another shape or type, or `max_flow` is not positive.
    """
    pixels = to_rgb(picture, "picture")
    side = min(pixels.shape[:2])
    if side < _SMALLEST:
        return pixels.copy()
    return _with_card(pixels, wheel_picture(_card_size(side)), _caption(max_flow))


def add_arrow_key(picture: ArrayLike, max_flow: float, step: int) -> Picture:
    """Put the longest arrow and its length into the lower right corner of a picture.

    Parameters
    ----------
    picture, max_flow
        As for `add_key`.
    step : int
        Pixels from one arrow of the picture to the next, as for `draw_arrows`.

    Returns
    -------
    picture : (H, W, 3) uint8
        As by `add_key`.

    Raises
    ------
    InputError
        If the picture has another shape or type, or `max_flow` is not positive.
    """
    pixels = to_rgb(picture, "picture")
    width = round((REACH + 0.6) * step)
    if min(pixels.shape[:2]) < _SMALLEST or 2 * width > pixels.shape[1]:
        return pixels.copy()
    # The only known pixel of the field is the one where the arrow begins.
    field = np.full((step, width, 2), np.nan)
    field[step // 2, step // 2] = 1, 0
    return _with_card(pixels, draw_arrows(field, step=step, max_flow=1), _caption(max_flow))


def _caption(max_flow: float) -> str:
    return f"{checked_length(max_flow, 'max_flow'):.3g} px"


def _card_size(side: int) -> int:
    # A sixth of the shorter side hides little, but in a small picture nobody could read it.
    return min(128, max(side // 6, min(side // 4, 48), 10))


def _with_card(pixels: Picture, content: Picture, caption: str) -> Picture:
    """Put a white card with a small picture and a caption into the lower right corner."""
    height, width = pixels.shape[:2]
    size = _card_size(min(height, width))
    margin = max(2, size // 12)
    letters = max(9, size // 5)
    font = ImageFont.load_default(letters)
    rows, columns = content.shape[:2]
    inner, line = max(columns, round(font.getlength(caption))), round(1.35 * letters)
    if inner + 4 * margin > width or rows + line + 4 * margin > height:
        caption, inner, line = "", columns, 0
    # On a card, so that the key is distinct from the picture.
    right, bottom = width - margin, height - margin
    left, top = right - inner - 2 * margin, bottom - rows - line - 2 * margin
    canvas = Image.fromarray(pixels)
    draw = ImageDraw.Draw(canvas)
    draw.rounded_rectangle((left, top, right - 1, bottom - 1), margin, WHITE)
    canvas.paste(Image.fromarray(content), (left + margin + (inner - columns) // 2, top + margin))
    if caption:
        draw.text(((left + right) / 2, bottom - margin), caption, INK, font, anchor="mb")
    return np.array(canvas)
