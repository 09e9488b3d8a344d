"""Tools for a flow: show it in colors, warp an image by it, compare it with another flow.

A flow is an H×W×2 array (u, v), u to the right and v down: the pixel (x, y) of the first image
moves to (x + u, y + v) in the second. Unknown flow is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_flow
from hamflow.errors import InputError

# Pixels that are processed at a time: few enough for their temporaries to stay in the cache.
_BLOCK_PIXELS = 2**16
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
    package ``flow_vis``.

    Parameters
    ----------
    flow : (H, W, 2) array_like
        Unknown pixels (NaN) become black.
    max_flow : float, optional
        The length in pixels that is shown fully saturated; longer vectors are darkened. By
        default the length of the longest vector. Fix it for the frames of a video, so that the
        colors do not flicker.

    Returns
    -------
    image : (H, W, 3) uint8
        RGB.

    Raises
    ------
    InputError
        If the flow has another shape or infinite values, or `max_flow` is not positive.
    """
    vectors = as_flow(flow)
    if np.isinf(vectors).any():
        raise InputError("flow has infinite values; mark unknown pixels with NaN.")
    if max_flow is not None and not 0 < max_flow < np.inf:
        raise InputError(f"max_flow must be a positive number of pixels, but is {max_flow}.")
    unknown = np.isnan(vectors).any(axis=2)
    if unknown.any():
        vectors = np.where(unknown[:, :, None], vectors.dtype.type(0), vectors)
    # flow_vis adds this constant, too, so that a flow of zeros can be shown.
    scale = (_longest(vectors) if max_flow is None else vectors.dtype.type(max_flow)) + 1e-5

    wheel = color_wheel() / 255.0
    image = np.empty((*unknown.shape, 3), np.uint8)
    for rows in _row_blocks(*unknown.shape):
        image[rows] = _colors(vectors[rows, :, 0] / scale, vectors[rows, :, 1] / scale, wheel)
    image[unknown] = 0
    return image


def _longest(vectors: NDArray[np.floating[Any]]) -> np.floating[Any]:
    lengths = (
        _length(vectors[rows, :, 0], vectors[rows, :, 1]).max()
        for rows in _row_blocks(*vectors.shape[:2])
    )
    return max(lengths)


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
    """Return the colors, as floats from 0 to 255, of vectors relative to the longest."""
    radius = _length(u, v)[:, :, None]
    position = (np.arctan2(-v, -u) / np.pi + 1) / 2 * (len(wheel) - 1)
    before = np.floor(position).astype(np.int32)
    after = (before + 1) % len(wheel)
    share = (position - before)[:, :, None]
    color: NDArray[np.float64] = (1 - share) * wheel[before] + share * wheel[after]
    color = np.where(radius <= 1, 1 - radius * (1 - color), color * 0.75)
    return np.floor(255 * color, out=color)


@overload
def warp(
    image: ArrayLike, flow: ArrayLike, *, fill: float = ..., return_mask: Literal[False] = ...
) -> NDArray[Any]: ...


@overload
def warp(
    image: ArrayLike, flow: ArrayLike, *, fill: float = ..., return_mask: Literal[True]
) -> tuple[NDArray[Any], NDArray[np.bool_]]: ...


def warp(
    image: ArrayLike, flow: ArrayLike, *, fill: float = 0, return_mask: bool = False
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[np.bool_]]:
    """Warp the second image to the first by the flow from the first to the second.

    ``out[y, x] = image[y + v, x + u]`` with ``u, v = flow[y, x]``, bilinearly interpolated. Where
    the flow is right and the pixel is visible, the result looks like the first image.

    Parameters
    ----------
    image : (H, W) or (H, W, C) array_like
        The second image: uint8, uint16, float32 or float64.
    flow : (H, W, 2) array_like
        The flow from the first image to the second.
    fill : float
        The value where the flow is unknown or leaves the image.
    return_mask : bool
        Whether to return also the pixels that are interpolated and not `fill`.

    Returns
    -------
    warped : array
        Of the shape and type of `image`; integers are rounded.
    mask : (H, W) bool
        Only with `return_mask`.

    Raises
    ------
    InputError
        If shapes or types do not fit.

    Examples
    --------
    Everything moves one pixel to the right, so the flow is (1, 0):

    >>> import numpy as np
    >>> from hamflow.flow import warp
    >>> first = np.array([[10, 20, 30, 40]], np.uint8)
    >>> second = np.array([[99, 10, 20, 30]], np.uint8)
    >>> flow = np.zeros((1, 4, 2), np.float32)
    >>> flow[..., 0] = 1
    >>> warp(second, flow)
    array([[10, 20, 30,  0]], dtype=uint8)
    """
    source = np.asarray(image)
    vectors = as_flow(flow)
    if source.ndim not in (2, 3) or source.shape[:2] != vectors.shape[:2] or source.size == 0:
        raise InputError(
            f"image must have as many rows and columns as flow, {vectors.shape[0]} and "
            f"{vectors.shape[1]}, but has the shape {source.shape}."
        )
    if source.dtype not in (np.uint8, np.uint16, np.float32, np.float64):
        raise InputError(
            f"image must be of type uint8, uint16, float32 or float64, but is {source.dtype}."
        )
    if source.dtype.kind == "u" and not (
        0 <= fill <= np.iinfo(source.dtype).max and fill == int(fill)
    ):
        raise InputError(f"fill must be a value that {source.dtype} can hold, but is {fill}.")

    planes = source.reshape(*source.shape[:2], -1)
    warped = np.full(planes.shape, fill, source.dtype)
    mask = np.empty(planes.shape[:2], np.bool_)
    for rows in _row_blocks(*source.shape[:2]):
        mask[rows], values = _sample(planes, vectors[rows], rows.start)
        warped[rows][mask[rows]] = values
    warped = warped.reshape(source.shape)
    return (warped, mask) if return_mask else warped


def _sample(
    planes: NDArray[Any], vectors: NDArray[np.floating[Any]], top: int
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Interpolate where the vectors of the rows from `top` on point to.

    Returns which of these places are inside of the image, and the N×C values there.
    """
    height, width, _ = planes.shape
    rows, columns = vectors.shape[:2]
    x = vectors[:, :, 0] + np.arange(columns, dtype=np.float64)
    y = vectors[:, :, 1] + np.arange(top, top + rows, dtype=np.float64)[:, None]
    # NaN fails every comparison, so unknown flow counts as outside.
    inside = (x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1)
    x, y = x[inside], y[inside]
    left, above = np.floor(x).astype(np.intp), np.floor(y).astype(np.intp)
    share_x, share_y = (x - left)[:, None], (y - above)[:, None]
    # A place on a pixel must not use the next one, which may be outside, or NaN.
    right, below = left + (x > left), above + (y > above)
    upper = planes[above, left] * (1 - share_x) + planes[above, right] * share_x
    lower = planes[below, left] * (1 - share_x) + planes[below, right] * share_x
    values = upper * (1 - share_y) + lower * share_y
    return inside, np.rint(values) if planes.dtype.kind == "u" else values


def endpoint_error(flow: ArrayLike, truth: ArrayLike) -> NDArray[np.float32]:
    """Return the distance between two flows, pixel by pixel.

    Parameters
    ----------
    flow, truth : (H, W, 2) array_like
        The flows to compare.

    Returns
    -------
    error : (H, W) float32
        In pixels; NaN where either flow is unknown.

    Raises
    ------
    InputError
        If the shapes differ or are not those of a flow.
    """
    a, b = as_flow(flow), as_flow(truth, "truth")
    if a.shape != b.shape:
        raise InputError(f"flow and truth must have the same shape, not {a.shape} and {b.shape}.")
    difference = a - b
    return np.hypot(difference[:, :, 0], difference[:, :, 1]).astype(np.float32, copy=False)


def _row_blocks(height: int, width: int) -> Iterator[slice]:
    step = max(1, _BLOCK_PIXELS // width)
    return (slice(top, min(top + step, height)) for top in range(0, height, step))
