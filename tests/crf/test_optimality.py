"""The bound and the energy against what is best: all labelings of tiny problems, and LPs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import hamflow
from _crf_problems import (
    SEEDS,
    ArrayData,
    Model,
    Problem,
    parameters,
    random_problem,
    tiny_problems,
    with_phi,
)
from _crf_reference import all_energies, energy, optimum
from _crf_relaxations import decomposed_lp, product_lp
from _problems import at_level
from hamflow.crf import CrfResult

LP = 1e-6
"""What HiGHS may be off by."""


def close(problem: Problem) -> float:
    """What sums in double precision may be off by."""
    return 1e-9 * max(1.0, float(abs(problem.model.costs).max()))


def assert_certified(problem: Problem, result: CrfResult) -> None:
    """bound <= optimum <= E, and E is the energy of the labels."""
    best = optimum(problem.model)
    assert result.bound <= best + close(problem)
    assert result.energy >= best - close(problem)
    assert result.energy == pytest.approx(
        energy(problem.model, result.u, result.v), abs=close(problem)
    )


# --- the means of these tests ---------------------------------------------------------------------


@settings(max_examples=20)
@given(problem=tiny_problems(), seed=SEEDS)
def test_all_energies(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    window = problem.window
    for model in (problem.model, problem.rounded):
        energies = all_energies(model)
        assert energies.size == (window.du * window.dv) ** (problem.shape[0] * problem.shape[1])
        u, v = (rng.integers(0, count, problem.shape) for count in (window.du, window.dv))
        value = energies[tuple((u * window.dv + v).ravel())]
        assert value == pytest.approx(energy(model, u, v), abs=1e-9)


@settings(max_examples=15)
@given(problem=tiny_problems())
def test_rounding_is_downwards(problem: Problem) -> None:
    scale = problem.arithmetic().scale
    rounded, true = all_energies(problem.rounded) / scale, all_energies(problem.model)
    assert (rounded <= true + close(problem)).all()
    # By less than a unit for each cost, and each edge and plane; times labels for a slope.
    height, width = problem.shape
    terms = height * width * (1 + 4 * max(problem.window.du, problem.window.dv))
    assert (rounded >= true - terms / scale).all()


# --- all labelings -------------------------------------------------------------------------------


@settings(max_examples=150)
@given(problem=tiny_problems())
def test_bound_and_energy_enclose_the_optimum(problem: Problem) -> None:
    result = problem.solve()
    assert_certified(problem, result)
    # Of the rounded model too, whose unit is the solver's.
    assert result.bound * result.scale <= optimum(problem.rounded)


@settings(max_examples=60)
@given(problem=tiny_problems(outer=2), seed=SEEDS, m=st.sampled_from([1, 3, 64, 100]))
def test_bound_and_energy_of_floats(problem: Problem, seed: int, m: int) -> None:
    problem = with_phi(problem, np.random.default_rng(seed), m)
    result = problem.solve()
    assert_certified(problem, result)
    # What is given away for the rounding of scalar products is little.
    exact = problem.dual(ArrayData(problem.costs(), problem.window))
    bound = max(exact.iterate() for _ in result.history)
    assert result.bound == pytest.approx(bound, abs=1e-3 * problem.image[..., 0].size)


@pytest.mark.parametrize("to", ["u", "v"])
@pytest.mark.parametrize("m", [3, 64, 300])
def test_messages_of_floats_are_rounded_down(m: int, to: Any) -> None:
    rng = np.random.default_rng(m)
    problem = with_phi(random_problem(rng, (15, 20), (-4, 8, -3, 7)), rng, m)
    data, scale = problem.data(), problem.arithmetic().scale
    data.use(problem.arithmetic())
    window = problem.window
    senders, receivers = (window.dv, window.du) if to == "u" else (window.du, window.dv)
    lam = rng.integers(-500_000, 500_000, (15, 20, senders)).astype(np.float32)
    sent = lam.astype(np.float64)
    sent = sent[:, :, None, :] if to == "u" else sent[:, :, :, None]
    exact = (problem.costs() * scale - sent).min(axis=3 if to == "u" else 2)
    for level in ("reference", *hamflow.isa_levels()):
        out = np.empty((15, 20, receivers), np.float32)
        at_level(level, lambda out=out: data.message(to, lam, out))
        assert (out == np.floor(out)).all()
        # Some units further down than need be, so that it holds for any order of the sums.
        assert (out <= exact).all()
        assert (out >= exact - 3 - (m + 2) * 2.0**-23 * data.largest * scale).all()


@settings(max_examples=30)
@given(
    problem=tiny_problems(),
    scale=st.sampled_from([1e-20, 1e-3, 30.0, 1e4]),
    seed=SEEDS,
)
def test_bound_of_floats_of_any_size(problem: Problem, scale: float, seed: int) -> None:
    problem = with_phi(problem, np.random.default_rng(seed))
    phi = {name: field * np.float32(scale) for name, field in problem.descriptors.items()}
    problem = replace(problem, descriptors=phi)
    assert_certified(problem, problem.solve())


@settings(max_examples=60)
@given(
    problem=tiny_problems(alpha=0.0, tau1=0.5, tau2=12.0, delta=2.0, c_outside=-3.5, outer=6),
)
def test_no_gap_means_the_best(problem: Problem) -> None:
    # Nothing is rounded here, so that all of it is exact.
    best = optimum(problem.model)
    assert optimum(problem.rounded) == best * problem.arithmetic().scale
    result = problem.solve()
    assert result.bound <= best <= result.energy
    if result.energy == result.bound:
        assert result.energy == best


def test_there_is_often_no_gap() -> None:
    # Or the test above would say nothing.
    config: dict[str, Any] = {"alpha": 0.0, "tau1": 0.5, "tau2": 12.0, "outer": 6}
    solved = [
        random_problem(np.random.default_rng(seed), (3, 3), (-1, 2, -1, 2), **config).solve()
        for seed in range(20)
    ]
    assert sum(result.gap == 0 for result in solved) > 10


@settings(max_examples=80)
@given(
    problem=tiny_problems(outer=2),
    kind=st.sampled_from(["small", "any", "extreme", "not finite"]),
    seed=SEEDS,
)
def test_any_initial_lam_gives_a_bound(problem: Problem, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (*problem.shape, problem.window.dv)
    dtype = problem.arithmetic().dtype
    lam: Any = rng.integers(-200, 200, shape)
    if kind == "any":
        lam = rng.integers(-32768, 32768, shape)
    elif kind == "extreme":
        lam = rng.choice([-32768, 32767], shape)
    lam = lam.astype(dtype)
    if kind == "not finite" and dtype is np.float32:
        lam[rng.random(shape) < 0.5] = np.nan
        lam[rng.random(shape) < 0.2] = np.inf
        lam[rng.random(shape) < 0.2] = -3e38
        lam[rng.random(shape) < 0.2] = 0.7
    kept = lam.copy()
    result = problem.solve(initial_lam=lam)
    assert_certified(problem, result)
    assert lam.tobytes() == kept.tobytes()


@settings(max_examples=40)
@given(problem=tiny_problems(), parameter=parameters())
def test_a_bound_of_another_model(problem: Problem, parameter: dict[str, Any]) -> None:
    # λ of a model with other parameters is only a poor start.
    other = problem.with_config(**parameter).with_config(arithmetic="float32")
    problem = problem.with_config(arithmetic="float32")
    assert_certified(problem, problem.solve(initial_lam=other.solve().lam_v))


# --- LP relaxations -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("minorant", ["sequential", "hierarchical"])
def test_the_bound_reaches_the_lp(seed: int, minorant: Any) -> None:
    """Method, invariant 6."""
    config = {"outer": 40, "inner": 8, "gap_tolerance": 0.0, "minorant": minorant}
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, (6, 7), (-1, 4, -1, 3), arithmetic="float32", **config)
    lp = decomposed_lp(problem.model)
    result = problem.solve()
    assert result.bound <= lp + LP
    assert result.bound >= lp - 0.001 * abs(lp)
    assert lp <= result.energy + LP
    for step in result.history:
        assert step.bound <= lp + LP
    # In int16 against the LP of the model with rounded weights.
    fixed = problem.with_config(arithmetic="int16")
    lp = decomposed_lp(fixed.rounded)
    bound = fixed.solve().bound * fixed.arithmetic().scale
    assert lp - 0.001 * abs(lp) <= bound <= lp + LP


@settings(max_examples=15)
@given(seed=SEEDS, parameter=parameters(outer=20, inner=4))
def test_the_bound_is_below_the_lp(seed: int, parameter: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, (6, 7), (-1, 3, -1, 2), "random", **parameter)
    assert problem.solve().bound <= decomposed_lp(problem.model) + LP


@settings(max_examples=40)
@given(problem=tiny_problems(outer=20, inner=5))
def test_relaxations_in_order(problem: Problem) -> None:
    """Ψ <= the decomposed model's LP <= the product model's LP <= the optimum."""
    decomposed, product = decomposed_lp(problem.model), product_lp(problem.model)
    best = optimum(problem.model)
    result = problem.solve()
    assert result.bound <= decomposed + LP
    assert decomposed <= product + LP
    assert product <= best + LP


def test_the_relaxations_differ() -> None:
    # Two neighbors that want to agree in u and in v, while one costs nothing where u = v and the
    # other where u != v. Halves of everything satisfy the decomposed relaxation.
    equal = np.array([[0.0, 60.0], [60.0, 0.0]])
    table = np.broadcast_to([0.0, 7.5], (1, 2, 2))
    model = Model(np.stack([equal, 60 - equal])[None], table, table)
    assert optimum(model) == 7.5
    assert product_lp(model) == pytest.approx(7.5, abs=LP)
    assert decomposed_lp(model) == pytest.approx(0, abs=LP)
    # The solver knows no more than its relaxation.
    rng = np.random.default_rng(0)
    problem = random_problem(rng, (1, 2), (0, 2, 0, 2), tau1=7.5, tau2=7.5, alpha=0.0)
    assert (problem.model.right[0, 0] == [0, 7.5]).all()
    dual = problem.dual(ArrayData(model.costs, problem.window))
    assert [dual.iterate() for _ in range(5)] == [0.0] * 5


@pytest.mark.parametrize("seed", range(10))
def test_tiny_problems_are_mostly_solved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, (2, 3), (-1, 2, -1, 3), outer=20, arithmetic="float32")
    best = optimum(problem.model)
    assert problem.solve().bound == pytest.approx(best, rel=0.01)
