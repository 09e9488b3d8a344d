"""Affine maps and smooth bending of the plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Affine = NDArray[np.float64]
"""2×3: the point (x, y) goes to ``a[:, :2] @ (x, y) + a[:, 2]``."""
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

IDENTITY: Affine = np.array([[1.0, 0, 0], [0, 1, 0]])


def about(center: tuple[float, float], linear: NDArray[np.float64]) -> Affine:
    """Return the map with this linear part that keeps `center` where it is."""
    c = np.asarray(center, np.float64)
    return np.column_stack([linear, c - linear @ c])


def compose(after: Affine, before: Affine) -> Affine:
    """Return the map that does `before`, then `after`."""
    moved = after[:, :2] @ before
    moved[:, 2] += after[:, 2]
    return moved


def invert(a: Affine) -> Affine:
    """Return the inverse map."""
    (p, q, r), (s, t, u) = a.tolist()
    d = p * t - q * s  # by hand: far quicker than a general solver
    return np.array([[t / d, -q / d, (q * u - t * r) / d], [-s / d, p / d, (s * r - p * u) / d]])


def power(a: Affine, count: int) -> Affine:
    """Return the map that does `a` several times."""
    repeated = IDENTITY
    for _ in range(count):
        repeated = compose(a, repeated)
    return repeated


def partway(a: Affine, t: float) -> Affine:
    """Return the map that moves every point `t` times as far."""
    return IDENTITY + t * (a - IDENTITY)


def apply(a: Affine, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Map points; x and y are broadcast."""
    m = a.astype(np.float32)
    return m[0, 0] * x + (m[0, 1] * y + m[0, 2]), m[1, 0] * x + (m[1, 1] * y + m[1, 2])


def corners(box: Box) -> NDArray[np.float64]:
    """Return the four corners as columns."""
    left, top, right, bottom = box
    return np.array([[left, right, left, right], [top, top, bottom, bottom]])


def bounds(a: Affine, box: Box) -> Box:
    """Return the smallest upright box around the image of a box."""
    (x0, x1), (y0, y1) = (_interval(row, box) for row in a.tolist())
    return x0, y0, x1, y1


def _interval(row: list[float], box: Box) -> tuple[float, float]:
    p, q, shift = row
    across, down = (p * box[0], p * box[2]), (q * box[1], q * box[3])
    return min(across) + min(down) + shift, max(across) + max(down) + shift


def farthest(a: Affine, box: Box) -> float:
    """Return the longest distance that the map moves a point of a box."""
    points = corners(box)
    # The length of an affine displacement is convex: no point moves farther than some corner.
    moved = a[:, :2] @ points + a[:, 2:] - points
    return float(np.sqrt((moved**2).sum(axis=0).max()))


def united(first: Box, second: Box) -> Box:
    """Return the smallest box around both."""
    (left, top, right, bottom), (x0, y0, x1, y1) = first, second
    return min(left, x0), min(top, y0), max(right, x1), max(bottom, y1)


def common(first: Box, second: Box) -> Box:
    """Return the intersection of two boxes, which may be empty (right < left)."""
    (left, top, right, bottom), (x0, y0, x1, y1) = first, second
    return max(left, x0), max(top, y0), min(right, x1), min(bottom, y1)


def grown(box: Box, margin: float) -> Box:
    """Return the box with a margin around it."""
    return box[0] - margin, box[1] - margin, box[2] + margin, box[3] + margin


@dataclass(frozen=True, eq=False)
class Elastic:
    """A smooth displacement: the sum of a few sine waves."""

    waves: NDArray[np.float64]  # (K, 3): wave vector in radians per pixel, and phase
    amplitudes: NDArray[np.float64]  # (K, 2), in pixels

    @property
    def reach(self) -> float:
        """The largest possible displacement of a point."""
        return float(np.linalg.norm(self.amplitudes, axis=1).sum())

    @property
    def strain(self) -> float:
        """A Lipschitz constant."""
        steepness = np.linalg.norm(self.waves[:, :2], axis=1)
        return float((np.linalg.norm(self.amplitudes, axis=1) * steepness).sum())

    def scaled(self, factor: float) -> Elastic:
        """Return `factor` times the displacement."""
        return Elastic(self.waves, self.amplitudes * factor)

    def __call__(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the displacement of points; x and y are broadcast."""
        waves, amplitudes = self.waves.astype(np.float32), self.amplitudes.astype(np.float32)
        dx: Floats | np.float32 = np.float32(0)
        dy: Floats | np.float32 = np.float32(0)
        for (kx, ky, phase), (ax, ay) in zip(waves, amplitudes, strict=True):
            sine = np.sin(kx * x + (ky * y + phase))
            dx, dy = dx + ax * sine, dy + ay * sine
        return np.asarray(dx), np.asarray(dy)

    def undo(self, x: Floats, y: Floats, tolerance: float = 2e-4) -> tuple[Floats, Floats]:
        """Return the points that the displacement moves to (x, y)."""
        # This iteration contracts, because the strain is below 1.
        from_x, from_y = x, y
        error = self.reach
        while error > tolerance:
            dx, dy = self(from_x, from_y)
            from_x, from_y = x - dx, y - dy
            error *= self.strain
        return from_x, from_y
