"""Choice among candidate motions by slow and obvious code: scores, and belief propagation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow import _native

Array = NDArray[Any]
F = np.float32


@dataclass
class Scoring:
    """The arguments of one scoring."""

    bits: tuple[Array, Array]
    motion: Array
    matched: Array
    kept: Array
    back: Array
    back_trusted: Array
    geodesic: Array
    texture: Array
    size: Array
    range: tuple[float, float, float, float]
    pixel: Array
    network: Array

    def run(self) -> tuple[Array, Array]:
        """Return features and scores."""
        labels = len(self.motion)
        features = np.full((labels, 20, len(self.pixel)), np.nan, F)
        score = np.full((len(self.pixel), labels), np.nan, F)
        _native.score_candidates(
            self.bits,
            self.motion,
            (self.matched, self.kept),
            (self.back, self.back_trusted),
            self.geodesic,
            self.texture,
            self.size,
            self.range,
            self.pixel,
            self.network,
            features,
            score,
        )
        return features.transpose(2, 0, 1), score


def random_scoring(rng: np.random.Generator, hidden: int = 5) -> Scoring:
    """Candidates that lead inside, outside and between pixels; bits that often agree."""
    height, width = (int(side) for side in rng.integers(1, 14, 2))
    labels = int(rng.integers(1, 5))
    shape = height, width
    words = rng.integers(0, 2**63, 3, np.uint64)
    bits = [words[rng.integers(0, 3, shape)] for _ in range(2)]
    motion = rng.normal(size=(labels, *shape, 2)) * 4
    whole = rng.random(motion.shape) < 0.5
    motion[whole] = np.rint(motion[whole])
    motion[1:][rng.random(motion[1:].shape) < 0.3] = 0
    return Scoring(
        (bits[0], bits[1]),
        motion.astype(F),
        np.rint(rng.normal(size=(*shape, 2)) * 2).astype(F),
        (rng.random(shape) < 0.6).astype(np.uint8),
        np.rint(rng.normal(size=(*shape, 2)) * 2).astype(F),
        (rng.random(shape) < 0.7).astype(np.uint8),
        np.where(rng.random((labels, *shape)) < 0.1, 1e30, rng.random((labels, *shape))).astype(F),
        rng.random(shape).astype(F),
        rng.normal(size=labels).astype(F),
        (-2.0, -1.0, 1.5, 2.0),
        rng.permutation(height * width)[: height * width // 2 + 1].astype(np.int32),
        np.concatenate(
            [np.full(20, -1.5), np.full(20, 1.5), rng.normal(size=hidden * (20 + hidden + 3))]
        ).astype(F),
    )


def described(p: Scoring) -> Array:
    """Return the features, pixel by pixel."""
    out = np.array([[_of_pixel(p, label, i) for label in range(len(p.motion))] for i in p.pixel])
    out[:, :, 3] = (32 * out[:, :, 2] - 32 * out[:, :, 2].min(axis=1, keepdims=True)) / 16
    planes = out[:, 1:, 7] if len(p.motion) > 1 else out[:, :, 7]
    out[:, :, 8] = out[:, :, 7] - planes.min(axis=1, keepdims=True)
    out[:, :, 16] = out[:, :1, 7]
    return out


def _of_pixel(p: Scoring, label: int, pixel: int) -> list[float]:
    y, x = divmod(int(pixel), p.kept.shape[1])
    motion = p.motion[label].astype(np.float64)
    own = [_target(p, motion, y, x)]
    near = [_target(p, motion, *q) for q in _around(p, y, x, 2)]
    distance = sum(t[1] for t in near) / sum(t[0] for t in near) if own[0][0] else 32.0
    apart = np.hypot(*(p.motion[label] - p.motion[0]).transpose(2, 0, 1))
    support = []
    for radius in (8, 32):
        area = (2 * radius + 1) ** 2
        kept = [q for q in _around(p, y, x, radius) if p.kept[q]]
        agreeing = sum(apart[q] < 1 for q in kept)
        support.append((agreeing / area + 0.002) / (len(kept) / area + 0.004))
    u, v = motion[y, x]
    low_u, low_v, high_u, high_v = p.range
    beyond = max(low_u - u, u - high_u, 0) + max(low_v - v, v - high_v, 0)
    return [
        own[0][0],
        own[0][1] / 32,
        distance / 32,
        0.0,  # against the other candidates: later
        own[0][2],
        own[0][3],
        sum(t[3] for t in near) / 25,
        np.log(min(p.geodesic[label, y, x], 1e9) + 0.02),
        0.0,
        np.log1p(apart[y, x]),
        np.log1p(np.hypot(*(motion[y, x] - p.matched[y, x]))),
        np.log1p(beyond),
        *support,
        len([q for q in _around(p, y, x, 32) if p.kept[q]]) / 65**2,
        float(label == 0),
        0.0,
        p.size[label],
        np.log(p.texture[y, x] + 0.003),
        sum(t[0] for t in near) / 25,
    ]


def _around(p: Scoring, y: int, x: int, radius: int) -> list[tuple[int, int]]:
    height, width = p.kept.shape
    return [
        (i, j)
        for i in range(max(y - radius, 0), min(y + radius + 1, height))
        for j in range(max(x - radius, 0), min(x + radius + 1, width))
    ]


def _target(p: Scoring, motion: Array, y: int, x: int) -> tuple[float, int, float, float]:
    """Whether it is inside, the least distance of bits, whether the way back ends here, or not."""
    height, width = p.kept.shape
    u, v = motion[y, x]
    tx, ty = F(x) + F(u), F(y) + F(v)
    if not (-0.5 < tx < width - 0.5 and -0.5 < ty < height - 0.5):
        return 0.0, 0, 0.0, 0.0
    columns = [min(max(int(np.floor(tx)) + k, 0), width - 1) for k in range(2)]
    rows = [min(max(int(np.floor(ty)) + k, 0), height - 1) for k in range(2)]
    columns[1], rows[1] = min(columns[0] + 1, width - 1), min(rows[0] + 1, height - 1)
    least = min(
        bin(int(p.bits[0][y, x]) ^ int(p.bits[1][row, column])).count("1")
        for row in rows
        for column in columns
    )
    to = min(max(int(np.rint(ty)), 0), height - 1), min(max(int(np.rint(tx)), 0), width - 1)
    away = np.hypot(*(p.back[to] + motion[y, x])) if p.back_trusted[to] else 2.0
    return 1.0, least, float(away <= 1.5), float(away > 2.5)


def judged(network: Array, features: Array) -> Array:
    """Return the output of the network: bounds, two rectified layers, one sum."""
    count = 20
    hidden = next(n for n in range(1, 99) if len(network) == 2 * count + n * (count + n + 3))
    low, high, rest = network[:count], network[count : 2 * count], network[2 * count :]
    values = features.clip(low, high).astype(np.float64)
    for inputs in (count, hidden):
        bias, weights = rest[:hidden], rest[hidden : hidden * (inputs + 1)].reshape(inputs, hidden)
        values = (values @ weights + bias).clip(0)
        rest = rest[hidden * (inputs + 1) :]
    return values @ rest


def plane_motion(homography: Array, shape: tuple[int, int]) -> Array:
    """Return the flow of a homography; bounded where it comes near to the horizon."""
    y, x = np.ogrid[: shape[0], : shape[1]]
    row = homography[:, 0, None, None] * x + homography[:, 1, None, None] * y
    u, v, depth = row + homography[:, 2, None, None]
    depth = depth.clip(0.1)
    return np.stack([u / depth - x, v / depth - y], axis=2).astype(F)


@dataclass
class Choice:
    """The arguments of one choice."""

    pixel: Array
    unary: Array
    motion: Array
    right: Array
    down: Array
    cap: float = 2.0
    rounds: int = 4

    def run(self) -> Array:
        """Return the labels."""
        label = np.zeros(self.right.shape, np.int32)
        _native.choose_candidates(
            self.pixel,
            self.unary,
            self.motion,
            self.right,
            self.down,
            (self.cap, self.rounds),
            label,
        )
        return label

    def edges(self) -> list[tuple[tuple[int, int], tuple[int, int], float]]:
        """Return the pairs of neighbors with their weights."""
        height, width = self.right.shape
        across = [
            ((y, x), (y, x + 1), self.right[y, x]) for y in range(height) for x in range(width - 1)
        ]
        along = [
            ((y, x), (y + 1, x), self.down[y, x]) for y in range(height - 1) for x in range(width)
        ]
        return [(a, b, float(weight)) for a, b, weight in across + along]

    def energy(self, label: Array) -> float:
        """Return the cost of a labeling."""
        total = float(
            sum(row[label.flat[i]] for i, row in zip(self.pixel, self.unary, strict=True))
        )
        opened = {divmod(int(i), self.right.shape[1]) for i in self.pixel}
        for a, b, weight in self.edges():
            ends = [q for q in (a, b) if q in opened]
            # A pixel that is not open says what it thinks of the candidates where it is.
            places = {2: (a, b), 1: tuple(q for q in (a, b) if q not in opened), 0: ()}[len(ends)]
            apart = [abs(self.motion[label[a]][q] - self.motion[label[b]][q]).sum() for q in places]
            total += weight * min(np.mean(apart), self.cap) if apart else 0.0
        return total


def random_choice(
    rng: np.random.Generator, shape: tuple[int, int], labels: int, pixel: list[int] | None = None
) -> Choice:
    """Candidates and costs at random; about two thirds of the pixels are open, or those given."""
    some = rng.permutation(shape[0] * shape[1])[: shape[0] * shape[1] * 2 // 3]
    opened = some.astype(np.int32) if pixel is None else np.array(pixel, np.int32)
    return Choice(
        opened,
        rng.random((len(opened), labels)).astype(F) * 3,
        rng.normal(size=(labels, *shape, 2)).astype(F),
        rng.random(shape).astype(F),
        rng.random(shape).astype(F),
    )
