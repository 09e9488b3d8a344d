"""Interpolation between scattered matches, against plain Python and on motions that are known."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from _interpolation_reference import (
    Array,
    F,
    Reference,
    at_pixels,
    even,
    everywhere,
    links_of,
    random_problem,
    run,
    scene_of_two,
    shortest,
    two_planes,
)
from _problems import same_bytes, same_everywhere


@pytest.mark.parametrize("seed", range(60))
def test_equals_plain_python(seed: int) -> None:
    p = random_problem(np.random.default_rng(seed))
    flow, distance = run(p)
    expected, lengths = Reference(p).paint()
    assert same_bytes(distance, lengths)
    assert np.allclose(flow, expected, rtol=0, atol=1e-3)


def test_the_problems_are_not_trivial() -> None:
    """Everything counts in many of them."""
    problems = [random_problem(np.random.default_rng(k), neighbors=12, rounds=3) for k in range(20)]
    flows = [run(p)[0] for p in problems]
    for change in ({"rounds": 0}, {"neighbors": 5}, {"reach": 0.1}, {"tolerance": 0.3}):
        others = [replace(p, **change) for p in problems]
        assert _different(others, flows) > 5, change
    for name in ("right", "down", "trust"):
        others = [
            replace(p, **{name: np.ascontiguousarray(getattr(p, name)[::-1])}) for p in problems
        ]
        assert _different(others, flows) > 5, name


def _different(problems: list[Any], flows: list[Array]) -> int:
    return sum(abs(run(p)[0] - flow).max() > 0.01 for p, flow in zip(problems, flows, strict=True))


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


def test_levels_and_threads() -> None:
    rng = np.random.default_rng(0)
    pixel = rng.permutation(70 * 90)[:700]  # of several blocks
    p = at_pixels(pixel, 90, lambda x, y: rng.normal(size=(2, 700)), neighbors=20)
    right, down = rng.uniform(0.01, 1, (2, 70, 90)).astype(F)
    p = replace(p, right=right, down=down)
    assert same_everywhere(lambda: run(p))


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
        ({"rounds": -1}, "rounds"),
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
