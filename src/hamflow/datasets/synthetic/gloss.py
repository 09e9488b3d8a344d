"""Reflections of lamps: bright spots that stay with the light, not with the surface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets.synthetic.compose import Surface
from hamflow.datasets.synthetic.geometry import Box, Floats, common
from hamflow.datasets.synthetic.layer import FULL, Lanes
from hamflow.datasets.synthetic.motion import log_uniform, similarity

_REACH = 3.5  # standard deviations
_TRIES = 6  # places that are tried for a spot


@dataclass(frozen=True, eq=False)
class Spot:
    """A soft bright spot.

    Attributes
    ----------
    center, speed : (2,) array
        Where it is in the first frame, and how far it moves from frame to frame, in pixels.
    shape : (2, 2) array
        Takes an offset from the center to standard deviations.
    color : (3,) array
        What it adds to the color of its middle, from 0 to `FULL`.
    """

    center: NDArray[np.float64]
    speed: NDArray[np.float64]
    shape: NDArray[np.float64]
    color: Floats

    def shine(self, lanes: Lanes, x: Floats, y: Floats, time: float) -> None:
        """Brighten what some places show."""
        middle = self.center + time * self.speed
        across, down = x - np.float32(middle[0]), y - np.float32(middle[1])
        (a, b), (c, d) = self.shape.astype(np.float32)
        square = (a * across + b * down) ** 2 + (c * across + d * down) ** 2
        near = np.flatnonzero(square < _REACH**2)
        bright = np.exp(np.float32(-0.5) * square[near])[:, None] * self.color
        lanes[near, :3] = np.minimum(lanes[near, :3] + bright, FULL).astype(np.uint16)


@dataclass(frozen=True, eq=False)
class Glossy:
    """A surface with spots; only its look is needed, because effects leave the truth."""

    surface: Surface
    spots: Sequence[Spot]

    @property
    def depth(self) -> float:
        """That of the surface."""
        return self.surface.depth

    @property
    def solid(self) -> bool:
        """Whether the surface covers all of the frame."""
        return self.surface.solid

    def box(self, frame: int, time: float = 0.0) -> Box:
        """Return where in a frame the surface may be seen."""
        return self.surface.box(frame, time)

    def depths(self, frame: int, x: Floats, y: Floats) -> Floats | float:
        """Return the depth from 0 to 1 at some places of a frame."""
        return self.surface.depths(frame, x, y)

    def look(self, frame: int, x: Floats, y: Floats, time: float = 0.0) -> Lanes:
        """Return color and coverage at some places of a frame."""
        lanes = self.surface.look(frame, x, y, time)
        for spot in self.spots:
            spot.shine(lanes, x, y, frame + time)
        return lanes


def draw_spots(
    rng: np.random.Generator, surface: Surface, shape: tuple[int, int], strength: float
) -> list[Spot]:
    """Draw the spots on a surface, in frames of a shape: none, one, or a few of one lamp."""
    frame = (0.0, 0.0, shape[1] - 1.0, shape[0] - 1.0)
    left, top, right, bottom = common(surface.box(0), frame)
    if right - left < 4 or bottom - top < 4:
        return []
    places = rng.uniform((left, top), (right, bottom), (_TRIES, 2)).astype(np.float32)
    x, y = np.ascontiguousarray(places.T)
    inside = np.flatnonzero(surface.covers(0, x, y))[: int(rng.integers(1, 4))]
    target_x, target_y, _ = surface.follow(0, 1, x[inside], y[inside])
    color = FULL * strength * rng.uniform(0.4, 1.0) * (1 - rng.uniform(0, 0.25, 3))
    # The surface moves under the light, which moves with it a little, or against it.
    share = rng.uniform(-0.3, 0.6)
    size = min(right - left, bottom - top)
    spots = []
    for k, place in enumerate(inside.tolist()):
        speed = share * np.array([target_x[k] - x[place], target_y[k] - y[place]], np.float64)
        sigma = 1.0 + log_uniform(rng, 0.03, 0.18) * size
        turned = similarity(rng.uniform(0, np.pi), 1 / sigma)
        shape_ = np.diag([1.0, rng.uniform(1.0, 3.0)]) @ turned
        spots.append(
            Spot(places[place].astype(np.float64), speed, shape_, color.astype(np.float32))
        )
    return spots
