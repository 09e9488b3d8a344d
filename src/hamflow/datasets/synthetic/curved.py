"""The forms of curved things in space: grids of points, and the light on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

from hamflow.datasets.synthetic.mesh import Points, Sway

_Line = NDArray[np.float64]
_AROUND = 48  # columns of a body that is round
_ROWS = 40
_DARKEST = 0.35  # brightness of what the light does not reach


def turned_body(rng: np.random.Generator, size: float) -> Points:
    """Return a body of revolution about the y-axis, of about this size: tube, ball or vase.

    Columns go around it, rows from its upper to its lower end, where it is closed. The first and
    the last column are the same, on the side away from a camera that looks along z.
    """
    radii, heights = _even(*_profile(rng, size))
    angles = np.linspace(0, 2 * np.pi, _AROUND + 1)
    x, z = np.outer(radii, np.sin(angles)), np.outer(radii, np.cos(angles))
    x[:, -1], z[:, -1] = x[:, 0], z[:, 0]
    return np.stack([x, np.broadcast_to(heights[:, None], x.shape), z], axis=2)


def _profile(rng: np.random.Generator, size: float) -> tuple[_Line, _Line]:
    """Return radii and heights of the outline of a tube, a ball or a vase, from end to end."""
    kind = rng.choice(3)
    s = np.linspace(0, 1, 60)
    if kind == 0:
        radius, length = size * rng.uniform(0.08, 0.5), size * rng.uniform(1.0, 3.0)
        taper = rng.uniform(0.6, 1.0) if rng.uniform() < 0.4 else 1.0
        ends = length * np.array([-0.5, -0.5, 0.5, 0.5])
        return np.array([0.0, taper * radius, radius, 0.0]), ends
    if kind == 1:
        squeezed = rng.uniform(0.6, 1.3)
        return size * np.sin(np.pi * s), -squeezed * size * np.cos(np.pi * s)
    phase, waves = rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 1.5)
    bulge = rng.uniform(0.2, 0.5) * np.sin(2 * np.pi * waves * s + phase)
    radii, heights = rng.uniform(0.3, 0.6) * (1 + bulge), rng.uniform(1.5, 3) * (s - 0.5)
    radii[[0, -1]], heights[[0, -1]] = 0, heights[[1, -2]]
    return size * radii, size * heights


def _even(radii: _Line, heights: _Line) -> tuple[_Line, _Line]:
    """Return points of an outline that are equally far apart: textures are not stretched then."""
    along = np.concatenate([[0], np.cumsum(np.hypot(np.diff(radii), np.diff(heights)))])
    even = np.linspace(0, along[-1], _ROWS + 1)
    radii = np.interp(even, along, radii)
    radii[[0, -1]] = 0
    return radii, np.interp(even, along, heights)


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
