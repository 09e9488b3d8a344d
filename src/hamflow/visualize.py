"""Pictures of a flow: arrows, a map of its errors, and the Middlebury color wheel.

Each function returns an (H, W, 3) uint8 image in RGB. For the colors themselves see
`hamflow.flow_to_color`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

from hamflow._check import as_flow, as_image
from hamflow.errors import InputError
from hamflow.flow import endpoint_error, flow_to_color

_Picture = NDArray[np.uint8]
_Point = tuple[float, float]
_Color = tuple[int, int, int]

_FINE = 4  # pictures are drawn at this many times their size, for smooth edges
_BAND = 64  # rows that are drawn at once, which limits the memory for the larger size
_WHITE, _BLACK, _INK = (255, 255, 255), (0, 0, 0), (32, 32, 32)

_REACH = 1.3  # length of the longest arrows, in steps
_FADE = 0.45  # share of white in the image under the arrows

_LIMITS = (0.1875, 0.375, 0.75, 1.5, 3, 6, 12, 24, 48)
# Of ColorBrewer's RdYlBu, which KITTI uses for the same limits; 3 px is where blue ends.
_ERROR_COLORS = np.array(
    [
        *((49, 54, 149), (69, 117, 180), (116, 173, 209), (171, 217, 233), (224, 243, 248)),
        *((254, 224, 144), (253, 174, 97), (244, 109, 67), (215, 48, 39), (165, 0, 38)),
    ],
    np.uint8,
)
_MISSING = (128, 128, 128)


def typical_length(flow: ArrayLike) -> float:
    """Return a length for `max_flow` that few vectors exceed.

    Parameters
    ----------
    flow : (H, W, 2) array_like
        The flow to show.

    Returns
    -------
    length : float
        The 95th percentile of the lengths of known vectors, at least 1 pixel. With the maximum, a
        few wrong vectors would make all others pale.
    """
    vectors = as_flow(flow)
    lengths = np.hypot(vectors[:, :, 0], vectors[:, :, 1])
    known = lengths[np.isfinite(lengths)]
    return max(1.0, float(np.percentile(known, 95))) if known.size else 1.0


def draw_arrows(
    flow: ArrayLike,
    image: ArrayLike | None = None,
    step: int = 16,
    *,
    max_flow: float | None = None,
) -> _Picture:
    """Draw a flow as arrows on a grid.

    An arrow begins at the pixel whose motion it shows, and has the color of its direction on the
    Middlebury wheel. Motion below 1/20 of the length of the longest arrows is drawn as a dot.
    Unknown pixels get no arrow.

    Parameters
    ----------
    flow : (H, W, 2) array_like
        The flow to draw.
    image : (H, W) or (H, W, 3) uint8 or uint16 array_like, optional
        The background, which is faded; by default white.
    step : int
        Pixels from one arrow to the next, 4 to 4096.
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
    vectors = as_flow(flow)
    if np.isinf(vectors).any():
        raise InputError("flow has infinite values; mark unknown pixels with NaN.")
    if not 4 <= step <= 4096:
        raise InputError(f"step must be from 4 to 4096 pixels, but is {step}.")
    if max_flow is not None and not 0 < max_flow < np.inf:
        raise InputError(f"max_flow must be a positive number of pixels, but is {max_flow}.")
    height, width = vectors.shape[:2]
    picture = _canvas(image, height, width)
    reach = _REACH * step
    longest = typical_length(vectors) if max_flow is None else max_flow
    arrows = list(_arrows(vectors, step, reach / longest))
    room = math.ceil(reach + step / 4)  # with the rim
    for top in range(0, height, _BAND):
        rows = picture[top : top + _BAND]
        near = [a for a in arrows if top - room < a.start[1] < top + len(rows) + room]
        if near:
            _draw_band(rows, near, step, top=top, room=room)
    return picture


class _Arrow(NamedTuple):
    start: _Point
    vector: _Point  # as drawn, in pixels of the picture
    color: _Color


def _canvas(image: ArrayLike | None, height: int, width: int) -> _Picture:
    if image is None:
        return np.full((height, width, 3), 255, np.uint8)
    pixels = to_bytes(as_image(image))
    if pixels.shape[:2] != (height, width):
        raise InputError(
            f"image must have as many rows and columns as flow, {height} and {width}, but has the "
            f"shape {pixels.shape}."
        )
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[:, :, None], 3, axis=2)
    faded: _Picture = np.rint(pixels * (1 - _FADE) + 255 * _FADE).astype(np.uint8)
    return faded


def to_bytes(image: NDArray[Any]) -> _Picture:
    """Return an image of uint8 or uint16 as uint8."""
    if image.dtype == np.uint8:
        return image
    if image.dtype == np.uint16:
        return np.rint(image / 257).astype(np.uint8)
    raise InputError(f"image must be of type uint8 or uint16, but is {image.dtype}.")


def _arrows(vectors: NDArray[np.floating[Any]], step: int, scale: float) -> Iterator[_Arrow]:
    height, width = vectors.shape[:2]
    ys, xs = (np.arange(min(step // 2, side - 1), side, step) for side in (height, width))
    grid = vectors[np.ix_(ys, xs)].astype(np.float64)
    lengths = np.hypot(grid[:, :, 0], grid[:, :, 1])
    directions = grid / np.maximum(lengths, 1e-30)[:, :, None]
    colors = flow_to_color(directions, max_flow=1)
    drawn = directions * np.minimum(lengths * scale, _REACH * step)[:, :, None]
    for row, column in zip(*np.nonzero(np.isfinite(lengths)), strict=True):
        # The center of the pixel, if its corner is a whole number.
        start = (float(xs[column]) + 0.5, float(ys[row]) + 0.5)
        u, v = drawn[row, column]
        red, green, blue = colors[row, column]
        yield _Arrow(start, (float(u), float(v)), (int(red), int(green), int(blue)))


def _draw_band(rows: _Picture, arrows: list[_Arrow], step: int, *, top: int, room: int) -> None:
    """Draw on the rows from `top` on the arrows that begin at most `room` rows away."""
    # With room above for the arrows that begin there: Pillow rounds negative numbers differently,
    # and an arrow must look the same in both bands that it crosses.
    padded = np.pad(rows, ((room, 0), (0, 0), (0, 0)))
    height, width = padded.shape[:2]
    fine = Image.fromarray(padded).resize((_FINE * width, _FINE * height), Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(fine)
    thickness = max(1.4, step / 10)
    rim = max(0.6, step / 40)
    for start, vector, color in arrows:
        origin = (_FINE * start[0], _FINE * (start[1] - top + room))
        shape = _outline((_FINE * vector[0], _FINE * vector[1]), _FINE * step, _FINE * thickness)
        if shape:
            points = [(origin[0] + x, origin[1] + y) for x, y in shape]
            draw.line([*points, *points[:2]], _INK, round(2 * _FINE * rim), joint="curve")
            draw.polygon(points, color)
        else:
            for radius, fill in ((thickness * 0.8 + rim, _INK), (thickness * 0.8, _WHITE)):
                draw.circle(origin, _FINE * radius, fill)
    rows[:] = np.asarray(fine.reduce(_FINE))[room:]


def _outline(vector: _Point, step: float, thickness: float) -> list[_Point]:
    """Return the corners of an arrow from (0, 0); none if it is too short to be one."""
    length = float(np.hypot(*vector))
    if length < step * _REACH / 20:
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


def error_map(flow: ArrayLike, truth: ArrayLike, *, legend: bool = True) -> _Picture:
    """Show where a flow is wrong, in steps of a factor of 2.

    Errors (distances from the true flow) below 3 pixels are blue, larger ones yellow and red: the
    colors and limits of KITTI's error maps, which however also depend on the length of the true
    flow. Pixels of unknown true flow are black; those where only the flow is unknown are gray.

    Parameters
    ----------
    flow, truth : (H, W, 2) array_like
        The flows to compare.
    legend : bool
        Whether to add a strip with the colors and their limits below the map.

    Returns
    -------
    picture : (H, W, 3) uint8
        RGB; with the legend it has more rows than the flow.

    Raises
    ------
    InputError
        If the shapes differ or are not those of a flow.

    Examples
    --------
    >>> import numpy as np
    >>> from hamflow.visualize import error_map
    >>> truth = np.zeros((1, 3, 2))
    >>> flow = np.array([[[0.1, 0], [3, 4], [np.nan, np.nan]]])
    >>> error_map(flow, truth, legend=False).tolist()
    [[[49, 54, 149], [254, 224, 144], [128, 128, 128]]]
    """
    error = endpoint_error(flow, truth)
    # NaN is sorted after every limit, and overwritten below.
    picture = _ERROR_COLORS[np.searchsorted(_LIMITS, error, side="right")]
    picture[np.isnan(error)] = _MISSING
    picture[np.isnan(as_flow(truth)).any(axis=2)] = _BLACK
    return np.concatenate([picture, _legend(picture.shape[1])]) if legend else picture


def _legend(width: int) -> _Picture:
    """Return a strip with the colors of `error_map` above their limits in pixels."""
    font_size = min(16, max(9, width // 36))
    bar = round(1.2 * font_size)
    strip = Image.new("RGB", (width, bar + 2 * font_size), _WHITE)
    draw = ImageDraw.Draw(strip)
    edges = [round(width * i / len(_ERROR_COLORS)) for i in range(len(_ERROR_COLORS) + 1)]
    for start, stop, color in zip(edges, edges[1:], _ERROR_COLORS.tolist(), strict=False):
        if start < stop:
            draw.rectangle((start, 2, stop - 1, bar + 1), tuple(color))
    font = ImageFont.load_default(font_size)
    # The most important labels first; those for which there is no room are left out.
    labels = {5: "3", 10: "px", 0: "0", 9: "48", 7: "12", 3: "0.75"}
    labels |= {i + 1: f"{limit:.2g}" for i, limit in enumerate(_LIMITS) if i + 1 not in labels}
    taken: list[tuple[float, float]] = []
    for edge, text in labels.items():
        extent = font.getlength(text)
        left = min(max(edges[edge] - extent / 2, 1), width - extent - 1)
        if left < 0 or any(left < b + 3 and a < left + extent + 3 for a, b in taken):
            continue
        taken.append((left, left + extent))
        draw.text((left, bar + 0.35 * font_size), text, _INK, font)
    return np.array(strip)


def wheel_picture(size: int = 160) -> _Picture:
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
    fine = _FINE * size
    place = (np.arange(fine) + 0.5) * 2 / fine - 1
    vectors = np.stack(np.meshgrid(place, place), axis=2)
    disk = flow_to_color(vectors, max_flow=1)
    radius = np.hypot(vectors[:, :, 0], vectors[:, :, 1])
    disk[radius > 1] = 255
    # A thin dark line, because the colors next to it are bright.
    disk[(radius <= 1) & (radius > 1 - 2.5 / size)] = _INK
    return np.array(Image.fromarray(disk).reduce(_FINE))


def add_wheel(picture: ArrayLike, caption: str = "") -> _Picture:
    """Put the color wheel into the lower right corner of a picture.

    Parameters
    ----------
    picture : (H, W) or (H, W, 3) uint8 or uint16 array_like
        The picture to draw on; it is not changed.
    caption : str
        Text below the wheel, such as the length at its rim. It is left out if there is no room.

    Returns
    -------
    picture : (H, W, 3) uint8
        RGB.

    Raises
    ------
    InputError
        If it has another shape or type, or is less than 16 pixels wide or high.
    """
    pixels = to_bytes(as_image(picture))
    height, width = pixels.shape[:2]
    if min(height, width) < 16:
        raise InputError(
            f"picture must have at least 16 × 16 pixels for a wheel, not {width} × {height}."
        )
    size = min(160, max(10, min(height, width) // 4))
    margin = max(2, size // 12)
    font = ImageFont.load_default(max(9, size // 6))
    inner, line = max(size, round(font.getlength(caption))), max(12, size // 4)
    if not caption or inner + 4 * margin > width or size + line + 4 * margin > height:
        caption, inner, line = "", size, 0
    # On a white card, so that the wheel is distinct from the picture.
    right, bottom = width - margin, height - margin
    left, top = right - inner - 2 * margin, bottom - size - line - 2 * margin
    canvas = Image.fromarray(pixels).convert("RGB")
    draw = ImageDraw.Draw(canvas)
    draw.rounded_rectangle((left, top, right - 1, bottom - 1), margin, _WHITE)
    wheel = Image.fromarray(wheel_picture(size))
    canvas.paste(wheel, (left + margin + (inner - size) // 2, top + margin))
    if caption:
        draw.text(((left + right) / 2, bottom - margin), caption, _INK, font, anchor="mb")
    return np.array(canvas)
