"""The network that scores candidates with their surroundings, by slow and obvious code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
FEATURES, FIELDS, UNITS = 23, 3, (16, 24, 48, 48)
SIZE = 107222  # numbers of a network


def random_network(rng: np.random.Generator) -> Array:
    """Small numbers, and bounds that some features exceed."""
    network = rng.normal(size=SIZE) * 0.15
    network[:FEATURES], network[FEATURES : 2 * FEATURES] = -1, 1
    return network.astype(np.float32)


class Numbers:
    """The numbers of a network, one layer after the other."""

    def __init__(self, network: Array) -> None:
        self.rest = network.astype(np.float64)

    def take(self, *shape: int) -> Array:
        """Return the next ones."""
        count = int(np.prod(shape))
        part, self.rest = self.rest[:count], self.rest[count:]
        return part.reshape(shape)

    def layer(self, inputs: int, outputs: int, side: int = 1, biased: bool = True) -> Any:
        """Return the next layer as a function of (C, H, W)."""
        bias = self.take(outputs) if biased else np.zeros(outputs)
        weights = self.take(inputs, side, side, outputs)

        def run(image: Array) -> Array:
            height, width = image.shape[1:]
            padded = np.pad(image, ((0, 0), (side // 2,) * 2, (side // 2,) * 2))
            out = np.zeros((outputs, height, width)) + bias[:, None, None]
            for dy in range(side):
                for dx in range(side):
                    part = padded[:, dy : dy + height, dx : dx + width]
                    out += np.einsum("io,ihw->ohw", weights[:, dy, dx], part)
            return out

        return run


def rectified(image: Array) -> Array:
    return np.maximum(image, 0)


def halved(image: Array) -> Array:
    height, width = image.shape[1:]
    padded = np.pad(image, ((0, 0), (0, height % 2), (0, width % 2)), constant_values=np.nan)
    boxes = padded.reshape(len(image), (height + 1) // 2, 2, (width + 1) // 2, 2)
    return np.nanmean(boxes, axis=(2, 4))


def doubled(image: Array, shape: tuple[int, ...]) -> Array:
    return image.repeat(2, axis=1).repeat(2, axis=2)[:, : shape[1], : shape[2]]


def scored(features: Array, fields: Array, network: Array) -> Array:
    """Return the score of every candidate (L, H, W)."""
    numbers = Numbers(network)
    low, high = numbers.take(FEATURES), numbers.take(FEATURES)
    bounded = np.clip(features, low[:, None, None], high[:, None, None])

    def mixed(all_of_them: list[Array], units: int, more: Array | None = None) -> list[Array]:
        own = numbers.layer(units, units)
        together = numbers.layer(2 * units + (0 if more is None else len(more)), units, 1, False)
        parts = [np.mean(all_of_them, axis=0), np.max(all_of_them, axis=0)]
        shared = together(np.concatenate(parts if more is None else [*parts, more]))
        return [rectified(own(x) + shared) for x in all_of_them]

    first = numbers.layer(FEATURES, UNITS[0])
    now = mixed([rectified(first(x)) for x in bounded], UNITS[0], fields)
    kept = [now]
    for level in range(3):
        down = numbers.layer(UNITS[level], UNITS[level + 1], 3)
        now = mixed([rectified(down(halved(x))) for x in now], UNITS[level + 1])
        kept.append(now)
    deep = numbers.layer(UNITS[3], UNITS[3], 3)
    now = [rectified(deep(x)) for x in now]
    for level in (2, 1):
        of_coarse = numbers.layer(UNITS[level + 1], UNITS[level])
        of_fine = numbers.layer(UNITS[level], UNITS[level], 1, False)
        up = numbers.layer(UNITS[level], UNITS[level], 3)
        joined = [
            rectified(doubled(of_coarse(x), f.shape) + of_fine(f))
            for x, f in zip(now, kept[level], strict=True)
        ]
        now = [rectified(up(x)) for x in joined]
    now = mixed(now, UNITS[1])
    of_coarse = numbers.layer(UNITS[1], UNITS[0])
    of_fine = numbers.layer(UNITS[0], UNITS[0], 1, False)
    score = numbers.layer(UNITS[0], 1, 1, False)
    out = [
        score(rectified(doubled(of_coarse(x), f.shape) + of_fine(f)))[0]
        for x, f in zip(now, kept[0], strict=True)
    ]
    assert not len(numbers.rest)
    return np.stack(out)


def colors_apart(motion: Array, first: Array, second: Array, step: int) -> Array:
    """Return the logarithm of the mean difference of colors, candidate by candidate."""
    height, width = first.shape[:2]
    out = []
    for flow in motion.astype(np.float64):
        rows = []
        for y in range(0, height, step):
            row = []
            for x in range(0, width, step):
                tx = min(max(x + flow[y, x, 0], 0), width - 1)
                ty = min(max(y + flow[y, x, 1], 0), height - 1)
                there = 0.0
                for at_y, at_x in ((0, 0), (0, 1), (1, 0), (1, 1)):
                    py, px = int(ty) + at_y, int(tx) + at_x
                    share = (1 - abs(ty - py)) * (1 - abs(tx - px))
                    if share > 0:
                        there = there + share * second[py, px]
                row.append(np.log(np.abs(there - first[y, x]).mean() + 0.01))
            rows.append(row)
        out.append(rows)
    return np.array(out)
