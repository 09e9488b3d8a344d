"""Labels from the dual: relabeling, fusion, and the moves that spread good labels."""

from __future__ import annotations

import itertools
import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import hamflow
from _crf_problems import (
    LEVELS,
    SEEDS,
    Array,
    Model,
    Problem,
    problems,
    random_labels,
    random_problem,
    same_result,
    tiny_problems,
    usual,
)
from _crf_reference import energy
from _problems import THREADS, at_level, everywhere, random_bits, same_bytes, with_threads
from hamflow import Window, _native, crf
from hamflow.crf import CrfConfig
from hamflow.crf.data import Edges
from hamflow.crf.dual import Dual
from hamflow.crf.rounding import Primal, _moved_by


def is_in_block(shape: tuple[int, int], blocks: str, parity: int) -> Array:
    y, x = np.indices(shape)
    return {"rows": y, "columns": x, "pixels": x + y}[blocks] % 2 == parity


def lines_of(shape: tuple[int, int], blocks: str) -> list[list[tuple[int, int]]]:
    pixels = list(np.ndindex(shape))
    if blocks == "pixels":
        return [[pixel] for pixel in pixels]
    axis = 0 if blocks == "rows" else 1
    return [[p for p in pixels if p[axis] == i] for i in range(shape[axis])]


def best_of_line(model: Model, plane: str, line: list[tuple[int, int]], u: Array, v: Array) -> Any:
    """The least energy over all labels of one line of a plane, everything else as it is."""
    u, v = u.copy(), v.copy()
    labels, count = (u, model.costs.shape[2]) if plane == "u" else (v, model.costs.shape[3])
    best = None
    for choice in itertools.product(range(count), repeat=len(line)):
        for pixel, label in zip(line, choice, strict=True):
            labels[pixel] = label
        value = energy(model, u, v)
        best = value if best is None else min(best, value)
    return best


def edges_of(dual: Dual, plane: str) -> Edges:
    p = dual.planes[plane]  # type: ignore[index]
    return Edges(p.edges["horizontal"], p.edges["vertical"], p.reach)


@settings(max_examples=60)
@given(
    problem=tiny_problems(),
    plane=st.sampled_from(["u", "v"]),
    blocks=st.sampled_from(["rows", "columns", "pixels"]),
    seed=SEEDS,
)
def test_relabeling_is_exact(problem: Problem, plane: Any, blocks: Any, seed: int) -> None:
    data, dual = problem.data(), problem.dual()
    data.use(problem.arithmetic())
    before = random_labels(np.random.default_rng(seed), problem)
    for level in LEVELS:
        u, v = (labels.copy() for labels in before)
        at_level(level, lambda: data.relabel(plane, blocks, u, v, edges_of(dual, plane)))  # noqa: B023
        assert same_bytes(v, before[1]) if plane == "u" else same_bytes(u, before[0])
        if level == LEVELS[0]:
            first = u, v
        assert same_bytes(u, first[0])
        assert same_bytes(v, first[1])
    # The even lines were set with the odd ones as they had been, then the odd ones.
    even = is_in_block(problem.shape, blocks, 0)
    for parity, (u, v) in (
        (0, [np.where(even, new, old) for new, old in zip(first, before, strict=True)]),
        (1, list(first)),
    ):
        now = energy(problem.rounded, u, v)
        for line in lines_of(problem.shape, blocks):
            if is_in_block(problem.shape, blocks, parity)[line[0]]:
                assert now == best_of_line(problem.rounded, plane, line, u, v)


@settings(max_examples=60)
@given(problem=problems(), plane=st.sampled_from(["u", "v"]), seed=SEEDS)
def test_relabeling_never_raises_the_energy(problem: Problem, plane: Any, seed: int) -> None:
    data, dual = problem.data(), problem.dual()
    data.use(problem.arithmetic())
    u, v = random_labels(np.random.default_rng(seed), problem)
    before = energy(problem.rounded, u, v)
    for blocks in ("pixels", "rows", "columns"):
        data.relabel(plane, blocks, u, v, edges_of(dual, plane))  # type: ignore[arg-type]
        after = energy(problem.rounded, u, v)
        assert after <= before
        before = after


@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
@pytest.mark.parametrize("delta", [2.0, 6.0])
@pytest.mark.parametrize("plane", ["u", "v"])
@pytest.mark.parametrize("count", [15, 16, 63, 64, 127, 128, 129, 150])
def test_relabeling_with_many_labels(count: int, plane: Any, delta: float, arithmetic: Any) -> None:
    shape, window = (3, 160), (-count // 2, count, -1, 2)
    if plane == "v":
        shape, window = shape[::-1], (*window[2:], *window[:2])
    rng = np.random.default_rng(count)
    config = {"delta": delta, "arithmetic": arithmetic, "tau1": 1.0}
    problem = random_problem(rng, shape, window, **config)
    data, dual = problem.data(), problem.dual()
    data.use(problem.arithmetic())
    before = random_labels(rng, problem)
    for blocks in ("rows", "columns", "pixels"):

        def move(blocks: Any = blocks) -> tuple[Array, Array]:
            u, v = (labels.copy() for labels in before)
            data.relabel(plane, blocks, u, v, edges_of(dual, plane))
            return u, v

        expected = at_level("reference", move)
        assert energy(problem.rounded, *expected) < energy(problem.rounded, *before)
        for level in hamflow.isa_levels():
            labels = at_level(level, move)
            assert all(same_bytes(a, b) for a, b in zip(labels, expected, strict=True))


@pytest.mark.parametrize("window", [(-64, 128, -1, 2), (-1, 2, -75, 150), (-32, 64, 0, 1)])
@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
def test_many_labels_give_the_same_bytes_everywhere(
    window: tuple[int, int, int, int], arithmetic: Any
) -> None:
    shape = (12, 90) if window[1] > window[3] else (90, 12)
    config = {"arithmetic": arithmetic, "outer": 2, "inner": 2, "gap_tolerance": 0.0}
    problem = random_problem(np.random.default_rng(0), shape, window, **config)
    expected, *others = everywhere(problem.solve)
    assert len(np.unique(expected.flow.reshape(-1, 2), axis=0)) > 5
    assert all(same_result(result, expected) for result in others)


def fused(problem: Problem, first: Any, second: Any, blocks: str) -> tuple[Array, Array, Array]:
    model, weights = problem.model, problem.weights()
    data = [
        np.take_along_axis(
            np.take_along_axis(model.costs, u[:, :, None, None].astype(int), 2),
            v[:, :, None, None].astype(int),
            3,
        )[..., 0, 0].copy()
        for u, v in (first, second)
    ]
    u, v = (labels.copy() for labels in first)
    rho = crf.rho(problem.config, max(problem.window.du, problem.window.dv))
    _native.fuse(*weights, rho, blocks, u, v, data[0], *second, data[1])
    return u, v, data[0]


@settings(max_examples=60)
@given(problem=problems(), blocks=st.sampled_from(["rows", "columns"]), seed=SEEDS)
def test_fusion_is_exact(problem: Problem, blocks: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = random_labels(rng, problem), random_labels(rng, problem)
    model = problem.model
    u, v, data = fused(problem, first, second, blocks)
    took = (u == second[0]) & (v == second[1])
    assert (took | ((u == first[0]) & (v == first[1]))).all()
    for (y, x), cost in np.ndenumerate(data):
        assert cost == model.costs[y, x, u[y, x], v[y, x]]
    assert energy(model, u, v) <= energy(model, *first) + 1e-9
    for parity in (0, 1):
        # As above: even lines first.
        labels = [u.copy(), v.copy()]
        if parity == 0:
            odd = is_in_block(problem.shape, blocks, 1)
            for k in (0, 1):
                labels[k][odd] = first[k][odd]
        now = energy(model, *labels)
        for line in lines_of(problem.shape, blocks):
            if len(line) > 7 or not is_in_block(problem.shape, blocks, parity)[line[0]]:
                continue
            tried = [labels[0].copy(), labels[1].copy()]
            best = math.inf
            for choice in itertools.product((0, 1), repeat=len(line)):
                for pixel, which in zip(line, choice, strict=True):
                    for k in (0, 1):
                        tried[k][pixel] = (first, second)[which][k][pixel]
                best = min(best, energy(model, *tried))
            assert now == pytest.approx(best, abs=1e-9)


def test_fusion_for_every_number_of_threads() -> None:
    problem, rng = usual(6, (31, 40)), np.random.default_rng(0)
    first, second = random_labels(rng, problem), random_labels(rng, problem)
    for blocks in ("rows", "columns"):
        results = [
            with_threads(count, lambda b=blocks: fused(problem, first, second, b))
            for count in THREADS
        ]
        for result in results:
            assert all(same_bytes(a, b) for a, b in zip(result, results[0], strict=True))


@settings(max_examples=40)
@given(problem=problems(outer=4))
def test_roundings(problem: Problem) -> None:
    results = {
        rounding: problem.with_config(rounding=rounding).solve()
        for rounding in ("argmin", "icm", "rows", "chains")
    }
    for result in results.values():
        energies = [step.energy for step in result.history]
        assert energies == sorted(energies, reverse=True)
        assert result.energy == energies[-1] >= result.bound - 1e-9 * abs(result.bound)
        expected = energy(problem.model, result.u, result.v)
        assert result.energy == pytest.approx(expected, rel=1e-12, abs=1e-9)
    # The same dual for all, but for where one of them stops.
    for rounding in ("icm", "rows", "chains"):
        for step, plain in zip(results[rounding].history, results["argmin"].history, strict=False):
            assert step.bound == plain.bound
            assert step.energy <= plain.energy


def test_moves_help() -> None:
    energies = {
        rounding: sum(
            usual(seed, (12, 15), outer=1, inner=1, rounding=rounding).solve().energy
            for seed in range(6)
        )
        for rounding in ("argmin", "icm", "chains")
    }
    assert energies["chains"] < energies["icm"] < energies["argmin"]


def primal_of(problem: Problem, rounding: Any) -> Primal:
    """The solver's primal side, where nothing has been offered yet."""
    data, dual, window = problem.data(), problem.dual(), problem.window
    data.use(problem.arithmetic())
    edges: Any = {name: edges_of(dual, name) for name in ("u", "v")}
    rho = crf.rho(problem.config, max(window.du, window.dv))
    return Primal(data, problem.weights(), rho, edges, rounding)


@pytest.mark.parametrize("rounding", ["icm", "rows", "chains"])
def test_moves_that_only_seem_to_help_are_undone(rounding: Any) -> None:
    # In units of 1/64 the last pixel gains one by the target outside, and no edge costs anything.
    bits0 = np.array([[0, 2**64 - 1, 2**32 - 1]], np.uint64)
    bits1 = np.array([[0, 2**64 - 1, 0]], np.uint64)
    config = CrfConfig(tau1=0.01, tau2=0.01, c_outside=-0.005, arithmetic="int16")
    descriptors = {"bits0": bits0, "bits1": bits1}
    problem = Problem(descriptors, np.zeros((1, 3), np.uint8), Window(0, 2, 0, 1), config)
    assert (problem.rounded.right == 0).all()
    labels = np.zeros((1, 3), np.int16)
    moved = np.array([[0, 0, 1]], np.int16)
    assert energy(problem.rounded, moved, labels) < energy(problem.rounded, labels, labels)
    assert energy(problem.model, moved, labels) > energy(problem.model, labels, labels)
    primal = primal_of(problem, rounding)
    assert primal.offer(labels, labels) == -128
    assert primal.best is not None
    assert (primal.best.u == 0).all()


@pytest.mark.parametrize("turned", [False, True])
def test_good_labels_spread_along_rows_and_columns(turned: bool) -> None:
    # The middle one of three columns gains by the label of the first one, but only as a whole:
    # a pixel alone loses more by its edges up and down than its data gains.
    half = 2**32 - 1
    both = (2**15 - 1) | (2**15 - 1) << 32
    bits0 = np.array([[half, both, 0]] * 5, np.uint64)
    bits1 = np.array([[0, half, 0]] * 5, np.uint64)
    image = np.array([[0, 255, 0]] * 5, np.uint8)
    u, v = np.array([[1, 0, 0]] * 5, np.int16), np.zeros((5, 3), np.int16)
    window = Window(0, 2, 0, 1)
    if turned:
        bits0, bits1, image, u, v = (a.T.copy() for a in (bits0, bits1, image, v, u))
        window = Window(0, 1, 0, 2)
    config = CrfConfig(tau1=10.0, tau2=10.0, alpha=1000.0)
    problem = Problem({"bits0": bits0, "bits1": bits1}, image, window, config)
    primal = primal_of(problem, "argmin")
    before = primal.offer(u, v)
    assert primal.spread() == before - 20
    assert primal.best is not None
    labels = primal.best.v.T if turned else primal.best.u
    assert (labels == [1, 1, 0]).all()


def test_neighbors_labels() -> None:
    labels = np.arange(12, dtype=np.int16).reshape(3, 4)
    for shift, axis in itertools.product((1, -1), (0, 1)):
        expected = labels.copy()
        for y, x in np.ndindex(3, 4):
            at = [y, x]
            at[axis] = min(max(at[axis] - shift, 0), labels.shape[axis] - 1)
            expected[y, x] = labels[tuple(at)]
        assert same_bytes(_moved_by(labels, shift, axis), expected)


def test_solve_spreads_good_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [usual(seed, (12, 15), outer=2, inner=1, tau1=4.0) for seed in range(8)]
    energies = [problem.solve().energy for problem in problems]
    monkeypatch.setattr(Primal, "spread", lambda primal: primal.best.energy)
    without = [problem.solve().energy for problem in problems]
    assert all(a <= b for a, b in zip(energies, without, strict=True))
    assert sum(energies) < sum(without)


def test_the_last_step_spreads_good_labels() -> None:
    # A patch moves on a background at rest. The candidate knows its motion at one pixel only, and
    # no row or column of one plane alone gains by taking it over.
    rng = np.random.default_rng(0)
    bits1 = random_bits(rng, 9, 9)
    bits0 = bits1.copy()
    bits0[3:6, 3:6] = bits1[5:8, 5:8]
    descriptors = {"bits0": bits0, "bits1": bits1}
    config = CrfConfig(tau1=10.0, tau2=10.0)
    problem = Problem(descriptors, np.zeros((9, 9), np.uint8), Window(-2, 5, -2, 5), config)
    primal = primal_of(problem, "argmin")
    u, v = (np.full((9, 9), 2, np.int16) for _ in range(2))
    u[4, 4] = v[4, 4] = 4
    before = primal.offer(u, v)
    after = primal.spread()
    assert after < before
    assert primal.best is not None
    expected = np.full((9, 9), 2)
    expected[3:6, 3:6] = 4
    assert (primal.best.u == expected).all()
    assert (primal.best.v == expected).all()
