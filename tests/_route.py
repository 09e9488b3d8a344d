"""A small estimator, and images whose motion is known."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hamflow
from hamflow import EstimatorConfig, FlowResult
from hamflow.refinement import AffineCompletion, VariationalRefinement

Array = NDArray[Any]

# Quick, for what does not depend on the presets' parameters.
SMALL = EstimatorConfig(
    model="pairs",
    closer_pixels=0,
    completion=AffineCompletion(neighbors=20, rounds=2),
    refinement=VariationalRefinement(warps=3, sweeps=8),
)
STAGES = ["descriptors", "matching", "check", "completion", "refinement"]


@cache
def texture(height: int, width: int, seed: int = 0) -> Array:
    """Blobs of a few pixels, uint8."""
    image = np.random.default_rng(seed).random((height, width, 3))
    for axis in (0, 1) * 3:
        image = (image + np.roll(image, 1, axis) + np.roll(image, -1, axis)) / 3
    low, high = image.min(), image.max()
    return np.rint((image - low) / (high - low) * 255).astype(np.uint8)


@cache
def shifted(u: int, v: int, height: int = 60, width: int = 80) -> tuple[Array, Array]:
    """Two cut-outs of a texture; everything moves by (u, v)."""
    rows, columns = abs(v), abs(u)
    scene = texture(height + 2 * rows, width + 2 * columns)
    first = scene[rows : rows + height, columns : columns + width]
    second = scene[rows - v : rows - v + height, columns - u : columns - u + width]
    return np.ascontiguousarray(first), np.ascontiguousarray(second)


def error(flow: Array, u: float, v: float, margin: int = 12) -> float:
    """Largest error at some distance from the border."""
    inner = flow[margin:-margin, margin:-margin]
    return float(np.hypot(inner[..., 0] - u, inner[..., 1] - v).max())


def estimate(*images: Any, **options: Any) -> FlowResult:
    return hamflow.estimate(*images, **({"preset": SMALL} | options))


@cache
def usual() -> FlowResult:
    """A result to look at from all sides."""
    return estimate(*shifted(5, -3))


def moving_square() -> tuple[Array, Array, Array, Array]:
    """A bright square on a dark background at rest, where it is, and what it hides."""
    background, front = texture(80, 110) // 2, 255 - texture(32, 32, 1) // 2
    frames, places = [], []
    for left in (30, 42):
        frame, place = background.copy(), np.zeros((80, 110), np.bool_)
        frame[25:57, left : left + 32] = front
        place[25:57, left : left + 32] = True
        frames.append(frame)
        places.append(place)
    return frames[0], frames[1], places[0], places[1] & ~places[0]
