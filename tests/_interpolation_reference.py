"""Interpolation between scattered matches by a slow and obvious solver in plain Python."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow import _native

Array = NDArray[Any]
F = np.float32
Motion = Callable[[Array, Array], Any]


@dataclass(frozen=True)
class Problem:
    """The arguments of one interpolation."""

    right: Array
    down: Array
    pixel: Array
    place: Array
    match: Array
    trust: Array
    neighbors: int = 8
    reach: float = 0.5
    tolerance: float = 1.25
    rounds: int = 3

    @property
    def how(self) -> tuple[int, float, float, int]:
        return self.neighbors, self.reach, self.tolerance, self.rounds


def run(p: Problem) -> tuple[Array, Array]:
    """Return flow and distance."""
    height, width = p.right.shape
    flow = np.full((height, width, 2), np.nan, F)
    distance = np.full((height, width), np.nan, F)
    _native.interpolate(p.right, p.down, p.pixel, p.place, p.match, p.trust, p.how, flow, distance)
    return flow, distance


def even(height: int, width: int, step: float = 0.004) -> Array:
    return np.full((height, width), step, F)


def flow_of(motion: Motion, x: Array, y: Array) -> Array:
    return np.stack(np.broadcast_arrays(*motion(x, y), x)[:2], axis=-1).astype(F)


def everywhere(motion: Motion, height: int, width: int) -> Array:
    return flow_of(motion, *np.meshgrid(np.arange(width), np.arange(height)))


def at_pixels(pixel: Any, width: int, motion: Motion, **how: Any) -> Problem:
    """Seeds in the middle of their pixels that follow a function of x and y."""
    pixel = np.asarray(pixel, np.int32)
    x, y = pixel % width, pixel // width
    flow = flow_of(motion, x, y)
    place = np.stack([x, y], axis=1).astype(F)
    nothing = np.zeros((0, 0), F)
    return Problem(nothing, nothing, pixel, place, flow, np.ones(len(pixel), F), **how)


def random_problem(rng: np.random.Generator, **how: Any) -> Problem:
    """Two motions, noise and outliers on a grid with steps of all lengths."""
    height, width = (int(side) for side in rng.integers(1, 11, 2))
    count = int(rng.integers(1, min(height * width, 25) + 1))
    pixel = rng.permutation(height * width)[:count].astype(np.int32)
    x, y = pixel % width, pixel // width
    place = np.stack([x, y], axis=1) + rng.uniform(-0.5, 0.5, (count, 2))
    slopes = rng.normal(size=(2, 2)) * 0.2
    match = rng.normal(size=2) * 5 + place @ slopes + rng.normal(size=(count, 2)) * 0.2
    match[x > width / 2] += 4
    match[rng.random(count) < 0.15] += rng.normal(size=2) * 10
    how = {
        "neighbors": int(rng.choice([*range(1, 15), *[64] * 10])),
        "reach": float(rng.choice([0.5, 2.0, 10.0])),
        "rounds": int(rng.integers(0, 4)),
    } | how
    return Problem(
        rng.uniform(0.01, 1, (height, width)).astype(F),
        rng.uniform(0.01, 1, (height, width)).astype(F),
        pixel,
        place.astype(F),
        match.astype(F),
        rng.uniform(0.1, 1, count).astype(F),
        **how,
    )


# --- plain Python --------------------------------------------------------------------------------


def links_of(p: Problem) -> list[tuple[int, int, np.float32]]:
    """Return all pairs of neighboring pixels and how long the step is."""
    height, width = p.right.shape
    links = []
    for y in range(height):
        for x in range(width):
            i = y * width + x
            if x + 1 < width:
                links.append((i, i + 1, p.right[y, x]))
            if y + 1 < height:
                links.append((i, i + width, p.down[y, x]))
    return links


def shortest(
    links: list[tuple[int, int, np.float32]], starts: list[int]
) -> dict[int, tuple[np.float32, int]]:
    """Dijkstra: of each node the distance and the number of the start, nearest first."""
    around: dict[int, list[tuple[int, np.float32]]] = {}
    for i, j, step in links:
        around.setdefault(i, []).append((j, step))
        around.setdefault(j, []).append((i, step))
    queue = [(F(0), start, k) for k, start in enumerate(starts)]
    heapq.heapify(queue)
    found: dict[int, tuple[np.float32, int]] = {}
    while queue:
        distance, i, k = heapq.heappop(queue)
        if i in found:
            continue
        found[i] = distance, k
        for j, step in around.get(i, []):
            heapq.heappush(queue, (distance + step, j, k))
    return found


def seed_links(
    p: Problem, found: dict[int, tuple[np.float32, int]]
) -> list[tuple[int, int, np.float32]]:
    """Return which seeds' regions touch, and the shortest way through the border."""
    best: dict[tuple[int, int], np.float32] = {}
    for i, j, step in links_of(p):
        (here, a), (there, b) = found[i], found[j]
        if a != b:
            pair = min(a, b), max(a, b)
            # The sum in either order is a way between the two.
            best[pair] = min(best.get(pair, F(np.inf)), here + step + there)
    return [(a, b, length) for (a, b), length in best.items()]


class Model:
    """An affine flow around a center: two rows of (value, slope in x, slope in y)."""

    def __init__(self, center: Array, rows: Array) -> None:
        self.center, self.rows = center, rows

    def at(self, place: Array) -> Array:
        from_center = place - self.center
        values: Array = self.rows[:, 0] + from_center @ self.rows[:, 1:].T
        return values


class Reference:
    """The models of all groups of seeds, by the numbers of their leaders."""

    def __init__(self, p: Problem) -> None:
        self.p = p
        self.place, self.match = p.place.astype(float), p.match.astype(float)
        self.found = shortest(links_of(p), p.pixel.tolist())
        self.links = seed_links(p, self.found)
        self.leader = self.grouped()
        leaders = sorted(set(self.leader))
        self.near = {seed: self.nearest(seed) for seed in leaders}
        models = {s: self.fitted(s, self.start(s)) for s in leaders}
        for _ in range(p.rounds):
            models = {s: self.improved(s, models) for s in leaders}
        self.models = models

    def grouped(self) -> list[int]:
        """Return the leader of each seed: what is near to a leader and moves alike follows it."""
        leader = [-1] * len(self.p.pixel)
        most = 0 if self.p.neighbors < 64 else 0.1 * self.p.reach
        for s in range(len(leader)):
            if leader[s] < 0:
                leader[s] = s
                near = [a + b - s for a, b, length in self.links if s in (a, b) and length <= most]
                for other in near:
                    alike = (abs(self.match[other] - self.match[s]) <= self.p.tolerance).all()
                    if leader[other] < 0 and alike:
                        leader[other] = s
        return leader

    def away(self, seed: int) -> float:
        """Return how far a seed is from its leader."""
        lengths = {(a, b): length for a, b, length in self.links}
        pair = sorted((seed, self.leader[seed]))
        return float(lengths.get((pair[0], pair[1]), 0))

    def nearest(self, leader: int) -> tuple[Array, Array]:
        """Return the seeds that count, those of the nearest groups first, and how much."""
        ways = [
            (self.leader[a], self.leader[b], F(self.away(a) + length + self.away(b)))
            for a, b, length in self.links
            if self.leader[a] != self.leader[b]
        ]
        found = [
            (s, distance + self.away(s))
            for group, (distance, _) in shortest(ways, [leader]).items()
            for s in sorted(range(len(self.leader)), key=lambda s: (s != self.leader[s], s))
            if self.leader[s] == group
        ][: self.p.neighbors]
        who = np.array([s for s, _ in found])
        weights = [math.exp(-d / self.p.reach) * self.p.trust[s] for s, d in found]
        return who, np.array(weights)

    def ratios(self, seed: int, model: Model) -> Array:
        """Return squared residuals in units of the tolerance."""
        who, _ = self.near[seed]
        apart = self.match[who] - model.at(self.place[who])
        ratios: Array = (apart**2).sum(axis=1) / self.p.tolerance**2
        return ratios

    def cost(self, seed: int, model: Model) -> float:
        return float(self.near[seed][1] @ np.minimum(self.ratios(seed, model), 1))

    def start(self, seed: int) -> Model:
        shifts = [
            Model(self.place[seed], np.column_stack([self.match[other], np.zeros((2, 2))]))
            for other in self.near[seed][0][:12]
        ]
        return min(shifts, key=lambda shift: self.cost(seed, shift))

    def fitted(self, seed: int, model: Model) -> Model:
        who, near = self.near[seed]
        for _ in range(4):
            weights = near / (1 + self.ratios(seed, model)) ** 2
            weights = weights / weights.sum()
            center, mean = weights @ self.place[who], weights @ self.match[who]
            x, u = self.place[who] - center, self.match[who] - mean
            # Least squares, and 4 square pixels in favor of no slope.
            normal = (weights[:, None] * x).T @ x + 4 * np.eye(2)
            slopes = np.linalg.solve(normal, (weights[:, None] * x).T @ u).T
            model = Model(center, np.column_stack([mean, slopes]))
        return model

    def improved(self, seed: int, models: dict[int, Model]) -> Model:
        pairs = [(self.leader[a], self.leader[b]) for a, b, _ in self.links]
        around = sorted({sum(pair) - seed for pair in pairs if seed in pair} - {seed})
        best = min([seed, *around], key=lambda s: self.cost(seed, models[s]))
        if best == seed:
            return models[seed]
        candidates = models[best], self.fitted(seed, models[best])
        return min(candidates, key=lambda model: self.cost(seed, model))

    def paint(self) -> tuple[Array, Array]:
        height, width = self.p.right.shape
        flow, distance = np.zeros((height, width, 2)), np.zeros((height, width), F)
        for y, x in np.ndindex(height, width):
            distance[y, x], owner = self.found[y * width + x]
            flow[y, x] = self.models[self.leader[owner]].at(np.array([x, y]))
        return flow, distance


def two_planes(x: Array, y: Array) -> tuple[Array, Array]:
    left = x < 30
    return np.where(left, 5 + 0.05 * y, -4 - 0.04 * x), np.where(left, 0.03 * x, 6.0)


def scene_of_two() -> tuple[Array, Array, Array]:
    """Two colors that meet at x = 30, the flow of each, and where it is known: not in a hole."""
    height, width = 40, 60
    image = np.full((height, width, 3), 0.2, F)
    image[:, 30:] = 0.8
    known = np.ones((height, width), np.bool_)
    known[11:30, 26:46] = False
    return image, everywhere(two_planes, height, width), known
