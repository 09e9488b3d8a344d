"""The dual of the joint model against plain numpy: every state, Ψ, messages, the bound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import hamflow
from _crf_problems import DIRECTIONS, Array, ArrayData, Problem, other, problems, usual, with_phi
from _crf_reference import Reference, along, chain_minima, psi
from _problems import brute_wta, nearest_argmin, same_bytes
from hamflow import Window, crf
from hamflow.crf import CrfConfig
from hamflow.crf.arithmetic import Arithmetic
from hamflow.crf.data import PhiData
from hamflow.crf.dual import Dual
from hamflow.matching import min_projection


def test_the_problems_are_not_trivial() -> None:
    problem = usual()
    result = problem.solve()
    assert len(np.unique(result.flow.reshape(-1, 2), axis=0)) > 1
    # Neither the data alone nor the smoothness alone decides.
    assert (result.flow != brute_wta(problem.costs(), problem.window)).any()
    assert 0 < result.gap < 0.1
    assert len(np.unique(problem.rounded.right)) > 20
    gaps = [usual(seed, outer=1, inner=1).solve().gap for seed in range(5)]
    assert max(gaps) > 0.01


# --- the dual, state by state ---------------------------------------------------------------------


def planes_in_use(window: Window) -> list[str]:
    """The plane of a single label has nothing to solve; if both have but one, u stands for both."""
    return [p for p, d in (("u", window.du), ("v", window.dv)) if d > 1] or ["u"]


def assert_same_states(problem: Problem) -> None:
    reference, dual = Reference(problem), problem.dual()
    arithmetic = problem.arithmetic()
    for _ in range(problem.config.outer):
        expected = reference.iterate()
        assert dual.iterate() * arithmetic.scale == expected
        for name in planes_in_use(problem.window):
            plane = dual.planes[name]  # type: ignore[index]
            assert plane.lam.dtype == plane.slack.dtype == arithmetic.dtype
            assert (plane.lam == reference.lam[name]).all()
            assert (plane.slack == reference.slack[name]).all()
    assert reference.psi() == expected


@settings(max_examples=120)
@given(problem=problems())
def test_equals_the_textbook(problem: Problem) -> None:
    assert_same_states(problem)


@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
@pytest.mark.parametrize("minorant", ["sequential", "hierarchical"])
@pytest.mark.parametrize("delta", [2.0, 5.0])
@pytest.mark.parametrize("schedule", [(1, 1), (5, 1), (3, 4), (2, 8)])
def test_equals_the_textbook_for_every_schedule(
    arithmetic: Any, minorant: Any, delta: float, schedule: tuple[int, int]
) -> None:
    outer, inner = schedule
    config = {"arithmetic": arithmetic, "minorant": minorant, "delta": delta, "tau1": 2.0}
    assert_same_states(usual(1, outer=outer, inner=inner, **config))


@pytest.mark.parametrize("c_outside", [1e4, -1e4, 2e5])
@pytest.mark.parametrize("tau2", [25.0, 3000.0, 1e5])
def test_equals_the_textbook_with_large_costs(c_outside: float, tau2: float) -> None:
    problem = usual(2, c_outside=c_outside, tau2=tau2, tau1=tau2 / 7, outer=3)
    assert problem.arithmetic().dtype is np.float32
    assert_same_states(problem)


@pytest.mark.parametrize("tau2", [25.0, 50.0, 60.0])
@pytest.mark.parametrize("c_outside", [-64.0, 64.0, 200.0])
@pytest.mark.parametrize("words", [1, 2])
def test_int16_holds_what_it_takes_on(tau2: float, c_outside: float, words: int) -> None:
    # Flat images and large weights: nothing is smaller than the range was made for.
    config = {"tau2": tau2, "tau1": tau2, "c_outside": c_outside, "arithmetic": "int16"}
    problem = usual(3, words=words, outer=6, **config)
    assert_same_states(replace(problem, image=np.zeros((9, 11), np.uint8)))


@settings(max_examples=25)
@given(problem=problems())
def test_a_result_is_the_last_state(problem: Problem) -> None:
    dual = problem.dual()
    result = problem.solve()
    bounds = [dual.iterate() for _ in result.history]
    assert [step.bound for step in result.history] == bounds
    assert result.bound == bounds[-1]
    assert same_bytes(result.slack_u, dual.planes["u"].slack)
    assert same_bytes(result.slack_v, dual.planes["v"].slack)
    assert same_bytes(result.lam_v, dual.planes["v"].lam)
    assert result.scale == problem.arithmetic().scale
    assert math.log2(result.scale).is_integer()
    # No further iteration only where there is nothing left to gain.
    assert len(bounds) == problem.config.outer or result.energy <= result.bound


@settings(max_examples=25)
@given(problem=problems())
def test_labels_by_argmin(problem: Problem) -> None:
    dual = problem.dual()
    for _ in range(problem.config.outer):
        dual.iterate()
        for name, first in (("u", problem.window.u0), ("v", problem.window.v0)):
            plane = dual.planes[name]  # type: ignore[index]
            expected = nearest_argmin(plane.slack, first) - first
            assert (plane.labels(first) == expected).all()


# --- Ψ, after every single step -------------------------------------------------------------------


class Watch:
    """Drives the solver's dual step by step and evaluates Ψ from its definition after each."""

    def __init__(self, problem: Problem) -> None:
        self.data = problem.data()
        self.dual = problem.dual(self.data)
        self.model, self.scale = problem.rounded, problem.arithmetic().scale
        # Of which direction `_hold` is: that of a pass that has not been, at first.
        self.held = {"u": "vertical", "v": "horizontal"}
        # What has not been written yet counts as 0, whatever is in its memory.
        self.sent, self.passed = {"v"}, set[str]()
        self.last: int | None = None

    def plane(self, name: str) -> Any:
        return self.dual.planes[name]  # type: ignore[index]

    def lam(self, name: str) -> Array:
        lam = self.plane(name).lam
        return (lam if name in self.sent else np.zeros_like(lam)).astype(np.int64)

    def hold(self, name: str) -> Array:
        hold = self.plane(name)._hold
        return (hold if name in self.passed else np.zeros_like(hold)).astype(np.int64)

    def psi(self) -> int:
        lam1, lam2 = (
            # One direction's chains have hold, the other's the rest of λ.
            self.hold(p) - self.lam(p) if self.held[p] == "horizontal" else -self.hold(p)
            for p in ("u", "v")
        )
        return psi(self.model, lam1, lam2, self.lam("u"), self.lam("v"))

    def never_falls(self) -> None:
        now = self.psi()
        assert self.last is None or now >= self.last
        self.last = now

    def message(self, to: str) -> None:
        self.data.message(to, self.plane(other(to)).lam, self.plane(to).lam)  # type: ignore[arg-type]
        self.sent.add(to)
        self.never_falls()

    def run_pass(self, name: str, direction: str, *, final: bool) -> None:
        assert self.held[name] == other(direction)
        plane, before = self.plane(name), self.lam(name)
        x = before - self.hold(name)
        bound = plane.run_pass(direction, final=final) * self.scale
        self.passed.add(name)
        s = x - self.hold(name)
        # All that the chains have is in s now, and is what Ψ was before the pass.
        assert bound == s.min(axis=2).sum() == self.last
        assert (chain_minima(along(self.hold(name), direction), self.edges(direction)) == 0).all()
        self.held[name] = direction
        if not final:
            assert (self.lam(name) == before).all()
            self.never_falls()
            return
        assert (plane.slack == s).all()
        assert (plane.lam == before - s).all()
        # λ := λ - s moves s from these chains to the costs, where its minima are the same.
        assert self.psi() == bound

    def edges(self, direction: str) -> Array:
        return self.model.edges(direction)


@settings(max_examples=60)
@given(problem=problems(tau2=25.0, outer=3))
def test_psi_never_falls(problem: Problem) -> None:
    watch = Watch(problem)
    watch.never_falls()
    start = "horizontal"
    for _ in range(problem.config.outer):
        for name, direction in (("u", start), ("v", other(start))):
            watch.message(name)
            along_chains = itertools.cycle([direction, other(direction)])
            for step in range(2 * problem.config.inner - 1):
                final = step == 2 * problem.config.inner - 2
                watch.run_pass(name, next(along_chains), final=final)
        start = other(start)


def steps_of(reference: Reference, outer: int) -> Iterator[tuple[int, int]]:
    """Yield (outer iteration, Ψ) after each step of the textbook's algorithm."""
    for iteration in range(outer):
        for name, first in (("u", 0), ("v", 1)):
            reference.message(name)
            yield iteration, reference.psi()
            reference.dmm(name, DIRECTIONS[(iteration + first) % 2])
            yield iteration, reference.psi()


@pytest.mark.parametrize("seed", range(5))
def test_the_printed_messages_lower_psi(seed: int) -> None:
    """Method, invariant 10: λ4 += min [c - λ3] is right only while λ4 = 0."""
    problem = usual(seed, outer=4)
    right = [value for _, value in steps_of(Reference(problem), 4)]
    assert right == sorted(right)
    literal = list(steps_of(Reference(problem, literal=True), 4))
    first = [value for iteration, value in literal if iteration == 0]
    assert first == right[: len(first)]
    falls = [after[0] for before, after in itertools.pairwise(literal) if after[1] < before[1]]
    assert min(falls) == 1
    assert max(value for iteration, value in literal if iteration > 0) < right[-1]


# --- messages between the planes ------------------------------------------------------------------


@settings(max_examples=25)
@given(problem=problems(c_outside=0.0))
def test_the_first_message_is_the_min_projection(problem: Problem) -> None:
    data, dual = problem.data(), problem.dual()
    data.use(problem.arithmetic())
    projection = min_projection(*problem.descriptors.values(), problem.window)
    for to, distances in (("u", projection.cu), ("v", projection.cv)):
        sent, lam = (np.zeros_like(dual.planes[p].lam) for p in (other(to), to))  # type: ignore[index]
        data.message(to, sent, lam)  # type: ignore[arg-type]
        assert (lam == (2.0 * distances - problem.m) * problem.arithmetic().scale).all()


@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
@pytest.mark.parametrize("minorant", ["sequential", "hierarchical"])
def test_a_constant_moves_the_bound_alone(arithmetic: Any, minorant: Any) -> None:
    """Method, invariant 7."""
    problem = usual(4, arithmetic=arithmetic, minorant=minorant)
    before = problem.dual()
    moved = problem.costs()
    moved[3, 5] += 11.5
    moved[0, 0] -= 20
    after = problem.dual(ArrayData(moved, problem.window))
    same = problem.dual(ArrayData(problem.costs(), problem.window))
    for _ in range(4):
        bound = before.iterate()
        assert same.iterate() == bound
        assert after.iterate() == bound - 8.5
        for name in ("u", "v"):
            labels = before.planes[name].labels(-3)  # type: ignore[index]
            assert same_bytes(after.planes[name].labels(-3), labels)  # type: ignore[index]


@pytest.mark.parametrize("rounding", ["argmin", "icm", "chains"])
def test_a_constant_in_the_bits(rounding: Any) -> None:
    # One bit that no target has adds 2 wherever all of the window is inside.
    problem = usual(5, rounding=rounding)
    bits0, bits1 = (bits & np.uint64(2**63 - 1) for bits in problem.descriptors.values())
    more = bits0.copy()
    more[4, 5] |= np.uint64(2**63)
    before = replace(problem, descriptors={"bits0": bits0, "bits1": bits1}).solve()
    after = replace(problem, descriptors={"bits0": more, "bits1": bits1}).solve()
    assert after.bound == before.bound + 2
    assert after.energy == pytest.approx(before.energy + 2, abs=1e-9)
    assert same_bytes(after.flow, before.flow)


def test_the_bound_never_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    # Messages of floats give away a little, which may show when there is nothing left to gain.
    problem = with_phi(usual(0, (3, 4), outer=4), np.random.default_rng(0))
    bounds = [step.bound for step in problem.solve().history]
    iterate, less = Dual.iterate, iter([0.0, 0.0, 30.0, 40.0])
    monkeypatch.setattr(Dual, "iterate", lambda dual, told: iterate(dual, told) - next(less))
    result = problem.solve()
    assert [step.bound for step in result.history] == [bounds[0], *[bounds[1]] * 3]
    assert result.bound == bounds[1]


def test_the_bound_of_floats_hardly_falls() -> None:
    """Bits are held to the last bit elsewhere; a float message may round by a unit and pixel."""
    rng = np.random.default_rng(5)
    phi0, phi1 = (rng.uniform(-1, 1, (6, 7, 16)).astype(np.float32) for _ in range(2))
    config = CrfConfig(inner=2)
    data = PhiData(phi0, phi1, hamflow.Window(-2, 5, -2, 4), 0.0)
    arithmetic = Arithmetic.choose(config, data.largest, floats=True)
    data.use(arithmetic)
    dual = Dual(data, config, arithmetic, crf.edge_weights(rng.random((6, 7, 3)), config.alpha))
    bounds = [dual.iterate() for _ in range(12)]
    assert (np.diff(bounds) >= -phi0.shape[0] * phi0.shape[1] / arithmetic.scale).all()
    assert bounds[-1] > bounds[0]
