"""The choice of motions beside motion boundaries, against plain numpy and on known motions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from _flows_reference import jumps, largest_around
from _problems import same_bytes, same_everywhere
from hamflow import InputError, _native
from hamflow.refinement import MotionChoice, choose
from hamflow.refinement.variational import features

Array = NDArray[Any]
F = np.float32
MOST, SAME = 6, 1.0


def problem(rng: np.random.Generator, shape: tuple[int, int]) -> dict[str, Any]:
    """Two motions and some noise; now and then they lead outside."""
    sides = rng.random(shape) < 0.5
    flow = np.where(sides[..., None], [1.3, -0.6], [-2.4, 1.7])
    return {
        "guide": rng.random((*shape, 3)).astype(F),
        "f0": rng.random((*shape, 8)).astype(F),
        "f1": rng.random((*shape, 8)).astype(F),
        "trust": rng.choice([0, 1, 1], shape).astype(F),
        "where": (4.6, 0, 1),
        "flow": (flow + rng.normal(size=flow.shape) * 0.3).astype(F),
        "neighborhood": (3, 4.0, 2.0),
        "data": (0.4, 0.7),
        "agreement": (1.0, 2.0, 0.3),
        "margins": (0.05, 0.15),
    }


def run(p: dict[str, Any]) -> Array:
    flow = p["flow"].copy()
    _native.choose_motions(**p | {"flow": flow})
    return flow


def band(p: dict[str, Any]) -> Array:
    """The pixels that choose."""
    jump, reach, _ = p["where"]
    near: Array = largest_around(*jumps(p["flow"]), reach) > jump
    return near


def bilinear(image: Array, x: float, y: float) -> Array:
    left, top = math.floor(x), math.floor(y)
    right, bottom = min(left + 1, image.shape[1] - 1), min(top + 1, image.shape[0] - 1)
    a, b = x - left, y - top
    upper = (1 - a) * image[top, left] + a * image[top, right]
    lower = (1 - a) * image[bottom, left] + a * image[bottom, right]
    result: Array = (1 - b) * upper + b * lower
    return result


def neighborhood(radius: int) -> list[tuple[int, int]]:
    """All of 3 × 3, every other pixel beyond; the nearest first."""
    span = range(-radius, radius + 1)
    offsets = [(y, x) for y in span for x in span]
    kept = [(y, x) for y, x in offsets if max(abs(y), abs(x)) <= 1 or y % 2 == x % 2 == 0]
    return sorted(kept, key=lambda o: o[0] ** 2 + o[1] ** 2)


def reference(p: dict[str, Any]) -> Array:
    height, width = p["trust"].shape
    radius, color, nearness = p["neighborhood"]
    difference, outside = p["data"]
    smoothness, apart, distrust = p["agreement"]
    flow, chosen = p["flow"].astype(float), p["flow"].copy()

    def similarity(i: tuple[int, int], j: tuple[int, int]) -> float:
        contrast = np.abs(p["guide"][i].astype(float) - p["guide"][j]).mean()
        return math.exp(-color * contrast)

    def data_cost(i: tuple[int, int], motion: Array) -> float:
        total = weights = 0.0
        for y in range(max(i[0] - 1, 0), min(i[0] + 2, height)):
            for x in range(max(i[1] - 1, 0), min(i[1] + 2, width)):
                tx, ty = x + motion[0], y + motion[1]
                cost = outside
                if 0 <= tx <= width - 1 and 0 <= ty <= height - 1:
                    there = bilinear(p["f1"][..., :3].astype(float), tx, ty)
                    cost = min(np.abs(there - p["f0"][y, x, :3]).mean() / difference, 1)
                total += similarity(i, (y, x)) * cost
                weights += similarity(i, (y, x))
        return total / weights

    for i in zip(*np.nonzero(band(p)), strict=True):
        around = [(i[0] + y, i[1] + x) for y, x in neighborhood(radius)]
        around = [(y, x) for y, x in around if 0 <= y < height and 0 <= x < width]
        motions: list[Array] = []
        for j in around:
            if len(motions) < MOST and all(np.abs(flow[j] - m).sum() >= SAME for m in motions):
                motions.append(flow[j])
        weight = np.array(
            [
                similarity(i, j)
                * math.exp(-((i[0] - j[0]) ** 2 + (i[1] - j[1]) ** 2) / (2 * nearness**2))
                * (1 if p["trust"][j] > 0 else distrust)
                for j in around
            ]
        )
        costs = []
        for motion in motions:
            differs = np.array([min(np.abs(flow[j] - motion).sum() / apart, 1) for j in around])
            costs.append(smoothness * weight @ differs / weight.sum() + data_cost(i, motion))
        costs[0] -= p["margins"][0 if p["trust"][i] > 0 else 1]
        chosen[i] = motions[int(np.argmin(costs))]
    return chosen


@pytest.mark.parametrize("shape", [(9, 11), (12, 7), (1, 9), (8, 1), (2, 2), (1, 1)])
def test_equals_plain_numpy(shape: tuple[int, int]) -> None:
    for seed in range(3):
        p = problem(np.random.default_rng(seed), shape)
        result = run(p)
        assert np.array_equal(result, reference(p))
        assert same_bytes(result[~band(p)], p["flow"][~band(p)])
        if min(shape) > 5:
            assert 0.2 < band(p).mean() < 0.9
            assert (result != p["flow"]).any()


def test_levels_and_threads() -> None:
    p = problem(np.random.default_rng(0), (43, 37)) | {"where": (4.6, 1, 2)}
    assert same_everywhere(lambda: run(p))


def test_a_boundary_moves_to_where_the_images_have_it() -> None:
    """A square moves over a background at rest; its flow reaches three pixels too far."""
    rng = np.random.default_rng(0)
    back, front = rng.random((40, 50, 3)) * 0.3, rng.random((14, 14, 3)) * 0.3 + 0.6
    images = [back.copy(), back.copy()]
    images[0][12:26, 15:29] = front
    images[1][12:26, 20:34] = front
    truth, start = np.zeros((40, 50, 2), F), np.zeros((40, 50, 2), F)
    truth[12:26, 15:29, 0] = 5
    start[9:29, 12:32, 0] = 5
    maps = [features(image.astype(F), 0) for image in images]
    first = images[0].astype(F), *maps
    ones = np.ones((40, 50), F)
    flow = choose(*first, start, ones)
    # The second round skips pixels around which nothing has changed.
    once = MotionChoice(rounds=1)
    assert same_bytes(
        flow, choose(*first, choose(*first, start, ones, choice=once), ones, choice=once)
    )
    visible = np.ones((40, 50), np.bool_)
    visible[12:26, 29:34] = False
    wrong = [int(((f != truth).any(axis=2) & visible).sum()) for f in (start, flow)]
    assert wrong[0] == 162
    assert wrong[1] <= 4
    # And what is right stays.
    kept = choose(images[0].astype(F), *maps, truth, np.ones((40, 50), F))
    assert ((kept != truth).any(axis=2) & visible).sum() <= 4


def test_jumps() -> None:
    flow = np.zeros((4, 5, 2), F)
    flow[:, 3:] = 3, 4
    right, down = jumps(flow)
    assert (right[:, 2] == 5).all()
    assert right.sum() == 20
    assert not down.any()
    assert (largest_around(right, down, 0)[:, 2:4] == 5).all()
    assert largest_around(right, down, 0).sum() == 40
    assert largest_around(right, down, 1).sum() == 80


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guide": np.zeros((4, 5, 2), F)}, "guide has the wrong shape"),
        ({"f0": np.zeros((4, 5, 7), F)}, "f0 has the wrong shape"),
        ({"f1": np.zeros((4, 6, 8), F)}, "f1 has the wrong shape"),
        ({"trust": np.zeros((5, 5), F)}, "trust has the wrong shape"),
        ({"where": (-1.0, 5, 2)}, "where"),
        ({"where": (1.0, -1, 2)}, "where"),
        ({"where": (1.0, 5, 1001)}, "where"),
        ({"neighborhood": (0, 1.0, 1.0)}, "neighborhood"),
        ({"neighborhood": (3, -1.0, 1.0)}, "neighborhood"),
        ({"neighborhood": (3, 1.0, 0.0)}, "neighborhood"),
        ({"data": (0.0, 1.0)}, "data"),
        ({"agreement": (-1.0, 1.0, 1.0)}, "agreement"),
        ({"agreement": (1.0, math.nan, 1.0)}, "agreement"),
    ],
)
def test_bad_arguments(change: dict[str, Any], message: str) -> None:
    p = problem(np.random.default_rng(0), (4, 5))
    run(p)
    with pytest.raises(ValueError, match=message):
        run(p | change)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jump", -1.0),
        ("reach", 5.0),
        ("radius", 0),
        ("nearness", 0.0),
        ("color", math.nan),
        ("difference", 0.0),
        ("outside", -0.1),
        ("smoothness", math.inf),
        ("apart", "2"),
        ("distrust", None),
        ("rounds", -1),
        ("margin", math.nan),
        ("untrusted_margin", -0.1),
    ],
)
def test_bad_parameters(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} must be .*{value}.*\\.$"):
        MotionChoice(**{name: value})
