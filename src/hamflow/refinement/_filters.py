"""Small linear filters; beyond the border an image is continued by its outermost pixels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hamflow._types import Image


def gaussian(image: Image, sigma: float) -> Image:
    """Smooth along both axes; 0 leaves the image as it is."""
    if sigma <= 0:
        return image
    weights = tuple(float(weight) for weight in gaussian_weights(sigma))
    return filtered(filtered(image, weights, 0), weights, 1)


def gaussian_weights(sigma: float) -> NDArray[np.float32]:
    """Return the weights of the pixels around one, an odd number of them."""
    if sigma <= 0:
        return np.ones(1, np.float32)
    radius = max(1, math.ceil(3 * sigma))
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    normalized: NDArray[np.float32] = (weights / weights.sum()).astype(np.float32)
    return normalized


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
