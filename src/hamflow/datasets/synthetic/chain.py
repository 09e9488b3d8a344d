"""Arms, legs and tails: flat limbs in a row, whose joints turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hamflow.datasets.synthetic.config import SyntheticConfig
from hamflow.datasets.synthetic.geometry import (
    Affine,
    Box,
    about,
    compose,
    farthest,
    partway,
    power,
)
from hamflow.datasets.synthetic.motion import Motion, log_uniform, similarity
from hamflow.datasets.synthetic.shapes import Shape, limb

_CALMER = 0.8  # what is too fast is slowed down by this factor, again and again


@dataclass(frozen=True, eq=False)
class Chain:
    """Limbs, each of which turns about the end of the one before.

    Attributes
    ----------
    joints : list of (float, float)
        Where each limb begins in the first frame.
    angles, lengths : list of float
        Its direction in the first frame, and its length in pixels.
    radii : list of float
        Half of its width, at each of the joints and at the end.
    turns : list of float
        By how many radians each joint turns from frame to frame.
    """

    joints: list[tuple[float, float]]
    angles: list[float]
    lengths: list[float]
    radii: list[float]
    turns: list[float]

    def shape(self, number: int) -> Shape:
        """Return the outline of a limb, along the x-axis from (0, 0) on."""
        return limb(self.lengths[number], self.radii[number], self.radii[number + 1])

    def boxes(self) -> list[Box]:
        """Return the boxes around the limbs in the first frame."""
        boxes = []
        for (x, y), angle, length, radius in zip(
            self.joints, self.angles, self.lengths, self.radii[:-1], strict=True
        ):
            end_x, end_y = x + length * np.cos(angle), y + length * np.sin(angle)
            left, right = sorted((x, end_x))
            top, bottom = sorted((y, end_y))
            boxes.append((left - radius, top - radius, right + radius, bottom + radius))
        return boxes

    def motions(
        self, base: Affine, boxes: Sequence[Box], config: SyntheticConfig, frames: int
    ) -> list[Motion]:
        """Return how the limbs move if the beginning of the chain moves by `base`.

        The chain is slowed down until what is visible of it in the first frame, in `boxes`, keeps
        the limit of the settings.
        """
        calm = 1.0
        while True:
            first = self._maps(partway(base, calm), calm, 1)
            lengths = [
                farthest(map_, box)
                for map_, box in zip(first, boxes, strict=True)
                if box[0] < box[2] and box[1] < box[3]
            ]
            if max(lengths, default=0.0) <= 0.9999 * config.max_displacement:
                break
            calm *= _CALMER
        steps = [self._maps(partway(base, calm), calm, frame) for frame in range(2, frames)]
        return [
            Motion(map_, None, tuple(step[number] for step in steps))
            for number, map_ in enumerate(first)
        ]

    def _maps(self, base: Affine, calm: float, frame: int) -> list[Affine]:
        """Return the maps of the limbs from the first frame to another one."""
        maps, so_far = [], power(base, frame)
        for joint, turn in zip(self.joints, self.turns, strict=True):
            so_far = compose(so_far, about(joint, similarity(frame * calm * turn, 1.0)))
            maps.append(so_far)
        return maps


def draw_chain(rng: np.random.Generator, root: tuple[float, float], length: float) -> Chain:
    """Draw a chain of two to five limbs of about this length in pixels."""
    count = int(rng.integers(2, 6))
    lengths = (length * np.exp(rng.normal(0, 0.2, count))).tolist()
    # Thinner toward the end.
    radii = length * rng.uniform(0.12, 0.35) * rng.uniform(0.7, 0.95) ** np.arange(count + 1)
    angles = rng.uniform(0, 2 * np.pi) + np.cumsum(rng.normal(0, 0.5, count))
    turns = [float(rng.choice([-1, 1])) * log_uniform(rng, 0.03, 0.7) for _ in range(count)]
    joints = [root]
    for angle, reach in zip(angles[:-1], lengths, strict=False):
        x, y = joints[-1]
        joints.append((float(x + reach * np.cos(angle)), float(y + reach * np.sin(angle))))
    return Chain(joints, angles.tolist(), lengths, np.maximum(radii, 1.0).tolist(), turns)
