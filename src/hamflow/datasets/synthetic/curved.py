"""The forms of curved things in space: grids of points, and the light on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

from hamflow.datasets.synthetic.mesh import Points, Sway

_AROUND = 48  # columns of a body that is round
_ROWS = 30
_DARKEST = 0.35  # brightness of what the light does not reach


def turned_body(rng: np.random.Generator, size: float) -> Points:
    """Return a body of revolution about the y-axis, of about this size: tube, ball or vase.

    Columns go around it, rows from its upper to its lower end, where it is closed. The first and
    the last column are the same, on the side away from a camera that looks along z.
    """
    kind = rng.choice(3)
    s = np.linspace(0, 1, _ROWS + 1)
    if kind == 0:  # a tube with flat ends; the rows are about equally far apart
        radius, length = size * rng.uniform(0.08, 0.5), size * rng.uniform(1.0, 3.0)
        cap = max(1, round(_ROWS * radius / (length + 2 * radius)))
        middle = _ROWS - 2 * cap
        taper = rng.uniform(0.6, 1.0) if rng.uniform() < 0.4 else 1.0
        ends = np.linspace(0, 1, cap + 1)
        radii = np.concatenate([taper * ends, np.linspace(taper, 1, middle + 1)[1:-1], ends[::-1]])
        radii *= radius
        heights = np.concatenate(
            [np.zeros(cap), np.linspace(0, length, middle + 1), np.full(cap, length)]
        )
        heights -= length / 2
    elif kind == 1:  # a ball
        radii, heights = size * np.sin(np.pi * s), -size * np.cos(np.pi * s)
        heights *= rng.uniform(0.6, 1.3)
    else:
        bulge = rng.uniform(0.2, 0.5) * np.sin(
            2 * np.pi * rng.uniform(0.5, 1.5) * s + rng.uniform(0, 6)
        )
        radii = size * rng.uniform(0.3, 0.6) * (1 + bulge)
        radii[[0, -1]] = 0
        heights = size * rng.uniform(1.5, 3) * (s - 0.5)
        heights[[0, -1]] = heights[[1, -2]]
    angles = np.linspace(0, 2 * np.pi, _AROUND + 1)
    x, z = np.outer(radii, np.sin(angles)), np.outer(radii, np.cos(angles))
    x[:, -1], z[:, -1] = x[:, 0], z[:, 0]
    return np.stack([x, np.broadcast_to(heights[:, None], x.shape), z], axis=2)


def hills(rng: np.random.Generator, width: float, length: float) -> Points:
    """Return hills on the ground, around the origin; the first row is the farthest."""
    across, along = np.meshgrid(np.linspace(-1, 1, 41), np.linspace(1, -1, 41))
    height = np.zeros_like(across)
    for _ in range(int(rng.integers(2, 6))):
        x, z = rng.uniform(-0.6, 0.6, 2)
        spread = rng.uniform(0.15, 0.45)
        height += rng.uniform(0.1, 0.5) * np.exp(
            -((across - x) ** 2 + (along - z) ** 2) / (2 * spread**2)
        )
    # It ends on the ground.
    height *= np.clip(1.5 * (1 - np.maximum(np.abs(across), np.abs(along))), 0, 1)
    return np.stack([across * width / 2, -height, along * length / 2], axis=2)


def sheet(rng: np.random.Generator, size: float, tilt: NDArray[np.float64]) -> tuple[Points, Sway]:
    """Return a rectangle in the plane z = 0, and the waves through it once it is tilted."""
    width, height = size, size * rng.uniform(0.5, 1.4)
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, 37) * width, np.linspace(-0.5, 0.5, 37) * height)
    count = int(rng.integers(1, 4))
    lengths = np.exp(rng.uniform(np.log(0.4), np.log(1.5), count))
    numbers, angles = 2 * np.pi / lengths / 36, rng.uniform(0, 2 * np.pi, count)
    waves = np.column_stack(
        [numbers * np.cos(angles), numbers * np.sin(angles), rng.uniform(0, 2 * np.pi, count)]
    )
    amplitudes = size * lengths * rng.uniform(0.02, 0.12, count)
    speeds = rng.choice([-1, 1], count) * rng.uniform(0.1, 1.2, count)
    return np.stack([x, y, np.zeros_like(x)], axis=2), Sway(tilt[:, 2], waves, amplitudes, speeds)


def soft_disc(size: int) -> NDArray[np.uint8]:
    """Return the coverage of a disc with a soft and uneven edge."""
    x, y = np.meshgrid(np.linspace(-1, 1, size), np.linspace(-1, 1, size))
    angle = np.arctan2(y, x)
    edge = 0.9 + 0.04 * np.sin(5 * angle) + 0.03 * np.sin(9 * angle + 1)
    return np.asarray(255 * np.clip((edge - np.hypot(x, y)) / 0.06, 0, 1), np.uint8)


def extent(points: Points) -> tuple[float, float]:
    """Return the length of the longest row and of the longest column of a grid."""
    across = np.linalg.norm(np.diff(points, axis=1), axis=2).sum(axis=1).max()
    down = np.linalg.norm(np.diff(points, axis=0), axis=2).sum(axis=0).max()
    return float(across), float(down)


def light(points: Points, sun: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the brightness, to 1, of each point of a surface seen from the origin."""
    normals = np.cross(np.gradient(points, axis=1), np.gradient(points, axis=0))
    normals /= np.maximum(np.linalg.norm(normals, axis=2, keepdims=True), 1e-12)
    # Of the side that is seen.
    facing = (normals * points).sum(axis=2)
    normals *= np.where(facing > 0, -1.0, 1.0)[..., None]
    reached = np.maximum(normals @ (sun / np.linalg.norm(sun)), 0)
    return np.asarray(_DARKEST + (1 - _DARKEST) * reached)


def lit(picture: Image.Image, brightness: NDArray[np.float64]) -> Image.Image:
    """Return an RGBA texture with the light on the surface."""
    shade = Image.fromarray((255 * brightness).astype(np.uint8)).resize(
        picture.size, Image.Resampling.BILINEAR
    )
    white = Image.new("L", picture.size, 255)
    return ImageChops.multiply(picture, Image.merge("RGBA", (shade, shade, shade, white)))
