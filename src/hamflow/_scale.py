"""Images at a fraction of their size, and flow back at full size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def reduced(image: NDArray[Any], factor: int) -> NDArray[Any]:
    """Return the means of boxes of factor × factor pixels; incomplete boxes are left out."""
    if factor == 1:
        return image
    height, width = (side // factor for side in image.shape[:2])
    boxes = image[: height * factor, : width * factor].reshape(height, factor, width, factor, -1)
    means = boxes.mean(axis=(1, 3))
    if image.dtype.kind != "f":
        means = np.rint(means)
    result: NDArray[Any] = means.astype(image.dtype).reshape(height, width, *image.shape[2:])
    return result


def enlarged_flow(flow: NDArray[np.float32], factor: int) -> NDArray[np.float32]:
    """Give every pixel of a box the flow of the box, in pixels of the larger size."""
    return np.repeat(np.repeat(flow * np.float32(factor), factor, axis=0), factor, axis=1)
