"""Filling between scattered matches, against a slow and obvious solver in plain Python."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hamflow.refinement.filling import _matches
from numpy.typing import NDArray

from _problems import same_bytes, with_threads
from hamflow import InputError, _native
from hamflow.refinement import FillConfig, fill

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
        "neighbors": int(rng.integers(1, 15)),
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
    """The models of all seeds."""

    def __init__(self, p: Problem) -> None:
        self.p = p
        self.place, self.match = p.place.astype(float), p.match.astype(float)
        self.found = shortest(links_of(p), p.pixel.tolist())
        self.links = seed_links(p, self.found)
        self.near = [self.nearest(seed) for seed in range(len(p.pixel))]
        models = [self.fitted(s, self.start(s)) for s in range(len(p.pixel))]
        for _ in range(p.rounds):
            models = [self.improved(s, models) for s in range(len(p.pixel))]
        self.models = models

    def nearest(self, seed: int) -> tuple[Array, Array]:
        """Return the seeds that count, nearest first, and how much."""
        found = list(shortest(self.links, [seed]).items())[: self.p.neighbors]
        who = np.array([s for s, _ in found])
        weights = [math.exp(-d / self.p.reach) * self.p.trust[s] for s, (d, _) in found]
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

    def improved(self, seed: int, models: list[Model]) -> Model:
        around = sorted({a + b - seed for a, b, _ in self.links if seed in (a, b)})
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
            flow[y, x] = self.models[owner].at(np.array([x, y]))
        return flow, distance


@pytest.mark.parametrize("seed", range(60))
def test_equals_plain_python(seed: int) -> None:
    p = random_problem(np.random.default_rng(seed))
    flow, distance = run(p)
    expected, lengths = Reference(p).paint()
    assert same_bytes(distance, lengths)
    assert np.allclose(flow, expected, rtol=0, atol=1e-3)


def test_the_problems_are_not_trivial() -> None:
    p = next(
        p
        for p in (random_problem(np.random.default_rng(k)) for k in range(99))
        if len(p.pixel) > 20 and p.neighbors > 8 and p.rounds > 0
    )
    flow = run(p)[0]
    for change in ({"rounds": 0}, {"neighbors": 5}, {"reach": 0.1}, {"tolerance": 0.3}):
        assert abs(run(replace(p, **change))[0] - flow).max() > 0.05, change
    for name in ("right", "down", "trust"):
        other = replace(p, **{name: np.ascontiguousarray(getattr(p, name)[::-1])})
        assert abs(run(other)[0] - flow).max() > 0.01, name


@pytest.mark.parametrize("seed", range(10))
def test_owners(seed: int) -> None:
    """With a single neighbor every pixel has the flow of a nearest seed."""
    p = random_problem(np.random.default_rng(seed), neighbors=1, rounds=2)
    flow, distance = run(p)
    alone = [shortest(links_of(p), [int(start)]) for start in p.pixel]
    for i, (vector, length) in enumerate(zip(flow.reshape(-1, 2), distance.flat, strict=True)):
        nearest = [k for k, found in enumerate(alone) if found[i][0] == length]
        assert length == min(found[i][0] for found in alone)
        assert any((vector == p.match[k]).all() for k in nearest)


# --- motions that are known ----------------------------------------------------------------------


def test_a_shift_is_exact() -> None:
    rng = np.random.default_rng(0)
    p = at_pixels(rng.permutation(30 * 40)[:50], 40, lambda x, y: (7.25, -3.5))
    flow, _ = run(replace(p, right=even(30, 40), down=even(30, 40)))
    assert np.allclose(flow, [7.25, -3.5], rtol=0, atol=1e-5)


def test_an_affine_motion() -> None:
    rng = np.random.default_rng(0)
    height, width = 60, 80

    def motion(x: Array, y: Array) -> tuple[Array, Array]:
        return 3 + 0.05 * x - 0.03 * y, -8 - 0.02 * x + 0.04 * y

    p = at_pixels(rng.permutation(height * width)[:300], width, motion)
    p = replace(p, right=even(height, width), down=even(height, width), neighbors=100)
    flow, _ = run(p)
    # Slopes are a little too flat, by intention.
    error = np.linalg.norm(flow - everywhere(motion, height, width), axis=2)
    assert error.max() < 0.1
    assert error.mean() < 0.02


def test_outliers_are_overruled() -> None:
    rng = np.random.default_rng(1)
    height, width, count = 50, 60, 250

    def motion(x: Array, y: Array) -> Any:
        return 2 + x / 30, -5

    p = at_pixels(rng.permutation(height * width)[:count], width, motion)
    wrong = rng.random(count) < 0.1
    assert wrong.sum() > 15
    match = np.where(wrong[:, None], rng.uniform(-20, 20, (count, 2)), p.match).astype(F)
    steps = even(height, width)
    flow, _ = run(replace(p, match=match, right=steps, down=steps, neighbors=50))
    assert abs(flow - everywhere(motion, height, width)).max() < 0.1


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


def test_two_motions_meet_at_an_edge() -> None:
    _, truth, known = scene_of_two()
    height, width = known.shape
    p = at_pixels(np.flatnonzero(known)[::7], width, two_planes, neighbors=60)
    right = even(height, width)
    right[:, 29] = 2  # the way across
    flow, _ = run(replace(p, right=right, down=even(height, width)))
    assert abs(flow - truth).max() < 0.25
    # If there is no edge to stop them, one takes a part of the hole that is the other's.
    flow, _ = run(replace(p, right=even(height, width), down=even(height, width)))
    assert abs(flow - truth)[~known].max() > 2


def test_filling_stops_at_the_edge_of_an_image() -> None:
    image, truth, known = scene_of_two()
    filled, _ = fill(image, truth, known)
    assert abs(filled - truth).max() < 0.3
    gray = fill(np.full_like(image, 0.5), truth, known)[0]
    assert abs(gray - truth)[~known].max() > 2


def test_one_seed() -> None:
    p = at_pixels([7], 5, lambda x, y: (1.5, -2))
    flow, distance = run(replace(p, right=even(3, 5, 0.5), down=even(3, 5, 0.25)))
    assert (flow == F([1.5, -2])).all()
    y, x = np.mgrid[:3, :5]
    assert (distance == 0.5 * abs(x - 2) + 0.25 * abs(y - 1)).all()


def test_seeds_everywhere() -> None:
    rng = np.random.default_rng(0)
    match = rng.normal(size=(2, 20)) * 9
    p = at_pixels(np.arange(20), 5, lambda x, y: match, neighbors=1)
    flow, distance = run(replace(p, right=even(4, 5), down=even(4, 5)))
    assert (distance == 0).all()
    assert (flow.reshape(20, 2) == p.match).all()


# --- what surrounds it ---------------------------------------------------------------------------


def test_threads() -> None:
    rng = np.random.default_rng(0)
    pixel = rng.permutation(70 * 90)[:700]  # of several blocks
    p = at_pixels(pixel, 90, lambda x, y: rng.normal(size=(2, 700)), neighbors=20)
    right, down = rng.uniform(0.01, 1, (2, 70, 90)).astype(F)
    p = replace(p, right=right, down=down)
    one = with_threads(1, lambda: run(p))
    for count in (2, 5):
        other = with_threads(count, lambda: run(p))
        assert same_bytes(one[0], other[0])
        assert same_bytes(one[1], other[1])


GOOD = replace(
    at_pixels([1, 7], 5, lambda x, y: (1.5, -2)), right=even(3, 5), down=even(3, 5), rounds=1
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"down": even(3, 4)}, "down has the wrong shape"),
        ({"place": np.zeros((3, 2), F)}, "place has the wrong shape"),
        ({"match": np.zeros((2, 3), F)}, "match has the wrong shape"),
        ({"trust": np.zeros(3, F)}, "trust has the wrong shape"),
        ({"pixel": np.array([0, 15], np.int32)}, "outside of the image"),
        ({"pixel": np.array([-1, 2], np.int32)}, "outside of the image"),
        ({"neighbors": 0}, "how"),
        ({"reach": 0.0}, "how"),
        ({"tolerance": math.nan}, "how"),
        ({"rounds": -1}, "how"),
        ({"right": even(3, 5, -1)}, "steps"),
        ({"right": even(3, 5, math.nan)}, "steps"),
        ({"down": even(3, 5, math.inf)}, "steps"),
    ],
)
def test_bad_arguments(change: dict[str, Any], message: str) -> None:
    run(GOOD)
    with pytest.raises(ValueError, match=message):
        run(replace(GOOD, **change))


def test_no_seeds() -> None:
    none = at_pixels([], 5, lambda x, y: (x, y))
    with pytest.raises(ValueError, match="at least one seed"):
        run(replace(none, right=even(3, 5), down=even(3, 5)))


# --- from Python ---------------------------------------------------------------------------------


def test_small_regions_are_not_trusted() -> None:
    image = np.full((30, 40, 3), 0.5, F)
    flow = np.zeros((30, 40, 2), F)
    trusted = np.zeros((30, 40), np.bool_)
    trusted[:, :20] = True
    flow[10:15, 30:35] = 9
    trusted[10:15, 30:35] = True
    assert not fill(image, flow, trusted, FillConfig(smallest=26, neighbors=4))[0].any()
    filled = fill(image, flow, trusted, FillConfig(smallest=25, neighbors=4))[0]
    assert np.allclose(filled[12, 32], 9, atol=0.01)
    # Where nothing else is left, they are better than nothing ...
    trusted[:, :20] = False
    assert np.allclose(fill(image, flow, trusted, FillConfig(smallest=26))[0], 9, atol=0.01)
    # ... and if nothing is trusted, everything is.
    trusted[:] = False
    assert abs(fill(image, flow, trusted)[0][:, :20]).max() < 0.01


@pytest.mark.parametrize("cell", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 1), (11, 13)])
def test_a_plane_of_whole_pixels(cell: int, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).random((*shape, 3)).astype(F)
    flow = np.broadcast_to(F([3, -2]), (*shape, 2)).copy()
    filled, distance = fill(image, flow, np.ones(shape, np.bool_), FillConfig(cell=cell))
    assert filled.dtype == distance.dtype == F
    assert np.allclose(filled, flow, rtol=0, atol=1e-5)
    assert (distance >= 0).all()
    assert (distance == 0).sum() == -(-shape[0] // cell) * -(-shape[1] // cell)


@pytest.mark.parametrize("cell", [1, 2, 3, 4])
def test_seeds(cell: int) -> None:
    rng = np.random.default_rng(cell)
    height, width = 11, 13
    trusted = rng.random((height, width)) < 0.3
    flow = rng.integers(-2, 3, (height, width, 2)).astype(F)
    seeds = _matches(flow, trusted, cell)
    cells = {(y // cell, x // cell): [] for y, x in np.argwhere(trusted)}
    for y, x in np.argwhere(trusted):
        cells[y // cell, x // cell].append((int(y), int(x)))
    assert len(seeds.pixel) == len(cells)
    reach = cell // 2 + 1 if cell > 1 else 0
    for pixel, place, mean, trust in zip(*seeds, strict=True):
        y, x = divmod(int(pixel), width)
        # It is one of its cell that is closest to the middle ...
        middle = np.array([y // cell, x // cell]) * cell + (cell - 1) / 2
        lengths = [np.linalg.norm(other - middle) for other in cells.pop((y // cell, x // cell))]
        assert np.linalg.norm([y, x] - middle) == min(lengths)
        # ... and stands for those around with about the same flow.
        alike = [
            (i, j)
            for i, j in np.argwhere(trusted)
            if max(abs(i - y), abs(j - x)) <= reach and abs(flow[i, j] - flow[y, x]).max() <= 1
        ]
        assert np.allclose(place[::-1], np.mean(alike, axis=0), atol=1e-5)
        assert np.allclose(mean, np.mean([flow[i, j] for i, j in alike], axis=0), atol=1e-5)
        assert trust == pytest.approx(len(alike) / (2 * reach + 1) ** 2)


def test_rounded_flow_is_averaged() -> None:
    """A slope in whole pixels becomes a slope in fractions of them."""
    height, width = 40, 60
    truth = np.zeros((height, width, 2), F)
    truth[..., 0] = np.arange(width) / 10
    image = np.full((height, width, 3), 0.5, F)
    filled, _ = fill(image, np.rint(truth), np.ones((height, width), np.bool_))
    assert abs(np.rint(truth) - truth)[..., 0].mean() > 0.2
    assert abs(filled - truth)[..., 0].mean() < 0.05


def test_bad_input_of_fill() -> None:
    image, flow = np.zeros((4, 5, 3), F), np.zeros((4, 5, 2), F)
    trusted = np.ones((4, 5), np.bool_)
    for args in (
        (image[:3], flow, trusted),
        (image, flow[:, :4], trusted),
        (image, flow, trusted[:3]),
    ):
        with pytest.raises(InputError, match="one height and width"):
            fill(*args)
    image[2, 3, 1] = np.nan
    with pytest.raises(InputError, match="image must be finite"):
        fill(image, flow, trusted)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cell", 0),
        ("cell", 2.0),
        ("smallest", -1),
        ("neighbors", 0),
        ("rounds", -1),
        ("step", 0.0),
        ("reach", math.nan),
        ("tolerance", math.inf),
        ("blur", -1.0),
    ],
)
def test_bad_parameters(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} must be .*{value}.*\\.$"):
        FillConfig(**{name: value})
