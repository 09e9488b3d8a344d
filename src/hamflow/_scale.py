"""Images at a fraction of their size, and flow back at full size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._room import empty
from hamflow._types import Image


def downsample(image: NDArray[Any], factor: int) -> NDArray[Any]:
    """Return the means of boxes of factor × factor pixels; incomplete boxes are left out."""
    if factor == 1:
        return image
    height, width = (side // factor for side in image.shape[:2])
    if image.dtype == np.float32 and image.ndim == 3 and height and width:
        return reduced(image, factor, (height, width))
    boxes = image[: height * factor, : width * factor].reshape(height, factor, width, factor, -1)
    means = boxes.mean(axis=(1, 3))
    if image.dtype.kind != "f":
        means = np.rint(means)
    result: NDArray[Any] = means.astype(image.dtype).reshape(height, width, *image.shape[2:])
    return result


def reduced(image: Image, factor: int, shape: tuple[int, int] | None = None) -> Image:
    """Return the means of boxes; incomplete ones are completed by the outermost pixels.

    Sides are rounded up, unless a shape is given.
    """
    height, width = shape or (-(-side // factor) for side in image.shape[:2])
    out = empty((height, width, image.shape[2]), np.float32)
    _native.reduce(np.ascontiguousarray(image), factor, out)
    return out


def upsample_linear(
    field: NDArray[np.float32], factor: int, shape: tuple[int, int]
) -> NDArray[np.float32]:
    """Interpolate a field between the centers of its boxes, linearly, cut to `shape`.

    Beyond the outermost centers it is constant. Values stay as they are: multiply a flow by the
    factor yourself.
    """
    planes = np.ascontiguousarray(field.reshape(*field.shape[:2], -1), np.float32)
    larger = empty((*shape, planes.shape[2]), np.float32)
    _native.upsample(planes, factor, larger)
    return larger.reshape(*shape, *field.shape[2:])


def upsample_nearest(field: NDArray[Any], factor: int, shape: tuple[int, int]) -> NDArray[Any]:
    """Repeat each value over its box, cut to `shape` or continued by the outermost values."""
    rows, columns = (
        np.minimum(np.arange(size) // factor, have - 1)
        for size, have in zip(shape, field.shape, strict=False)
    )
    # First what is smaller: rows are then copied as a whole.
    wider = field.take(columns, axis=1)
    larger = empty((*shape, *field.shape[2:]), field.dtype.type)
    # Another mode would take a detour, as it may fail.
    np.take(wider, rows, axis=0, out=larger, mode="clip")
    return larger
