"""Contrasts between neighboring pixels of a smoothed image."""

from __future__ import annotations

import math

import numpy as np

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
        radius = max(1, math.ceil(3 * blur))
        weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / blur) ** 2)
        smoothed = smooth(smoothed, weights / weights.sum())
    right, down = np.empty((2, *image.shape[:2]), np.float32)
    _native.contrasts(smoothed, right, down)
    return right, down


def texture(edges: tuple[Field, Field]) -> Field:
    """Return how much contrast there is around each pixel, in 5×5 pixels."""
    return smooth((edges[0] + edges[1])[..., None], np.full(5, 0.2))[..., 0]


def smooth(image: Image, weights: np.typing.ArrayLike) -> Image:
    out = np.empty_like(image)
    _native.smooth(image, np.asarray(weights, np.float32), out)
    return out
