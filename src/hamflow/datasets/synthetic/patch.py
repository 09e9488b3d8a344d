"""A textured plane in space, seen by a camera: the layer of scenes with perspective."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from hamflow import _native
from hamflow.datasets.synthetic.geometry import Box, Floats, common
from hamflow.datasets.synthetic.layer import HALF, Lanes, Texels

Matrix = NDArray[np.float64]
NEAR = 0.05  # units of length in front of the camera: what is nearer is not seen
_LEVELS = 6
NOTHING: Box = (1.0, 1.0, 0.0, 0.0)
EVERYTHING: Box = (-1e9, -1e9, 1e9, 1e9)


def rotation(vector: NDArray[np.float64]) -> Matrix:
    """Return the rotation about a vector by its length (Rodrigues' formula)."""
    angle = float(np.linalg.norm(vector))
    if angle == 0:
        return np.eye(3)
    x, y, z = vector / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turned: Matrix = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)
    return turned


@dataclass(frozen=True, eq=False)
class Rigid:
    """A steady motion: a turn about a center and a translation, both per time between frames.

    Attributes
    ----------
    turn : (3,) array
        Axis times angle in radians.
    shift : (3,) array
        In units of length.
    center : (3,) array
        What it turns about.
    """

    turn: NDArray[np.float64]
    shift: NDArray[np.float64]
    center: NDArray[np.float64]

    def at(self, time: float) -> tuple[Matrix, NDArray[np.float64]]:
        """Return the rotation and the translation after some time: ``x -> R x + t``."""
        turned = rotation(time * self.turn)
        return turned, self.center - turned @ self.center + time * self.shift

    def scaled(self, factor: float) -> Rigid:
        """Return a motion that goes `factor` times as far."""
        return Rigid(factor * self.turn, factor * self.shift, self.center)


@dataclass(frozen=True, eq=False)
class View:
    """A pinhole camera that looks along the z-axis at time 0, with y pointing down.

    Attributes
    ----------
    focal : float
        Focal length in pixels.
    center : (float, float)
        The pixel that the z-axis goes through.
    range : (float, float)
        The distances whose depth is 0 and 1.
    motion : Rigid
        Of the world relative to the camera.
    """

    focal: float
    center: tuple[float, float]
    range: tuple[float, float]
    motion: Rigid

    @property
    def intrinsics(self) -> Matrix:
        """The matrix that takes a point to the pixel that shows it, times its depth."""
        x, y = self.center
        return np.array([[self.focal, 0, x], [0, self.focal, y], [0, 0, 1.0]])


class Samples(NamedTuple):
    """Pixels of a frame and the texels that they show (for a mesh: places of its grid)."""

    pixels: NDArray[np.float64]  # (2, N)
    texels: NDArray[np.float64]  # (3, N), the third row is 1


@dataclass(frozen=True, eq=False)
class Patch:
    """A textured part of a plane, with an outline, that moves rigidly.

    It can stand where a `Layer` does. The texture holds smaller copies of itself beside it, so that
    distant parts are not aliased.

    Attributes
    ----------
    texels : Texels
        The texture and its smaller copies.
    size : (int, int)
        Width and height of the texture itself.
    plane : (3, 3) array
        Columns: the directions of the texture's rows and columns in space, as long as a texel, and
        the center of its first texel, at time 0.
    motion : Rigid
        Of the patch in the world.
    view : View
        The camera.
    depth : float
        1 for the farthest, 0 for the nearest.
    solid : bool
        Whether it covers all of the frame.
    one_sided : bool
        Whether it is a face of a closed body: seen only by those from whom rows × columns points
        away.
    """

    texels: Texels
    size: tuple[int, int]
    plane: Matrix
    motion: Rigid
    view: View
    depth: float
    solid: bool = False
    one_sided: bool = False

    @classmethod
    def of(cls, picture: Image.Image, **attributes: object) -> Patch:
        """Make a patch of an RGBA picture; `attributes` are all others but `size`."""
        solid = bool(attributes.get("solid", False))
        return cls(_atlas(picture, solid), picture.size, **attributes)  # type: ignore[arg-type]

    @cached_property
    def _poses(self) -> dict[float, tuple[Matrix, Matrix, bool]]:
        return {}

    def _pose(self, time: float) -> tuple[Matrix, Matrix, bool]:
        """Return the maps from texels to pixels and back, and whether the patch is seen."""
        if time not in self._poses:
            own, moved = self.motion.at(time)
            turned, shifted = self.view.motion.at(time)
            plane = turned @ own @ self.plane
            plane[:, 2] += turned @ moved + shifted
            seen = not self.one_sided or float(np.linalg.det(plane)) > 0
            forth = self.view.intrinsics @ plane
            self._poses[time] = forth, np.asarray(np.linalg.inv(forth), np.float64), seen
        return self._poses[time]

    def moving(self, view: View, factor: float) -> Patch:
        """Return the patch before another camera, `factor` times as fast."""
        return replace(self, view=view, motion=self.motion.scaled(factor))

    def box(self, frame: int, time: float = 0.0) -> Box:
        """Return where in a frame the patch may be seen."""
        forth, _, seen = self._pose(frame + time)
        if not seen:
            return NOTHING
        width, height = self.size
        corners = forth @ np.array([[0, width, 0, width], [0, 0, height, height], [1, 1, 1, 1.0]])
        if (corners[2] < NEAR).all():
            return NOTHING
        if (corners[2] < NEAR).any():
            return EVERYTHING
        x, y = corners[:2] / corners[2]
        return float(x.min()), float(y.min()), float(x.max()), float(y.max())

    def coordinates(
        self, frame: int, x: Floats, y: Floats, time: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Return which texels some places of a frame show; parameters as for `Layer`."""
        _, back, seen = self._pose(frame + time)
        matrix = back.astype(np.float32) if seen else np.zeros((3, 3), np.float32)
        at_x, at_y = np.empty_like(x), np.empty_like(y)
        places, nowhere = _places(self.size), _nowhere(self.size)
        _native.plane_texels(matrix, places, nowhere, self.solid, x, y, at_x, at_y)
        return at_x, at_y

    def look(self, frame: int, x: Floats, y: Floats, time: float = 0.0) -> Lanes:
        """Return color and coverage at places of a frame; parameters as for `Layer`."""
        return self.texels.look_up(*self.coordinates(frame, x, y, time))

    def depths(self, frame: int, x: Floats, y: Floats) -> Floats:
        """Return the depth from 0 to 1, by the logarithm of the distance, at some places."""
        m = self._pose(float(frame))[1].astype(np.float32)
        inverse = np.maximum(m[2, 0] * x + (m[2, 1] * y + m[2, 2]), np.float32(1e-6))
        near, far = self.view.range
        distance = 1 / (inverse * np.float32(near))
        depth: Floats = np.clip(np.log(distance) * np.float32(1 / np.log(far / near)), 0, 1)
        return depth

    def covers(self, frame: int, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Return where the patch covers more than half of a place."""
        return self.look(frame, x, y)[:, 3] > HALF

    def follow(self, frame: int, other: int, x: Floats, y: Floats) -> tuple[Floats, Floats, bool]:
        """Return where places of one frame are in another, and whether they face the camera."""
        here, there = self._pose(float(frame)), self._pose(float(other))
        if np.array_equal(here[0], there[0]):
            return x, y, there[2]  # at rest, exactly
        map_ = there[0] @ here[1]
        m = map_ / np.abs(map_).max()
        at_x, at_y = x.astype(np.float64), y.astype(np.float64)
        bottom = m[2, 0] * at_x + m[2, 1] * at_y + m[2, 2]
        moved_x = (m[0, 0] * at_x + m[0, 1] * at_y + m[0, 2]) / bottom
        moved_y = (m[1, 0] * at_x + m[1, 1] * at_y + m[1, 2]) / bottom
        return moved_x.astype(np.float32), moved_y.astype(np.float32), there[2]

    def softened(self, sigma: float) -> Patch:
        """Return the patch out of focus, by a standard deviation in pixels at its middle."""
        width, height = self.size
        picture = self.texels.picture().crop((0, 0, width, height))
        middle = self._pose(0.0)[0] @ np.array([width / 2, height / 2, 1])
        density = max(middle[2], NEAR) / self.view.focal / float(np.linalg.norm(self.plane[:, 0]))
        blurred = picture.filter(ImageFilter.GaussianBlur(float(sigma * density)))
        return replace(self, texels=_atlas(blurred, self.solid))

    def shadow(self, offset: tuple[float, float], sigma: float, strength: float) -> None:
        """Return None: things in space cast no shadows, which would fall on other planes."""

    def displacement(self, shape: tuple[int, int]) -> float:
        """Return how far a pixel of the first frame that shows the patch moves at most."""
        return self.farthest(self.samples(shape))

    def samples(self, shape: tuple[int, int], frame: int = 0) -> Samples:
        """Return some pixels of a frame of a given shape that show the patch."""
        seen = self.box(frame)
        left, top, right, bottom = common(seen, (0.0, 0.0, shape[1] - 1.0, shape[0] - 1.0))
        if left > right or top > bottom:
            return Samples(np.zeros((2, 0)), np.zeros((3, 0)))
        x, y = np.meshgrid(np.linspace(left, right, 17), np.linspace(top, bottom, 17))
        pixels = np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
        column, row, inverse_depth = self._pose(float(frame))[1] @ pixels
        front = inverse_depth > 0
        column, row = column / inverse_depth, row / inverse_depth
        columns, rows = self.size
        mine = front & (column >= -1) & (column <= columns) & (row >= -1) & (row <= rows)
        texels = np.stack([column[mine], row[mine], np.ones(mine.sum())])
        return Samples(pixels[:2, mine], texels)

    def farthest(self, samples: Samples, frame: int = 1) -> float:
        """Return how far samples are at most from where they are in a frame."""
        if not samples.pixels.size:
            return 0.0
        there = self._pose(float(frame))[0] @ samples.texels
        if (there[2] < NEAR).any():
            return np.inf
        return float(np.linalg.norm(there[:2] / there[2] - samples.pixels, axis=0).max())


def _level_count(size: tuple[int, int]) -> int:
    return max(1, min(_LEVELS, int(np.log2(max(1, min(size) // 4))) + 1))


@lru_cache(maxsize=256)
def _places(size: tuple[int, int]) -> Floats:
    """Return left, top, right and bottom texel of each copy: the first, and smaller ones beside."""
    width, height = size
    places, top = [(0, 0, width - 1, height - 1)], 0
    for level in range(1, _level_count(size)):
        w, h = max(2, width >> level), max(2, height >> level)
        places.append((width, top, width + w - 1, top + h - 1))
        top += h
    return np.array(places, np.float32)


def _nowhere(size: tuple[int, int]) -> tuple[int, int]:
    """Return a place of the atlas where nothing is covered: below the smaller copies."""
    places = _places(size)
    return size[0], int(places[1:, 3].max(initial=-1.0)) + 1


def _atlas(picture: Image.Image, solid: bool) -> Texels:
    places = _places(picture.size).astype(int)
    left, top = _nowhere(picture.size)
    shape = (max(picture.height, top + 2), max(int(places[:, 2].max()) + 1, left + 2))
    words = np.zeros(shape, np.uint64)
    lanes = np.asarray(picture).astype(np.uint16)
    if not solid:
        # So that the edge is smooth; the smaller copies inherit it.
        lanes[[0, -1], :, 3], lanes[:, [0, -1], 3] = 0, 0
    copy = lanes.view(np.uint64)[:, :, 0]
    for level, (left, top, right, bottom) in enumerate(places.tolist()):
        if level:
            copy = _halved(copy, bottom - top + 1, right - left + 1)
        words[top : bottom + 1, left : right + 1] = copy
    return Texels(words)


def _halved(words: NDArray[np.uint64], height: int, width: int) -> NDArray[np.uint64]:
    """Return the means of 2×2 texels."""
    if words.shape[0] < 2 * height or words.shape[1] < 2 * width:  # too small to be halved
        down = np.arange(height) * words.shape[0] // height
        across = np.arange(width) * words.shape[1] // width
        return np.ascontiguousarray(words[down][:, across])
    means = np.empty((height, width), np.uint64)
    _native.halve(words, means)
    return means
