"""Images at a fraction of their size, and flow back at full size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def downsample(image: NDArray[Any], factor: int) -> NDArray[Any]:
    """Return the means of boxes of factor × factor pixels; incomplete boxes are left out."""
    if factor == 1:
        return image
    height, width = (side // factor for side in image.shape[:2])
    whole = image[: height * factor, : width * factor]
    if image.dtype.kind == "f":
        # Whole rows, then columns: several times faster than a mean over two axes of boxes.
        rows = sum(whole[k::factor] for k in range(1, factor)) + whole[::factor]
        boxes = rows.reshape(height, width, factor, -1)
        means = sum(boxes[:, :, k] for k in range(1, factor)) + boxes[:, :, 0]
        means /= factor**2
    else:
        means = np.rint(whole.reshape(height, factor, width, factor, -1).mean(axis=(1, 3)))
    result: NDArray[Any] = means.astype(image.dtype, copy=False)
    return result.reshape(height, width, *image.shape[2:])


def upsample_flow(flow: NDArray[np.float32], factor: int) -> NDArray[np.float32]:
    """Give every pixel of a box the flow of the box, in pixels of the larger size."""
    return np.repeat(np.repeat(flow * np.float32(factor), factor, axis=0), factor, axis=1)


def upsample_linear(
    field: NDArray[np.float32], factor: int, shape: tuple[int, int]
) -> NDArray[np.float32]:
    """Interpolate a field between the centers of its boxes, linearly, cut to `shape`.

    Beyond the outermost centers it is constant. Values stay as they are: multiply a flow by the
    factor yourself.
    """
    for axis, size in enumerate(shape):
        place = (np.arange(size, dtype=np.float32) + 0.5) / factor - 0.5
        place = place.clip(0, field.shape[axis] - 1)
        before = place.astype(np.intp)
        after = np.minimum(before + 1, field.shape[axis] - 1)
        share = (place - before).astype(np.float32)
        share = share.reshape((-1,) + (1,) * (field.ndim - 1 - axis))
        lower, upper = field.take(before, axis), field.take(after, axis)
        # In this order equal neighbors give exactly their value.
        field = lower + share * (upper - lower)
    return field


def upsample_nearest(field: NDArray[Any], factor: int, shape: tuple[int, int]) -> NDArray[Any]:
    """Repeat each value over its box, cut to `shape` or continued by the outermost values."""
    rows, columns = (
        np.minimum(np.arange(size) // factor, have - 1)
        for size, have in zip(shape, field.shape, strict=False)
    )
    return np.ascontiguousarray(field[rows][:, columns])
