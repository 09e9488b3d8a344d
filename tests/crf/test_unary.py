"""Costs of the labels of each plane besides those of the descriptors, and priors made of a flow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from _crf_problems import (
    SEEDS,
    Model,
    Problem,
    random_problem,
    random_unary,
    tiny_problems,
    with_phi,
)
from _crf_reference import energy, optimum
from _problems import everywhere
from hamflow import Window
from hamflow.errors import InputError
from hamflow.prior import Prior


def made(shape: tuple[int, int], window: tuple[int, int, int, int], **config: Any) -> Problem:
    return random_problem(np.random.default_rng(3), shape, window, **config)


def with_unary(model: Model, unary: tuple[Any, Any]) -> Model:
    """The same model with costs of the labels, in the 4D cost."""
    return replace(model, costs=model.costs + unary[0][:, :, :, None] + unary[1][:, :, None, :])


@settings(max_examples=40)
@given(problem=tiny_problems(), seed=SEEDS, floats=st.booleans())
def test_certified_by_brute_force(problem: Problem, seed: int, floats: bool) -> None:
    if floats:
        problem = with_phi(problem, np.random.default_rng(seed))
    unary = random_unary(problem, seed)
    model = with_unary(problem.model, unary)
    result = problem.solve(unary=unary)
    best, close = optimum(model), 1e-6 * max(1.0, float(abs(model.costs).max()))
    assert result.bound <= best + close
    assert result.energy >= best - close
    assert result.energy == pytest.approx(energy(model, result.u, result.v), abs=close)


@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
def test_moves_are_those_of_the_reference(arithmetic: Any) -> None:
    problem = made((7, 9), (-3, 7, -2, 5), arithmetic=arithmetic)
    unary = random_unary(problem, 5)
    results = list(everywhere(lambda: problem.solve(unary=unary)))
    for result in results[1:]:
        assert (result.u == results[0].u).all()
        assert (result.v == results[0].v).all()
        assert (result.energy, result.bound) == (results[0].energy, results[0].bound)


def test_a_constant_moves_the_bound_and_not_the_flow() -> None:
    problem = made((6, 8), (-2, 5, -2, 5))
    zero = tuple(np.zeros_like(a) for a in random_unary(problem, 0))
    ten = tuple(a + np.uint8(10) for a in zero)
    plain, none, more = problem.solve(), problem.solve(unary=zero), problem.solve(unary=ten)
    assert (plain.u == none.u).all()
    assert (plain.bound, plain.energy) == (none.bound, none.energy)
    assert more.bound == pytest.approx(plain.bound + 20 * 48)
    assert (more.u == plain.u).all()
    assert (more.v == plain.v).all()


def test_unary_is_checked() -> None:
    problem = made((4, 5), (-1, 3, -1, 3))
    a, b = random_unary(problem, 0)
    for wrong in (a, (a,), (a, b[:, :, :2]), (a.astype(np.float32), b)):
        with pytest.raises(InputError, match="unary"):
            problem.solve(unary=wrong)


def test_prior_by_its_definition() -> None:
    rng = np.random.default_rng(0)
    flow = rng.uniform(-6, 6, (3, 4, 2)).astype(np.float32)
    weight = rng.uniform(0, 20, (3, 4)).astype(np.float32)
    window = Window(-5, 11, -2, 4)
    prior = Prior(flow, weight, slope=3.0, free=1.0)
    for plane, (first, count) in enumerate(((-5, 11), (-2, 4))):
        costs = prior.unary(window)[plane]
        assert costs.shape == (3, 4, count)
        for y, x, k in np.ndindex(costs.shape):
            away = abs(first + k - flow[y, x, plane])
            expected = min(weight[y, x], 3 * max(0, away - 1))
            assert costs[y, x, k] == int(expected + 1e-4) or costs[y, x, k] == int(expected)


def test_a_strong_prior_decides_where_descriptors_say_nothing() -> None:
    problem = made((6, 8), (-4, 9, -4, 9))
    flat = {name: np.zeros_like(bits) for name, bits in problem.descriptors.items()}
    problem = replace(problem, descriptors=flat)
    flow = np.zeros((6, 8, 2), np.float32)
    flow[..., 0] = 3
    prior = Prior(flow, np.full((6, 8), 40, np.float32), free=0.0)
    found = problem.solve(unary=prior.unary(problem.window)).flow
    # At the right border the expected target is outside of the image, which costs more.
    assert (found[:, :5] == flow[:, :5]).all()


# --- margins --------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(seed=SEEDS, floats=st.booleans(), du=st.integers(1, 9), dv=st.integers(1, 9))
def test_margin_by_its_definition(seed: int, floats: bool, du: int, dv: int) -> None:
    problem = random_problem(np.random.default_rng(seed), (5, 6), (-2, du, -1, dv))
    if floats:
        problem = with_phi(problem, np.random.default_rng(seed))
    result = problem.solve()
    margin = result.margin
    assert margin.dtype == np.float32
    for y, x in np.ndindex(problem.shape):
        expected = np.inf
        for slack, labels in ((result.slack_u, result.u), (result.slack_v, result.v)):
            values, own = slack[y, x].astype(float), int(labels[y, x])
            others = [s for k, s in enumerate(values) if abs(k - own) > 1]
            expected = min([expected, *((s - values[own]) / result.scale for s in others)])
        assert margin[y, x] == pytest.approx(expected, rel=1e-5)


def test_flat_images_are_undecided_and_distinct_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    flat, moved = (random_problem(rng, (8, 9), (-3, 7, -3, 7), kind) for kind in ("flat", "moved"))
    assert flat.solve().margin.max() <= 0
    assert np.median(moved.solve().margin) > 0.3
