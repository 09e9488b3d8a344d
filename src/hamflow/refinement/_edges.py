"""Smoothed images, and the contrasts between their neighboring pixels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._types import Field, Image


def image_edges(image: Image, blur: float) -> tuple[Field, Field]:
    """Return the mean absolute differences to the right and lower neighbors, 0 at the border.

    Parameters
    ----------
    image : (H, W, C) array of float32
        Continued by its outermost pixels.
    blur : float
        Standard deviation of the smoothing before, in pixels; 0 for none.
    """
    smoothed = np.ascontiguousarray(image, np.float32)
    if blur > 0:
        smoothed = smooth(smoothed, gaussian_weights(blur))
    right, down = np.empty((2, *image.shape[:2]), np.float32)
    _native.contrasts(smoothed, right, down)
    return right, down


def texture(edges: tuple[Field, Field]) -> Field:
    """Return how much contrast there is around each pixel, in 5×5 pixels."""
    return smooth((edges[0] + edges[1])[..., None], np.full(5, 0.2))[..., 0]


def gaussian_weights(sigma: float) -> NDArray[np.float32]:
    """Return the weights of the pixels around one, an odd number of them."""
    if sigma <= 0:
        return np.ones(1, np.float32)
    radius = max(1, math.ceil(3 * sigma))
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    normalized: NDArray[np.float32] = (weights / weights.sum()).astype(np.float32)
    return normalized


def smooth(image: Image, weights: ArrayLike) -> Image:
    """Filter along both axes; beyond the border, the outermost pixels go on."""
    out = np.empty_like(image)
    _native.smooth(image, np.asarray(weights, np.float32), out)
    return out


def box_mean(fields: Image, side: int) -> Image:
    """Return the means over squares with an odd side; beyond the border as `smooth`."""
    return smooth(np.ascontiguousarray(fields, np.float32), np.full(side, 1 / side))
