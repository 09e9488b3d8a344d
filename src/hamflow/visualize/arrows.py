"""A flow as arrows on a grid."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from hamflow.errors import InputError
from hamflow.visualize._drawing import FINE, INK, WHITE, Color, Picture, image_below
from hamflow.visualize.colors import flow_to_color
from hamflow.visualize.scale import to_draw

_Point = tuple[float, float]

_BAND = 64  # rows that are drawn at once, which limits the memory for the larger size
REACH = 1.3
"""Length of the longest arrows, in steps."""
_FADE = 0.45  # share of white in the image under the arrows


def draw_arrows(
    flow: ArrayLike,
    image: ArrayLike | None = None,
    step: int | None = None,
    *,
    max_flow: float | None = None,
) -> Picture:
    """Draw a flow as arrows on a grid.

    An arrow begins at the pixel whose motion it shows, and has the color of its direction on the
    Middlebury wheel. Motion below 1/20 of the length of the longest arrows is drawn as a dot.
    Unknown pixels get no arrow.

    Parameters
    ----------
    flow : (H, W, 2) array_like
        The flow to draw.
    image : (H, W) or (H, W, 3) array_like, optional
        The background, which is faded; by default white.
    step : int, optional
        Pixels from one arrow to the next, 4 to 4096. By default 1/24 of the shorter side, at least
        16.
    max_flow : float, optional
        Vectors of this length in pixels are drawn 1.3 steps long, and longer ones, too. By default
        `typical_length`.

    Returns
    -------
    picture : (H, W, 3) uint8
        RGB.

    Raises
    ------
    InputError
        If shapes or types do not fit, the flow has infinite values, `step` is out of range, or
        `max_flow` is not positive.
    """
    vectors, longest = to_draw(flow, max_flow)
    if step is None:
        step = default_step(vectors.shape[:2])
    if not 4 <= step <= 4096:
        raise InputError(f"step must be from 4 to 4096 pixels, but is {step}.")
    height, width = vectors.shape[:2]
    picture = _faded(image, height, width)
    reach = REACH * step
    arrows = list(_arrows(vectors, step, reach / longest))
    room = math.ceil(reach + step / 4)  # with the rim
    for top in range(0, height, _BAND):
        rows = picture[top : top + _BAND]
        near = [a for a in arrows if top - room < a.start[1] < top + len(rows) + room]
        if near:
            _draw_band(rows, near, step, top=top, room=room)
    return picture


def default_step(shape: tuple[int, ...]) -> int:
    """Return the pixels from one arrow to the next for a flow of this height and width."""
    return max(16, round(min(shape) / 24))


class _Arrow(NamedTuple):
    start: _Point
    vector: _Point  # as drawn, in pixels of the picture
    color: Color


def _faded(image: ArrayLike | None, height: int, width: int) -> Picture:
    if image is None:
        return np.full((height, width, 3), 255, np.uint8)
    pixels = image_below(image, (height, width))
    faded: Picture = np.rint(pixels * (1 - _FADE) + 255 * _FADE).astype(np.uint8)
    return faded


def _arrows(vectors: NDArray[np.floating[Any]], step: int, scale: float) -> Iterator[_Arrow]:
    height, width = vectors.shape[:2]
    ys, xs = (np.arange(min(step // 2, side - 1), side, step) for side in (height, width))
    grid = vectors[np.ix_(ys, xs)].astype(np.float64)
    lengths = np.hypot(grid[:, :, 0], grid[:, :, 1])
    directions = grid / np.maximum(lengths, 1e-30)[:, :, None]
    colors = flow_to_color(directions, max_flow=1)
    drawn = directions * np.minimum(lengths * scale, REACH * step)[:, :, None]
    for row, column in zip(*np.nonzero(np.isfinite(lengths)), strict=True):
        # The center of the pixel, if its corner is a whole number.
        start = (float(xs[column]) + 0.5, float(ys[row]) + 0.5)
        u, v = drawn[row, column]
        red, green, blue = colors[row, column]
        yield _Arrow(start, (float(u), float(v)), (int(red), int(green), int(blue)))


def _draw_band(rows: Picture, arrows: list[_Arrow], step: int, *, top: int, room: int) -> None:
    """Draw on the rows from `top` on the arrows that begin at most `room` rows away."""
    # With room above for the arrows that begin there: Pillow rounds negative numbers differently,
    # and an arrow must look the same in both bands that it crosses.
    padded = np.pad(rows, ((room, 0), (0, 0), (0, 0)))
    height, width = padded.shape[:2]
    fine = Image.fromarray(padded).resize((FINE * width, FINE * height), Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(fine)
    thickness = max(1.4, step / 10)
    rim = max(0.6, step / 40)
    for start, vector, color in arrows:
        origin = (FINE * start[0], FINE * (start[1] - top + room))
        shape = _outline((FINE * vector[0], FINE * vector[1]), FINE * step, FINE * thickness)
        if shape:
            points = [(origin[0] + x, origin[1] + y) for x, y in shape]
            draw.line([*points, *points[:2]], INK, round(2 * FINE * rim), joint="curve")
            draw.polygon(points, color)
        else:
            for radius, fill in ((thickness * 0.8 + rim, INK), (thickness * 0.8, WHITE)):
                draw.circle(origin, FINE * radius, fill)
    rows[:] = np.asarray(fine.reduce(FINE))[room:]


def _outline(vector: _Point, step: float, thickness: float) -> list[_Point]:
    """Return the corners of an arrow from (0, 0); none if it is too short to be one."""
    length = float(np.hypot(*vector))
    if length < step * REACH / 20:
        return []
    along = (vector[0] / length, vector[1] / length)
    head = min(0.6 * length, 0.45 * step)
    half = min(thickness / 2, 0.12 * length)
    wing = 0.55 * head
    profile = [
        *((0.0, half), (length - head, half), (length - head, wing), (length, 0.0)),
        *((length - head, -wing), (length - head, -half), (0.0, -half)),
    ]
    return [(x * along[0] - y * along[1], x * along[1] + y * along[0]) for x, y in profile]
