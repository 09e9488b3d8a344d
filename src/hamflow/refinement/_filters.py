"""Small linear filters; beyond the border an image is continued by its outermost pixels."""

from __future__ import annotations

import math

import numpy as np

from hamflow._types import Image

DERIVATIVE = (1 / 12, -8 / 12, 0.0, 8 / 12, -1 / 12)
"""Five-point derivative, as weights of the pixels at -2, -1, 0, 1, 2."""


def gaussian(image: Image, sigma: float) -> Image:
    """Smooth along both axes; 0 leaves the image as it is."""
    if sigma <= 0:
        return image
    radius = max(1, math.ceil(3 * sigma))
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    weights /= weights.sum()
    return filtered(filtered(image, tuple(weights), 0), tuple(weights), 1)


def filtered(image: Image, weights: tuple[float, ...], axis: int) -> Image:
    """Return the weighted sums of neighbors along one axis; an odd number of weights."""
    radius = len(weights) // 2
    padding = [(radius, radius) if a == axis else (0, 0) for a in range(image.ndim)]
    padded = np.pad(image, padding, mode="edge")
    total = np.zeros_like(image)
    count = image.shape[axis]
    for k, weight in enumerate(weights):
        if weight:
            part = padded[k : k + count] if axis == 0 else padded[:, k : k + count]
            total += np.float32(weight) * part
    return total


def contrasts(image: Image) -> tuple[Image, Image]:
    """Return the mean absolute differences to the right and lower neighbors, 0 at the border."""
    right, down = (np.zeros(image.shape[:2], np.float32) for _ in range(2))
    right[:, :-1] = np.abs(np.diff(image, axis=1)).mean(axis=2)
    down[:-1] = np.abs(np.diff(image, axis=0)).mean(axis=2)
    return right, down
