"""What the pictures share: colors, text and the image below."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

from hamflow._check import to_rgb
from hamflow.errors import InputError

Picture = NDArray[np.uint8]
"""(H, W, 3) in RGB."""
Color = tuple[int, int, int]

FINE = 4
"""Pictures are drawn at this many times their size, for smooth edges."""
WHITE: Color = (255, 255, 255)
BLACK: Color = (0, 0, 0)
INK: Color = (32, 32, 32)


def image_below(image: ArrayLike, shape: tuple[int, int]) -> Picture:
    """Return an image as 8-bit RGB if it has the height and width of the flow."""
    pixels = to_rgb(image)
    if pixels.shape[:2] != shape:
        raise InputError(
            f"image must have as many rows and columns as flow, {shape[0]} and {shape[1]}, but "
            f"has the shape {pixels.shape}."
        )
    return pixels


def label(picture: Picture, text: str) -> Picture:
    """Write a word on a white card in the upper left corner, if there is room for it."""
    height, width = picture.shape[:2]
    size = min(24, max(9, min(height, width) // 20))
    font = ImageFont.load_default(size)
    margin = max(2, size // 3)
    card = round(font.getlength(text)) + 2 * margin
    if card + 2 * margin > width or 3 * size > height:
        return picture
    canvas = Image.fromarray(picture)
    draw = ImageDraw.Draw(canvas)
    box = (margin, margin, margin + card, margin + round(1.6 * size))
    draw.rounded_rectangle(box, margin, WHITE)
    draw.text(((box[0] + box[2]) / 2, (box[1] + box[3]) / 2), text, INK, font, anchor="mm")
    return np.array(canvas)
