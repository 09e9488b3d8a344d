"""Tools for a flow: warp an image by it, resize it, compare it with another flow.

A flow is an H×W×2 array (u, v), u to the right and v down: the pixel (x, y) of the first image
moves to (x + u, y + v) in the second. Unknown flow is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from hamflow._check import as_flow, pixel_array
from hamflow.errors import InputError

# Pixels that are processed at a time: few enough for their temporaries to stay in the cache.
_BLOCK_PIXELS = 2**16


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
    source = pixel_array(image, "image")
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
    for rows in row_blocks(*source.shape[:2]):
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


def resize(flow: ArrayLike, height: int, width: int) -> NDArray[np.float32]:
    """Return the flow of the images after they were resized: the vectors are scaled, too.

    Parameters
    ----------
    flow : (H, W, 2) array_like
        The flow between images of H×W pixels.
    height, width : int
        The new size of the images.

    Returns
    -------
    flow : (height, width, 2) float32
        Interpolated linearly; where the flow gets smaller, the mean of the known vectors that a
        pixel covers. NaN where more than half of what it is made of is unknown.

    Raises
    ------
    InputError
        If the shape is not that of a flow, or the new size is not positive.

    Examples
    --------
    Twice as wide: twice as many pixels, and twice as much motion to the right.

    >>> import numpy as np
    >>> from hamflow.flow import resize
    >>> resize(np.full((2, 3, 2), (5, 1)), 2, 6)[0, 0]
    array([10.,  1.], dtype=float32)
    """
    vectors = as_flow(flow)
    if min(height, width) < 1:
        raise InputError(f"height and width must be positive, but are {height} and {width}.")
    if vectors.shape[:2] == (height, width):
        return vectors.astype(np.float32)

    def resampled(field: NDArray[Any]) -> NDArray[np.float32]:
        picture = Image.fromarray(np.ascontiguousarray(field, np.float32))
        return np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))

    known = np.isfinite(vectors).all(axis=2)
    share = resampled(known)
    scales = width / vectors.shape[1], height / vectors.shape[0]
    planes = [
        resampled(np.where(known, vectors[..., k], 0)) * scale for k, scale in enumerate(scales)
    ]
    # Of the known vectors alone; one of 1e-6 keeps divisions by zero out of what becomes NaN.
    resized = np.stack(planes, axis=2) / np.maximum(share, 1e-6)[..., None]
    resized[share < 0.5] = np.nan
    return resized.astype(np.float32, copy=False)


def row_blocks(height: int, width: int) -> Iterator[slice]:
    """Yield the rows of an image in blocks whose temporaries stay in the cache."""
    step = max(1, _BLOCK_PIXELS // width)
    return (slice(top, min(top + step, height)) for top in range(0, height, step))
