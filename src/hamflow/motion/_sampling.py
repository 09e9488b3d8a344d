"""Reading fields between pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._check import unit_intensities
from hamflow._types import Field

Points = NDArray[np.float64]
"""(..., 2): x and y in pixels."""

_ALIKE = 0.5  # pixels: neighbors whose vectors differ by much more than this are not mixed
_LEAST_SURE = 1e-3  # of the confidence: an error of 1000 pixels
_PATCH = 3  # a square around a point has 2 · 3 + 1 pixels to the side
_FLAT = 0.07  # length of a square that shows nothing but noise: 1 % of white in each pixel


def inside(points: Points, shape: tuple[int, ...], margin: float = 0.5) -> NDArray[np.bool_]:
    """Return which points are in an image of `shape`, or at most `margin` pixels outside of it."""
    x, y = points[..., 0], points[..., 1]
    height, width = shape[:2]
    # NaN fails every comparison.
    within: NDArray[np.bool_] = (x >= -margin) & (x <= width - 1 + margin)
    within &= (y >= -margin) & (y <= height - 1 + margin)
    return within


def nearest(field: NDArray[Any], points: Points) -> NDArray[Any]:
    """Return the values of an (H, W, ...) field at the pixels nearest to some points."""
    x, y = (np.rint(points[..., k]).astype(np.intp) for k in (0, 1))
    values: NDArray[Any] = field[
        np.clip(y, 0, field.shape[0] - 1), np.clip(x, 0, field.shape[1] - 1)
    ]
    return values


def vectors_at(flow: NDArray[np.float32], points: Points) -> Points:
    """Interpolate a flow at some points without mixing the motions of two surfaces.

    The four pixels around a point count by their bilinear weights, but less the more their vectors
    differ from that of the nearest pixel: beside a motion boundary, a mean of both sides would be
    the motion of neither.
    """
    height, width = flow.shape[:2]
    x = np.clip(points[..., 0], 0, width - 1)
    y = np.clip(points[..., 1], 0, height - 1)
    left = np.minimum(x.astype(np.intp), max(width - 2, 0))
    top = np.minimum(y.astype(np.intp), max(height - 2, 0))
    right, below = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    across, down = x - left, y - top
    corners = np.stack(
        [flow[top, left], flow[top, right], flow[below, left], flow[below, right]], axis=-2
    ).astype(np.float64)
    weights = np.stack(
        [
            (1 - across) * (1 - down),
            across * (1 - down),
            (1 - across) * down,
            across * down,
        ],
        axis=-1,
    )
    main = np.take_along_axis(corners, weights.argmax(axis=-1)[..., None, None], axis=-2)
    apart = np.square(corners - main).sum(axis=-1)
    weights *= np.exp(-apart / (2 * _ALIKE**2))
    total = weights.sum(axis=-1, keepdims=True)
    mean: Points = (weights[..., None] * corners).sum(axis=-2) / total
    return mean


def gray(image: NDArray[Any]) -> Field:
    """Return an image as float32 from 0 to 1, (H, W)."""
    pixels = unit_intensities(image)
    return pixels if pixels.ndim == 2 else pixels.mean(axis=2)


def patches_at(image: Field, points: Points) -> NDArray[np.float32]:
    """Return the squares around points without mean and of length 1, (N, 49).

    The product of two of them is their correlation. Flat squares are 0.
    """
    near = np.arange(-_PATCH, _PATCH + 1.0)
    offsets = np.stack(np.meshgrid(near, near), axis=-1).reshape(-1, 2)
    places = points[:, None] + offsets
    height, width = image.shape
    x, y = np.clip(places[..., 0], 0, width - 1), np.clip(places[..., 1], 0, height - 1)
    left, top = x.astype(np.intp), y.astype(np.intp)
    right, below = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    across, down = x - left, y - top
    upper = image[top, left] * (1 - across) + image[top, right] * across
    lower = image[below, left] * (1 - across) + image[below, right] * across
    values = upper * (1 - down) + lower * down
    values -= values.mean(axis=1, keepdims=True)
    length = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.maximum(length, _FLAT), np.float32)


def expected_error(confidence: Field | None) -> Field | None:
    """Return the error of a flow, in pixels, that its confidence lets expect."""
    if confidence is None:
        return None
    return np.asarray(1 / np.maximum(confidence, _LEAST_SURE) - 1, np.float32)
