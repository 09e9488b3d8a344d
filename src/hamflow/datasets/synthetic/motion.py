"""How the camera and the layers of a scene move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets.synthetic.config import SyntheticConfig
from hamflow.datasets.synthetic.geometry import (
    IDENTITY,
    Affine,
    Box,
    Elastic,
    about,
    compose,
    farthest,
    partway,
    power,
)

_SMALL = (0.5, 6.0)  # pixels: range of the displacements in a scene with only small motion
_TINY = 1e-9  # instead of 0, which has no logarithm
_CALM = 0.2  # least displacement in other scenes, as a share of the largest


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(max(low, high)))))


def similarity(angle: float, scale: float) -> NDArray[np.float64]:
    """Return the 2×2 matrix that rotates and scales."""
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    return np.array([[cos, -sin], [sin, cos]])


def _vector(rng: np.random.Generator, length: float) -> NDArray[np.float64]:
    angle = rng.uniform(0, 2 * np.pi)
    return length * np.array([np.cos(angle), np.sin(angle)])


class Motion(NamedTuple):
    """How a layer moves: it is bent, then mapped to the second frame, and so on."""

    affine: Affine
    elastic: Elastic | None
    later: tuple[Affine, ...] = ()  # maps to the third frame and so on, if not by repetition

    def at(self, frame: int) -> Affine:
        """Return the map from the first frame, after the bending, to another one."""
        return self.later[frame - 2] if self.later and frame > 1 else power(self.affine, frame)


@dataclass(frozen=True, eq=False)
class Camera:
    """The motion that all layers have in common."""

    reach: float  # how far objects of this scene may move, in pixels
    center: tuple[float, float]  # of rotation and zoom
    shift: NDArray[np.float64]  # (2,): translation of a layer of parallax 1
    angle: float  # in radians
    zoom: float  # logarithm of the scale of a layer of parallax 1

    def motion(self, parallax: float) -> Affine:
        """Return the motion of a layer that the camera causes; near ones move more."""
        linear = similarity(self.angle, float(np.exp(parallax * self.zoom)))
        moved = about(self.center, linear)
        moved[:, 2] += parallax * self.shift
        return moved


def draw_camera(rng: np.random.Generator, config: SyntheticConfig) -> Camera:
    """Draw the motion of the camera, and how far objects of the scene move."""
    low, reach = config.min_displacement, config.max_displacement
    kind = rng.uniform()
    far = kind > 1 - config.camera_share
    if kind < config.small_share:
        reach = min(reach, log_uniform(rng, *_SMALL))
    elif not far:
        # Several motions add up: without this, most scenes would have too much motion.
        reach = max(low, log_uniform(rng, _CALM * reach, reach))
    still = rng.uniform() < config.still_share and not far
    length = (
        log_uniform(rng, 0.15 * reach, 0.9 * reach) if far else log_uniform(rng, low, 0.5 * reach)
    )
    radius = 0.5 * float(np.hypot(config.height, config.width))

    def turn(largest: float) -> float:
        limit = min(largest, 0.3 * reach / radius)
        return float(rng.choice([-1, 1])) * log_uniform(rng, min(1e-3, limit / 4), limit)

    angle, zoom = turn(0.4 * config.max_rotation + _TINY), turn(0.8 * config.max_zoom + _TINY)
    shift = _vector(rng, length)
    # Cameras pan sideways more often than up and down.
    shift[1] *= rng.choice([0.3, 1.0])
    center = (rng.uniform(0, config.width), rng.uniform(0, config.height))
    alive = 0.0 if still else 1.0
    turning, zooming = rng.uniform(size=2) < [0.6, 0.5]
    return Camera(reach, center, alive * shift, alive * turning * angle, alive * zooming * zoom)


class Mover:
    """Draws the motions of the layers of one scene."""

    def __init__(self, rng: np.random.Generator, config: SyntheticConfig) -> None:
        self._rng = rng
        self._config = config
        self._camera = draw_camera(rng, config)

    def draw(
        self, box: Box, center: tuple[float, float], parallax: float, *, still_share: float
    ) -> Motion:
        """Draw the motion of a layer that is visible in a box of the first frame.

        It rotates around `center`, has the share `parallax` of the camera's translation, and with
        the probability `still_share` no motion of its own.
        """
        size = 0.5 * float(np.hypot(box[2] - box[0], box[3] - box[1]))
        own = IDENTITY
        if self._rng.uniform() >= still_share:
            # Near layers tend to move more.
            reach = self._camera.reach * min(1.0, 0.35 + 0.5 * parallax)
            own = self._own(center, size, reach)
        bent = self._rng.uniform() < self._config.elastic_share
        elastic = self._elastic(size) if bent else None
        motion = Motion(compose(self._camera.motion(parallax), own), elastic)
        return _capped(motion, box, self._config)

    def _own(self, center: tuple[float, float], size: float, reach: float) -> Affine:
        rng, config = self._rng, self._config

        def change(largest: float) -> float:
            # The border of the layer must not move farther than the layer does.
            top = min(largest, reach / max(size, 1.0)) + _TINY
            return float(rng.choice([-1, 1])) * log_uniform(rng, min(2e-3, top / 4), top)

        linear = similarity(change(config.max_rotation), float(np.exp(change(config.max_zoom))))
        if rng.uniform() < config.affine_share:
            stretch, across, down = (change(0.6 * config.max_zoom) for _ in range(3))
            linear = linear @ np.array([[1 + stretch, across], [down, 1 - stretch]])
        own = about(center, linear)
        own[:, 2] += _vector(rng, log_uniform(rng, config.min_displacement, reach))
        return own

    def _elastic(self, size: float) -> Elastic | None:
        rng, largest = self._rng, self._config.max_strain + _TINY
        count = int(rng.integers(2, 4))
        lengths = max(size, 16.0) * np.exp(rng.uniform(np.log(0.4), np.log(2.5), count))
        angles = rng.uniform(0, 2 * np.pi, count)
        numbers = 2 * np.pi / lengths
        phases = rng.uniform(0, 2 * np.pi, count)
        waves = np.column_stack([numbers * np.cos(angles), numbers * np.sin(angles), phases])
        amplitudes = np.array([_vector(rng, length) for length in lengths])
        unit = Elastic(waves, amplitudes)
        strain = log_uniform(rng, 0.1 * largest, largest)
        factor = min(strain / unit.strain, 0.5 * self._camera.reach / unit.reach)
        # Otherwise it is too weak to be worth the time.
        return unit.scaled(factor) if factor * unit.reach > 0.02 else None


def _capped(motion: Motion, box: Box, config: SyntheticConfig) -> Motion:
    """Scale a motion down until no pixel in a box moves too far."""
    affine, elastic, _ = motion
    length = farthest(affine, box)
    if elastic is not None:
        length += elastic.reach * max(1.0, float(np.linalg.norm(affine[:, :2], 2)))
    # Slightly below the limit, because of rounding.
    factor = 0.9999 * config.max_displacement / max(length, _TINY)
    if factor >= 1:
        return motion
    return Motion(partway(affine, factor), None if elastic is None else elastic.scaled(factor))
