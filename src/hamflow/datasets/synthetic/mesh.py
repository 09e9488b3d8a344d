"""A curved surface in space: tubes, balls, hills and cloth, as a grid of triangles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PIL import ImageFilter

from hamflow import _native
from hamflow.datasets.synthetic.geometry import Box, Floats
from hamflow.datasets.synthetic.layer import HALF, Lanes, Texels
from hamflow.datasets.synthetic.patch import EVERYTHING, NEAR, NOTHING, Rigid, Samples, View

Points = NDArray[np.float64]
_RAYS = 3  # squared: rays through a pixel
_GOLDEN = 1.618  # its multiples are spread evenly
_SAME = 1e-4  # relative difference of the distances of what counts as one place of a surface
_WIDE = 4096.0  # pixels from the image within which places are looked up


@dataclass(frozen=True, eq=False)
class Sway:
    """Waves that run through a surface.

    Attributes
    ----------
    direction : (3,) array
        In which points move.
    waves : (K, 3) array
        Radians per column and per row of the grid, and the phase at time 0.
    amplitudes : (K,) array
        In units of length.
    speeds : (K,) array
        Radians per time between frames.
    """

    direction: NDArray[np.float64]
    waves: NDArray[np.float64]
    amplitudes: NDArray[np.float64]
    speeds: NDArray[np.float64]

    def at(self, time: float, rows: int, columns: int) -> Points:
        """Return how far each point of a grid is moved."""
        row, column = np.indices((rows, columns))
        height = np.zeros((rows, columns))
        for (across, down, phase), amplitude, speed in zip(
            self.waves, self.amplitudes, self.speeds, strict=True
        ):
            height += amplitude * np.sin(across * column + down * row + phase + speed * time)
        return height[..., None] * self.direction


@dataclass(frozen=True, eq=False)
class Mesh:
    """A textured grid of triangles that moves rigidly, and may sway.

    It can stand where a `Patch` does. The triangles are the surface, they do not approximate it:
    flow and occlusions are exact, also where it hides a part of itself.

    Attributes
    ----------
    texels : Texels
        The texture; its corners are those of the grid.
    points : (R, C, 3) array
        The grid at rest, in space.
    motion : Rigid
        Of the surface in the world.
    view : View
        The camera.
    depth : float
        1 for the farthest, 0 for the nearest.
    sway : Sway, optional
        How it changes its form.
    """

    texels: Texels
    points: Points
    motion: Rigid
    view: View
    depth: float
    sway: Sway | None = None
    solid = False

    @cached_property
    def _poses(self) -> dict[float, Points]:
        return {}

    def pose(self, time: float) -> Points:
        """Return the points at some time, relative to the camera."""
        if time not in self._poses:
            rows, columns = self.points.shape[:2]
            points = self.points
            if self.sway is not None:
                points = points + self.sway.at(time, rows, columns)
            own, moved = self.motion.at(time)
            turned, shifted = self.view.motion.at(time)
            pose = points @ (turned @ own).T + (turned @ moved + shifted)
            self._poses[time] = np.ascontiguousarray(pose)
        return self._poses[time]

    def moving(self, view: View, factor: float) -> Mesh:
        """Return the surface before another camera, `factor` times as fast."""
        sway = self.sway and replace(self.sway, speeds=factor * self.sway.speeds)
        return replace(self, view=view, motion=self.motion.scaled(factor), sway=sway)

    @property
    def _camera(self) -> tuple[float, float, float]:
        return self.view.focal, *self.view.center

    def _project(self, points: Points) -> tuple[Points, Points]:
        """Return the pixels that show some points in front of the camera."""
        focal, x, y = self._camera
        depth = np.maximum(points[..., 2], NEAR)
        return focal * points[..., 0] / depth + x, focal * points[..., 1] / depth + y

    def _trace(self, time: float, x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Return column, row and 1 / distance at places of a frame; 0 for what is not met."""
        met = np.empty((3, len(x)), np.float32)
        _native.trace(self.pose(time), self._camera, NEAR, x, y, met)
        return met[0], met[1], met[2]

    def _points(self, time: float, column: Floats, row: Floats) -> Points:
        """Return where places of the grid are at some time."""
        pose = self.pose(time)
        left = np.clip(column.astype(int), 0, pose.shape[1] - 2)
        top = np.clip(row.astype(int), 0, pose.shape[0] - 2)
        across, down = (column - left)[:, None].astype(float), (row - top)[:, None].astype(float)
        right_of, below = pose[top, left + 1], pose[top + 1, left]
        corner, far = pose[top, left], pose[top + 1, left + 1]
        upper = corner + across * (right_of - corner) + down * (below - corner)
        lower = far + (1 - across) * (below - far) + (1 - down) * (right_of - far)
        return np.asarray(np.where(across + down <= 1, upper, lower))

    def box(self, frame: int, time: float = 0.0) -> Box:
        """Return where in a frame the surface may be seen."""
        pose = self.pose(frame + time)
        front = pose[..., 2] >= NEAR
        if not front.any():
            return NOTHING
        if not front.all():
            return EVERYTHING
        x, y = self._project(pose)
        # The outermost rays of a pixel are less than half a pixel from its center.
        return x.min() - 0.5, y.min() - 0.5, x.max() + 0.5, y.max() + 0.5

    def look(self, frame: int, x: Floats, y: Floats, time: float = 0.0) -> Lanes:
        """Return color and coverage at places of a frame."""
        lanes = np.empty((len(x), 4), np.uint16)
        rays = _RAYS
        if time:
            # One of many pictures, of which each may look at another part of the pixels.
            rays, part = 1, int(_GOLDEN * 1e4 * time) % _RAYS**2
            x = x + np.float32((part % _RAYS - _RAYS // 2) / _RAYS)
            y = y + np.float32((part // _RAYS - _RAYS // 2) / _RAYS)
        pose, words = self.pose(frame + time), self.texels.words
        _native.mesh_lanes(pose, self._camera, NEAR, words, rays, x, y, lanes)
        return lanes

    def depths(self, frame: int, x: Floats, y: Floats) -> Floats:
        """Return the depth from 0 to 1 at some places; beside the surface, that of its middle."""
        inverse = self._trace(float(frame), x, y)[2]
        near, far = self.view.range
        with np.errstate(divide="ignore"):
            depth = np.log(np.float32(1 / near) / inverse) * np.float32(1 / np.log(far / near))
        return np.where(inverse > 0, np.clip(depth, 0, 1), np.float32(self.depth))

    def covers(self, frame: int, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Return where the surface covers more than half of a place."""
        column, row, inverse = self._trace(float(frame), x, y)
        return (inverse > 0) & (self._coverage(column, row) > HALF)

    def follow(
        self, frame: int, other: int, x: Floats, y: Floats
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return where places of one frame are in another, and what the surface does not hide."""
        column, row, _ = self._trace(float(frame), x, y)
        there = self._points(float(other), column, row)
        moved = tuple(axis.astype(np.float32) for axis in self._project(there))
        if np.array_equal(self.pose(float(frame)), self.pose(float(other))):
            moved = x, y  # at rest, exactly
        seen = there[:, 2] >= NEAR
        near = np.flatnonzero(seen & (np.abs(moved) < _WIDE).all(axis=0))
        first = self._trace(float(other), moved[0][near], moved[1][near])[2]
        seen[near] = first * there[near, 2] <= 1 + _SAME
        return moved[0], moved[1], seen

    def _coverage(self, column: Floats, row: Floats) -> NDArray[np.uint16]:
        rows, columns = self.points.shape[:2]
        across = np.float32((self.texels.width - 1) / (columns - 1))
        down = np.float32((self.texels.height - 1) / (rows - 1))
        return self.texels.look_up(column * across, row * down)[:, 3]

    def samples(self, shape: tuple[int, int], frame: int = 0) -> Samples:
        """Return the points of the grid that are in a frame of a given shape, or almost."""
        pose = self.pose(float(frame))
        x, y = self._project(pose)
        margin = 0.05 * max(shape)
        inside = (np.abs(x - shape[1] / 2) < shape[1] / 2 + margin) & (pose[..., 2] >= NEAR)
        inside &= np.abs(y - shape[0] / 2) < shape[0] / 2 + margin
        row, column = np.nonzero(inside)
        return Samples(np.stack([x[inside], y[inside]]), np.stack([column, row, row * 0 + 1.0]))

    def farthest(self, samples: Samples, frame: int = 1) -> float:
        """Return how far samples are at most from where they are in a frame."""
        if not samples.pixels.size:
            return 0.0
        column, row = samples.texels[:2].astype(int)
        there = self.pose(float(frame))[row, column]
        if (there[:, 2] < NEAR).any():
            return np.inf
        return float(np.linalg.norm(np.stack(self._project(there)) - samples.pixels, axis=0).max())

    def displacement(self, shape: tuple[int, int]) -> float:
        """Return how far a pixel of the first frame that shows the surface moves at most."""
        return self.farthest(self.samples(shape))

    def softened(self, sigma: float) -> Mesh:
        """Return the surface out of focus, by a standard deviation in pixels at its middle."""
        pose = self.pose(0.0)
        size = float(np.linalg.norm(np.diff(pose[len(pose) // 2], axis=0), axis=1).sum())
        distance = max(float(np.median(pose[..., 2])), NEAR)
        density = self.texels.width * distance / (max(size, 1e-6) * self.view.focal)
        blurred = self.texels.picture().filter(ImageFilter.GaussianBlur(sigma * density))
        return replace(self, texels=Texels.of(blurred))

    def shadow(self, offset: tuple[float, float], sigma: float, strength: float) -> None:
        """Return None: things in space cast no shadows, which would fall on other surfaces."""
