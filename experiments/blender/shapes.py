"""Meshes, as arrays: places of the vertices (N, 3), and the vertices of each face (M, 4)."""

from __future__ import annotations

import math

import numpy as np

Random = np.random.Generator
Floats = np.ndarray
Mesh = tuple[Floats, Floats]


def grid(nx: int, ny: int) -> tuple[Floats, Floats, Floats]:
    """Return u and v of the vertices of a grid, from 0 to 1, and its faces."""
    u, v = np.meshgrid(np.linspace(0, 1, nx), np.linspace(0, 1, ny))
    k = np.arange(nx * ny).reshape(ny, nx)
    faces = np.stack([k[:-1, :-1], k[:-1, 1:], k[1:, 1:], k[1:, :-1]], axis=-1)
    return u.ravel(), v.ravel(), faces.reshape(-1, 4)


def waves(rng: Random, points: Floats, octaves: int = 4, scale: float = 1.0) -> Floats:
    """Return smooth random heights of places, about within -1 to 1."""
    height = np.zeros(len(points))
    for k in range(octaves):
        for _ in range(4):
            direction = rng.normal(size=points.shape[1]) * 2**k * scale
            height += 0.5**k * np.sin(points @ direction + rng.uniform(0, 6.3)) / 3
    return height


def sphere(nx: int = 40, ny: int = 24) -> Mesh:
    """Return a ball of radius 1."""
    u, v, faces = grid(nx, ny)
    around, down = u * 2 * np.pi, v * np.pi
    points = [np.cos(around) * np.sin(down), np.sin(around) * np.sin(down), np.cos(down)]
    return np.stack(points, axis=-1), faces


def stone(rng: Random, size: Floats, rough: float) -> tuple[Floats, Floats, Floats]:
    """Return a ball with bumps, and another form of it."""
    direction, faces = sphere()
    points = direction * (1 + rough * waves(rng, direction, 3, 1.5)[:, None]) * size
    return points, faces, points * (1 + 0.15 * waves(rng, direction, 2)[:, None])


def box(size: Floats) -> Mesh:
    """Return a box whose bottom is at 0."""
    corners = [[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (0, 1)]
    faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return np.array(corners) * size, np.array(faces)


def limb(length: float, radius: float) -> Mesh:
    """Return a limb along -z that tapers off."""
    u, v, faces = grid(14, 10)
    along = np.clip(v * 1.2 - 0.1, 0, 1)
    ends = np.sqrt(np.clip(np.minimum(v, 1 - v) * 8, 0.02, 1))
    thick, around = radius * (1 - 0.35 * along) * ends, u * 2 * np.pi
    down = -length * (v * 1.1 - 0.05)
    return np.stack([np.cos(around) * thick, np.sin(around) * thick, down], axis=-1), faces


def leaves(rng: Random, size: float, sway: Floats) -> tuple[Floats, Floats, Floats]:
    """Return a bunch of leaves, and the same, bent."""
    t = np.linspace(0, 1, 5)
    points, bent, faces = [], [], []
    for leaf in range(rng.integers(8, 60)):
        angle, lean = rng.uniform(0, 6.3), rng.uniform(0.05, 0.9)
        wide, length = rng.uniform(0.01, 0.06) * size, size * rng.uniform(0.4, 1)
        out, side = (
            np.array([math.cos(angle), math.sin(angle)]),
            [-math.sin(angle), math.cos(angle)],
        )
        foot = rng.normal(size=2) * 0.12 * size + np.outer(lean * length * t**2, out)
        middle = np.column_stack([foot, length * t * (1 - 0.3 * lean * t)])
        half = np.column_stack([np.outer(wide * (1 - t), side), 0 * t])
        both = np.stack([middle - half, middle + half], axis=1).reshape(-1, 3)
        points.append(both)
        moved = np.column_stack([np.outer(length * t**2, sway), 0 * t])
        bent.append(both + np.repeat(moved, 2, axis=0))
        faces.append(10 * leaf + 2 * np.arange(4)[:, None] + [0, 1, 3, 2])
    return np.concatenate(points), np.concatenate(faces), np.concatenate(bent)


def cloth(rng: Random, size: float, motion: float) -> tuple[Floats, Floats, Floats]:
    """Return a cloth, upright, and the same after some waving."""
    u, v, faces = grid(32, 24)
    flat = np.stack([u - 0.5, v - 0.5], axis=-1)
    points = np.stack([flat[:, 0], 0.1 * waves(rng, flat, 3, 3), flat[:, 1]], axis=-1) * size
    shift = [waves(rng, flat, 2, 2) for _ in range(3)]
    return points, faces, points + motion * size * np.stack(shift, axis=-1)


def ground(rng: Random, height: float, rough: float, far: float) -> Mesh:
    """Return ground that is flat around the camera."""
    u, v, faces = grid(90, 90)
    points = np.stack([(u - 0.5) * 2 * far, v * far * 1.1 - far * 0.1, height + 0 * u], axis=-1)
    flat = np.clip((np.hypot(points[:, 0], points[:, 1]) - 1.5) / 4, 0, 1)
    points[:, 2] += waves(rng, points[:, :2] / 8, 4, 0.6) * rough * flat
    return points, faces


def mountains(rng: Random, far: float) -> Mesh:
    """Return a ridge at a distance."""
    u, v, faces = grid(60, 30)
    ridge = 0.35 * far * (0.4 + 0.6 * waves(rng, u[:, None] * 6, 5)) * v
    back = far * (1 + 0.2 * v + 0.02 * waves(rng, np.stack([u, v], axis=-1) * 12, 3))
    return np.stack([(u - 0.5) * 3 * far, back, ridge], axis=-1), faces


def wall(width: float, height: float) -> Mesh:
    """Return a flat wall in the plane of x and y."""
    u, v, faces = grid(2, 2)
    return np.stack([(u - 0.5) * width, (v - 0.5) * height, 0 * u], axis=-1), faces


def backdrop(rng: Random) -> Mesh:
    """Return an uneven wall behind everything."""
    u, v, faces = grid(40, 30)
    depth = 18 + 4 * waves(rng, np.stack([u, v], axis=-1) * 3, 3)
    return np.stack([(u - 0.5) * 60, depth, (v - 0.5) * 40], axis=-1), faces
