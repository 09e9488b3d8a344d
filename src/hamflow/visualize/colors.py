"""The colors of the Middlebury wheel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.flow import row_blocks
from hamflow.visualize.scale import to_draw

# Colors between one hue of the wheel and the next, as Baker et al. chose them by eye:
# red-yellow, yellow-green, green-cyan, cyan-blue, blue-magenta, magenta-red.
_WHEEL_STEPS = (15, 6, 4, 11, 13, 6)
_WHEEL_HUES = ((1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 1, 1), (0, 0, 1), (1, 0, 1), (1, 0, 0))


def color_wheel() -> NDArray[np.float64]:
    """Return the colors of the Middlebury wheel.

    Returns
    -------
    wheel : (55, 3) float64
        RGB colors, whole numbers from 0 to 255, starting with red, by increasing angle.

    References
    ----------
    S. Baker, D. Scharstein, J. P. Lewis, S. Roth, M. J. Black, R. Szeliski: A database and
    evaluation methodology for optical flow. IJCV 92, 2011.
    """
    parts = []
    for start, end, steps in zip(_WHEEL_HUES, _WHEEL_HUES[1:], _WHEEL_STEPS, strict=False):
        ramp = np.floor(255 * np.arange(steps) / steps)[:, None]
        parts.append(255 * np.array(start) + ramp * (np.array(end) - start))
    return np.concatenate(parts)


def flow_to_color(flow: ArrayLike, max_flow: float | None = None) -> NDArray[np.uint8]:
    """Show a flow in the colors of the Middlebury wheel.

    The hue is the direction, the saturation is the length. The result is the same as that of the
    package ``flow_vis``, except for two of its properties, which draw edges into a surface that
    moves as a whole: vectors beyond full color keep the color of their direction, where
    ``flow_vis`` darkens them; and directions less than 1/54 of the circle (7°) above right lead to
    red without the seam that ``flow_vis`` has there.

    Parameters
    ----------
    flow : (H, W, 2) array_like
        Unknown pixels (NaN) become black.
    max_flow : float, optional
        The length in pixels that is shown in full color, and so are longer vectors. By default
        `hamflow.visualize.typical_length`. Give it to make pictures comparable; for the frames of
        a video see `hamflow.visualize.RunningScale`.

    Returns
    -------
    image : (H, W, 3) uint8
        RGB.

    Raises
    ------
    InputError
        If the flow has another shape or infinite values, or `max_flow` is not positive.
    """
    vectors, longest = to_draw(flow, max_flow)
    unknown = np.isnan(vectors).any(axis=2)
    if unknown.any():
        vectors = np.where(unknown[:, :, None], vectors.dtype.type(0), vectors)
    scale = vectors.dtype.type(longest) + 1e-5  # flow_vis adds this constant, too

    wheel = color_wheel() / 255.0
    wheel[-1] = wheel[0]  # closes the circle: right is the first color, and also the last one
    image = np.empty((*unknown.shape, 3), np.uint8)
    for rows in row_blocks(*unknown.shape):
        image[rows] = _colors(vectors[rows, :, 0] / scale, vectors[rows, :, 1] / scale, wheel)
    image[unknown] = 0
    return image


def _length(
    u: NDArray[np.floating[Any]], v: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    # Not np.hypot, which rounds differently and would give other colors than flow_vis.
    with np.errstate(over="ignore"):
        length: NDArray[np.floating[Any]] = np.sqrt(np.square(u) + np.square(v))
    return length


def _colors(
    u: NDArray[np.floating[Any]], v: NDArray[np.floating[Any]], wheel: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the colors, as floats from 0 to 255, of vectors relative to the one in full color."""
    radius = np.minimum(_length(u, v), 1)[:, :, None]
    position = (np.arctan2(-v, -u) / np.pi + 1) / 2 * (len(wheel) - 1)
    before = np.floor(position).astype(np.int32)
    after = (before + 1) % len(wheel)
    share = (position - before)[:, :, None]
    color: NDArray[np.float64] = (1 - share) * wheel[before] + share * wheel[after]
    color = 1 - radius * (1 - color)
    return np.floor(255 * color, out=color)
