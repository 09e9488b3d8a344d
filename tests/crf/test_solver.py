"""The solver of the joint model against plain numpy: its dual, its messages, its labels."""

from __future__ import annotations

import itertools
import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

import hamflow
from _crf_reference import (
    DIRECTIONS,
    KINDS,
    SEEDS,
    ArrayData,
    Model,
    Problem,
    Reference,
    along,
    chain_minima,
    energy,
    other,
    parameters,
    psi,
    random_problem,
    rho_of,
    tiny_problems,
    with_phi,
)
from _problems import (
    THREADS,
    at_level,
    brute_wta,
    everywhere,
    nearest_argmin,
    random_bits,
    same_bytes,
    with_threads,
)
from hamflow import FileError, InputError, Window, _native, crf, pair_bits
from hamflow.crf import CrfConfig, CrfResult, CrfStep
from hamflow.crf.arithmetic import Arithmetic
from hamflow.crf.data import PhiData
from hamflow.crf.dual import Dual
from hamflow.crf.rounding import Primal, _moved_by
from hamflow.matching import min_projection

Array = NDArray[Any]
LEVELS = ("reference", *hamflow.isa_levels())

SIZES = ((1, 1), (1, 9), (8, 1), (2, 2), (3, 5), (6, 7))
WINDOWS = (
    (-2, 4, -1, 3),
    (-1, 2, -2, 5),
    (0, 1, 0, 1),
    (-4, 7, 0, 1),  # stereo
    (0, 1, -1, 3),
    (-9, 17, -1, 2),
    (-1, 2, -16, 33),
    (40, 3, -2, 4),  # every target outside
    (-(1 << 24), 2, 1 << 24, 3),
)
IMAGES = ("rgb", "gray", "float", "uint16")


def other_image(image: Array, kind: str) -> Array:
    """The same contrasts in another type."""
    if kind == "gray":
        return image[:, :, 0].copy()
    if kind == "float":
        return image / 255
    return image.astype(np.uint16) * 257 if kind == "uint16" else image


@st.composite
def problems(draw: st.DrawFn, **fixed: Any) -> Problem:
    """Sizes and windows of every kind, too large to look at all labelings."""
    rng = np.random.default_rng(draw(SEEDS))
    shape, window = draw(st.sampled_from(SIZES)), draw(st.sampled_from(WINDOWS))
    kind = draw(st.sampled_from(KINDS))
    problem = random_problem(rng, shape, window, kind, **draw(parameters(**fixed)))
    return replace(problem, image=other_image(problem.image, draw(st.sampled_from(IMAGES))))


def usual(seed: int = 0, shape: tuple[int, int] = (9, 11), **config: Any) -> Problem:
    """A problem with some structure, for which the solver has something to do."""
    settings = {"gap_tolerance": 0.0, **config}
    return random_problem(np.random.default_rng(seed), shape, (-3, 6, -2, 5), **settings)


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


# --- the model -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 5, 3), (4, 5), (1, 5), (5, 1), (1, 1, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float16, np.float32, np.float64])
def test_edge_weights(shape: tuple[int, ...], dtype: Any) -> None:
    unit = np.random.default_rng(0).random(shape)
    largest = 1.0
    if np.issubdtype(dtype, np.integer):
        largest = float(np.iinfo(dtype).max)
    image = (unit * largest).astype(dtype)
    right, down = crf.edge_weights(image, 3.0)
    pixels = (image.astype(np.float64) / largest).reshape(*shape[:2], -1)
    for (y, x), weight in np.ndenumerate(right):
        expected = 0.0
        if x + 1 < shape[1]:
            expected = math.exp(-3 * abs(pixels[y, x] - pixels[y, x + 1]).mean())
        assert weight == pytest.approx(expected, rel=1e-6)
    for (y, x), weight in np.ndenumerate(down):
        expected = 0.0
        if y + 1 < shape[0]:
            expected = math.exp(-3 * abs(pixels[y, x] - pixels[y + 1, x]).mean())
        assert weight == pytest.approx(expected, rel=1e-6)
    assert right.dtype == down.dtype == np.float32


def test_flat_images_have_weights_of_one() -> None:
    right, down = crf.edge_weights(np.full((3, 4), 77, np.uint8), 8.5)
    assert (right == [[1, 1, 1, 0]] * 3).all()
    assert (down == [[1] * 4, [1] * 4, [0] * 4]).all()


@pytest.mark.parametrize("delta", [2.0, 2.5, 3.0, 3.01, 7.0, 100.0])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_rho(delta: float, count: int) -> None:
    config = CrfConfig(tau1=1.5, tau2=20.0, delta=delta)
    assert crf.rho(config, count).tolist() == pytest.approx(
        [rho_of(config, t) for t in range(count)], rel=1e-14
    )


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
def test_int16_holds_what_it_takes_on(tau2: float, c_outside: float) -> None:
    # Flat images and large weights: nothing is smaller than the range was made for.
    problem = usual(3, tau2=tau2, tau1=tau2, c_outside=c_outside, outer=6, arithmetic="int16")
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
        self.last: int | None = None

    def plane(self, name: str) -> Any:
        return self.dual.planes[name]  # type: ignore[index]

    def lam(self, name: str) -> Array:
        return self.plane(name).lam.astype(np.int64)

    def hold(self, name: str) -> Array:
        return self.plane(name)._hold.astype(np.int64)

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
        self.never_falls()

    def run_pass(self, name: str, direction: str, *, final: bool) -> None:
        assert self.held[name] == other(direction)
        plane, before = self.plane(name), self.lam(name)
        x = before - self.hold(name)
        bound = plane.run_pass(direction, final=final) * self.scale
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
        assert (lam == (2.0 * distances - 64) * problem.arithmetic().scale).all()


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


# --- weights of 0 ---------------------------------------------------------------------------------


def without_weights(problem: Problem, how: str) -> Problem:
    if how == "tau":
        return problem.with_config(tau1=0.0, tau2=0.0)
    y, x = np.indices(problem.shape)
    board = ((x + y) % 2 * 255).astype(np.uint8)
    return replace(problem, image=board).with_config(alpha=1e6)


@settings(max_examples=40)
@given(problem=problems(), how=st.sampled_from(["tau", "alpha"]))
def test_without_weights_the_data_decides(problem: Problem, how: str) -> None:
    """Method, invariant 8."""
    problem = without_weights(problem, how)
    costs = problem.costs()
    least = costs.min(axis=(2, 3))
    result = problem.solve()
    scale = result.scale
    assert result.bound == np.floor(least * scale).sum() / scale
    if problem.config.rounding != "argmin":  # which may mix two minima of one pixel
        assert result.energy == pytest.approx(least.sum(), abs=1e-9)


def test_without_weights_winner_takes_all() -> None:
    rng = np.random.default_rng(0)
    problem = without_weights(random_problem(rng, (7, 8), (-1, 3, -2, 4), "random"), "tau")
    costs = problem.costs()
    unique = (costs == costs.min(axis=(2, 3), keepdims=True)).sum(axis=(2, 3)) == 1
    assert unique.mean() > 0.5
    for rounding in ("argmin", "icm", "chains"):
        flow = problem.with_config(rounding=rounding).solve().flow
        assert (flow == brute_wta(costs, problem.window))[unique].all()


# --- known answers --------------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", ["argmin", "icm", "chains"])
@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
@pytest.mark.parametrize("kind", ["random", "flat", "pairs", "phi"])
def test_identical_frames(kind: str, rounding: Any, arithmetic: Any) -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (15, 18, 3)).astype(np.uint8)
    fields = {
        "random": random_bits(rng, 15, 18),
        "flat": np.zeros((15, 18), np.uint64),
        "pairs": pair_bits(image),
        "phi": rng.uniform(-1, 1, (15, 18, 8)).astype(np.float32),
    }
    name = "phi" if kind == "phi" else "bits"
    if kind == "phi":  # each pixel is its own best match
        fields["phi"] /= np.linalg.norm(fields["phi"], axis=2, keepdims=True)
        arithmetic = "auto"
    config = CrfConfig(rounding=rounding, arithmetic=arithmetic)
    same = {f"{name}0": fields[kind], f"{name}1": fields[kind].copy()}
    for window in (8, (-3, 7, -5, 9), (-2, 3, 0, 1)):
        result = crf.solve(**same, image=image, window=window, config=config)
        assert (result.flow == 0).all()
        assert result.flow.dtype == np.float32


@pytest.mark.parametrize("motion", [(3, 0), (-2, 1), (0, -4), (5, 5)])
@pytest.mark.parametrize("minorant", ["sequential", "hierarchical"])
def test_a_moved_frame(motion: tuple[int, int], minorant: Any) -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (40, 50, 3)).astype(np.uint8)
    moved = np.roll(image, motion[::-1], axis=(0, 1))
    result = crf.solve(
        bits0=pair_bits(image),
        bits1=pair_bits(moved),
        image=image,
        window=16,
        config=CrfConfig(minorant=minorant),
    )
    assert (result.flow[12:-12, 12:-12] == motion).all()


# --- labels --------------------------------------------------------------------------------------


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


def random_labels(rng: np.random.Generator, problem: Problem) -> tuple[Array, Array]:
    window = problem.window
    return tuple(  # type: ignore[return-value]
        rng.integers(0, count, problem.shape).astype(np.int16) for count in (window.du, window.dv)
    )


def edges_of(dual: Dual, plane: str) -> tuple[Array, Array, int]:
    p = dual.planes[plane]  # type: ignore[index]
    return p.edges["horizontal"], p.edges["vertical"], p.reach


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
        for rounding in ("argmin", "icm", "chains")
    }
    for result in results.values():
        energies = [step.energy for step in result.history]
        assert energies == sorted(energies, reverse=True)
        assert result.energy == energies[-1] >= result.bound - 1e-9 * abs(result.bound)
        expected = energy(problem.model, result.u, result.v)
        assert result.energy == pytest.approx(expected, rel=1e-12, abs=1e-9)
    # The same dual for all, but for where one of them stops.
    for rounding in ("icm", "chains"):
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


@pytest.mark.parametrize("rounding", ["icm", "chains"])
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


# --- the same bytes everywhere --------------------------------------------------------------------


def same_result(a: CrfResult, b: CrfResult) -> bool:
    arrays = ("u", "v", "slack_u", "slack_v", "lam_v")
    numbers = ("bound", "energy", "gap", "scale")
    return all(same_bytes(getattr(a, name), getattr(b, name)) for name in arrays) and all(
        getattr(a, name) == getattr(b, name) for name in numbers
    )


@settings(max_examples=40)
@given(problem=problems())
def test_bits_give_the_same_bytes_everywhere(problem: Problem) -> None:
    expected = at_level("reference", problem.solve)
    for result in everywhere(problem.solve):
        assert same_result(result, expected)


@pytest.mark.parametrize("rounding", ["icm", "chains"])
@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
@pytest.mark.parametrize(
    ("window", "delta"), [(16, 2.0), ((-20, 40, -5, 9), 2.0), ((-20, 40, 0, 1), 6.0)]
)
def test_larger_problems_give_the_same_bytes_everywhere(
    rounding: Any, arithmetic: Any, window: Any, delta: float
) -> None:
    rng = np.random.default_rng(0)
    config = {"rounding": rounding, "arithmetic": arithmetic, "delta": delta, "outer": 2}
    problem = random_problem(rng, (21, 34), Window.of(window), tau1=1.0, inner=2, **config)
    expected = at_level("reference", problem.solve)
    assert len(np.unique(expected.u)) > 1
    for result in everywhere(problem.solve):
        assert same_result(result, expected)


BETWEEN_LEVELS = 1e-3
"""Most that bound and energy may differ between levels for each pixel, for costs of about ±100."""


@pytest.mark.parametrize("m", [1, 7, 64])
@pytest.mark.parametrize("rounding", ["argmin", "icm", "chains"])
def test_floats_give_the_same_bytes_for_every_number_of_threads(m: int, rounding: Any) -> None:
    problem = with_phi(usual(m, (14, 19), rounding=rounding), np.random.default_rng(m), m)
    results = {}
    for level in LEVELS:
        result = at_level(level, problem.solve)
        results[level] = result
        assert result.slack_u.dtype == np.float32
        for volume in (result.slack_u, result.slack_v, result.lam_v):
            assert (volume == np.floor(volume)).all()
        for count in THREADS:
            again = at_level(level, lambda n=count: with_threads(n, problem.solve))
            assert same_result(again, result)
    tolerance = BETWEEN_LEVELS * 14 * 19
    expected = results["reference"]
    for result in results.values():
        assert result.bound == pytest.approx(expected.bound, abs=tolerance)
        assert result.energy == pytest.approx(expected.energy, rel=0.01)


def test_the_bound_never_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    # Messages of floats give away a little, which may show when there is nothing left to gain.
    problem = with_phi(usual(0, (3, 4), outer=4), np.random.default_rng(0))
    bounds = [step.bound for step in problem.solve().history]
    iterate, less = Dual.iterate, iter([0.0, 0.0, 30.0, 40.0])
    monkeypatch.setattr(Dual, "iterate", lambda dual: iterate(dual) - next(less))
    result = problem.solve()
    assert [step.bound for step in result.history] == [bounds[0], *[bounds[1]] * 3]
    assert result.bound == bounds[1]


@pytest.mark.parametrize("seed", range(4))
def test_signs_as_floats_are_bits(seed: int) -> None:
    problem = usual(seed, arithmetic="float32", outer=2)
    signs = {
        f"phi{i}": (2.0 * np.unpackbits(bits[..., None].view(np.uint8), axis=2) - 1).astype(
            np.float32
        )
        for i, bits in enumerate(problem.descriptors.values())
    }
    floats = replace(problem, descriptors=signs)
    assert (floats.costs() == problem.costs()).all()
    expected, result = problem.solve(), floats.solve()
    assert result.scale == expected.scale
    # Every message of floats is rounded down by a few units more, to be sure.
    assert expected.bound - 0.02 * problem.image[..., 0].size <= result.bound <= expected.bound
    assert result.energy == pytest.approx(expected.energy, rel=1e-3)


# --- arithmetic ----------------------------------------------------------------------------------


def test_the_arithmetic_is_chosen() -> None:
    small = usual()
    assert small.solve().slack_u.dtype == np.int16
    assert small.with_config(arithmetic="float32").solve().slack_u.dtype == np.float32
    large = small.with_config(c_outside=1e4)
    assert large.solve().slack_u.dtype == np.float32
    assert large.solve().slack_u.dtype == large.solve().lam_v.dtype
    for changes in ({"c_outside": 1e4}, {"c_outside": -1e4}, {"tau2": 1e4}):
        with pytest.raises(InputError, match=r"'int16' cannot hold costs up to .*; use 'auto'"):
            small.with_config(arithmetic="int16", **changes).solve()


@pytest.mark.parametrize("c_outside", [0.0, -64.0, 64.0, 333.3, 1e4])
@pytest.mark.parametrize("tau2", [0.0, 25.0, 50.0, 400.0])
def test_nothing_can_overflow(c_outside: float, tau2: float) -> None:
    problem = usual(c_outside=c_outside, tau2=tau2, tau1=0.0)
    arithmetic = problem.arithmetic()
    most = 32767 if arithmetic.dtype is np.int16 else 2**22
    assert arithmetic.scale * (2 * max(64, abs(c_outside)) + 6 * tau2) <= most
    result = problem.solve()
    for volume in (result.slack_u, result.slack_v, result.lam_v):
        assert abs(volume.astype(np.float64)).max() <= most
        assert (volume == np.floor(volume)).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"tau2": 1e308},
        {"c_outside": -1e308},
        {"tau2": 1e60},
        {"c_outside": 1e60},
        {"c_outside": 1e9},
        {"tau2": 1e8},
        {"c_outside": 5e5, "tau2": 5e5},
        {"c_outside": -5e5, "tau2": 5e5},
    ],
)
def test_absurd_parameters(changes: dict[str, float]) -> None:
    """Refused, or solved with a bound that holds at every level."""
    try:
        problem = random_problem(np.random.default_rng(1), (2, 3), (-1, 3, 0, 2), **changes)
        results = [at_level(level, problem.solve) for level in LEVELS]
    except InputError:
        return
    for result in results:
        assert same_result(result, results[0])
        assert result.bound <= result.energy


def test_alpha_beyond_float32() -> None:
    right, _ = crf.edge_weights(np.array([[0, 0, 255]], np.uint8), 1e39)
    assert right.tolist() == [[1, 0, 0]]


def test_descriptors_of_zeros() -> None:
    phi = np.zeros((2, 3, 4), np.float32)
    config = CrfConfig(tau1=0, tau2=0)
    result = crf.solve(
        phi0=phi, phi1=phi, image=np.zeros((2, 3)), window=(-1, 2, 0, 2), config=config
    )
    assert result.energy == 0
    assert -0.1 < result.bound <= 0


# --- starting from something ----------------------------------------------------------------------


@settings(max_examples=40)
@given(problem=problems(), seed=SEEDS)
def test_initial_labels(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain = problem.solve()
    for labels in (random_labels(rng, problem), (plain.u, plain.v)):
        kept = [array.copy() for array in labels]
        result = problem.solve(initial_labels=labels)
        assert result.energy <= energy(problem.model, *labels) + 1e-9
        assert result.history[0].bound == plain.history[0].bound
        # They are only read.
        assert all(same_bytes(a, b) for a, b in zip(labels, kept, strict=True))


def test_good_initial_labels_are_kept() -> None:
    problem = usual(7)
    best = problem.with_config(outer=20, inner=5).solve()
    poor = problem.with_config(outer=1, inner=1, rounding="argmin")
    assert poor.solve().energy > best.energy
    result = poor.solve(initial_labels=(best.u, best.v))
    assert result.energy == pytest.approx(best.energy, rel=1e-12)
    assert same_bytes(result.u, best.u)
    assert same_bytes(result.v, best.v)


def test_a_result_has_arrays_of_its_own() -> None:
    problem = usual(7, outer=1, inner=1, rounding="argmin")
    best = problem.with_config(outer=20, inner=5).solve()
    result = problem.solve(initial_labels=(best.u, best.v))
    assert same_bytes(result.u, best.u)
    assert not np.shares_memory(result.u, best.u)


@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
def test_a_warm_start(arithmetic: Any) -> None:
    for seed in range(5):
        problem = usual(seed, arithmetic=arithmetic, outer=3)
        cold = problem.solve()
        warm = problem.solve(initial_lam=cold.lam_v)
        assert warm.history[0].bound > cold.history[0].bound
        assert warm.bound > cold.bound - 0.001 * abs(cold.bound)
        # The array is only read.
        again = problem.solve()
        assert same_bytes(again.lam_v, cold.lam_v)


def test_a_start_between_whole_numbers() -> None:
    problem = usual(8, arithmetic="float32")
    rng = np.random.default_rng(0)
    lam = rng.uniform(-3000, 3000, (*problem.shape, problem.window.dv)).astype(np.float32)
    results = [at_level(level, lambda: problem.solve(initial_lam=lam)) for level in LEVELS]
    for result in results:
        assert same_result(result, results[0])
        assert (result.slack_u == np.floor(result.slack_u)).all()
    # As from the whole numbers below.
    assert same_result(problem.solve(initial_lam=np.floor(lam)), results[0])


# --- stopping ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [0.05, 0.01, 0.002])
@pytest.mark.parametrize("rounding", ["argmin", "chains"])
def test_the_gap_stops(tolerance: float, rounding: Any) -> None:
    lengths = set()
    for seed in range(6):
        problem = usual(seed, outer=12, inner=1, rounding=rounding)
        full = [step.gap for step in problem.solve().history]
        early = problem.with_config(gap_tolerance=tolerance).solve()
        gaps = [step.gap for step in early.history]
        lengths.add(len(gaps))
        assert all(gap > tolerance for gap in gaps[:-1])
        assert gaps[-1] <= tolerance or len(gaps) == 12
        assert gaps[:-1] == full[: len(gaps) - 1]
        assert early.gap == gaps[-1]
    assert len(lengths) > 1 or lengths == {12}


def test_the_gap() -> None:
    assert CrfStep(1, -200.0, -199.0, 0.1).gap == pytest.approx(0.005)
    assert CrfStep(1, 200.0, 210.0, 0.1).gap == pytest.approx(0.05)
    assert CrfStep(1, 0.0, 0.0, 0.1).gap == 0
    assert CrfStep(1, 0.0, 1.0, 0.1).gap == math.inf


@settings(max_examples=25)
@given(problem=problems(outer=4))
def test_the_callback_sees_every_step(problem: Problem) -> None:
    steps: list[CrfStep] = []
    start = time.perf_counter()
    result = problem.solve(callback=steps.append)
    end = time.perf_counter()
    assert tuple(steps) == result.history
    assert [step.iteration for step in steps] == list(range(1, len(steps) + 1))
    for before, after in itertools.pairwise(steps):
        assert before.seconds <= after.seconds
        assert before.bound <= after.bound
        assert before.energy >= after.energy
    assert steps[0].seconds > 0
    assert steps[-1].seconds <= end - start
    assert (result.bound, result.energy, result.gap) == (
        steps[-1].bound,
        steps[-1].energy,
        steps[-1].gap,
    )


def test_the_callback_can_stop() -> None:
    problem = usual(outer=10)
    seen = []

    class Enough(Exception):  # noqa: N818
        pass

    def callback(step: CrfStep) -> None:
        seen.append(step)
        if step.iteration == 2:
            raise Enough

    with pytest.raises(Enough):
        problem.solve(callback=callback)
    assert len(seen) == 2
    assert problem.solve().history[0].bound == seen[0].bound


# What starts the tests may have told them to ignore Ctrl-C, which children inherit.
INTERRUPTED = """
import signal, sys, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)
from hamflow import crf, set_num_threads
set_num_threads(int(sys.argv[1]))
bits = np.random.default_rng(0).integers(0, 2**64, (200, 300), np.uint64)
other = np.random.default_rng(1).integers(0, 2**64, (200, 300), np.uint64)
image = np.random.default_rng(2).integers(0, 256, (200, 300, 3)).astype(np.uint8)
config = crf.CrfConfig(outer=10_000, gap_tolerance=0)
def started(step):
    if step.iteration == 1:
        print("started", flush=True)
try:
    crf.solve(bits0=bits, bits1=other, image=image, window=32, config=config, callback=started)
    print("finished")
except KeyboardInterrupt:
    print("interrupted", flush=True)
bits, image = bits[:30, :40].copy(), image[:30, :40].copy()
print((crf.solve(bits0=bits, bits1=bits, image=image, window=8).flow == 0).all(), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
@pytest.mark.parametrize("count", ["1", "2"])
def test_ctrl_c(count: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, count]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "started\n"
            process.send_signal(signal.SIGINT)
            sent = time.monotonic()
            assert process.stdout.readline() == "interrupted\n"
            assert time.monotonic() - sent < 5
            assert process.stdout.readline() == "True\n"
            assert process.wait(30) == 0
        finally:
            process.kill()


# --- what is refused ------------------------------------------------------------------------------

BITS = np.zeros((5, 6), np.uint64)
PHI = np.zeros((5, 6, 4), np.float32)
IMAGE = np.zeros((5, 6, 3), np.uint8)
GOOD: dict[str, Any] = {"bits0": BITS, "bits1": BITS, "image": IMAGE, "window": 4}


def labels_with(value: int) -> Array:
    labels = np.zeros((5, 6), np.int16)
    labels[2, 3] = value
    return labels


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bits1": None}, r"either bits0 and bits1, or phi0 and phi1"),
        ({"bits0": None, "bits1": None}, r"either bits0 and bits1, or phi0 and phi1"),
        ({"phi0": PHI, "phi1": PHI}, r"either bits0 and bits1, or phi0 and phi1"),
        ({"phi0": PHI}, r"either bits0 and bits1, or phi0 and phi1"),
        ({"bits1": None, "phi1": PHI}, r"either bits0 and bits1, or phi0 and phi1"),
        ({"bits0": BITS.astype(np.int64)}, r"bits0 must be of type uint64, not int64"),
        ({"bits1": BITS[:, 1:].copy()}, r"bits0 and bits1 must have one shape"),
        ({"bits0": BITS[None]}, r"bits0 must have 2 axes"),
        ({"bits0": BITS.tolist()}, r"bits0 must be a numpy array, not list"),
        ({"bits0": BITS[:, ::2]}, r"bits0 is not contiguous"),
        ({"bits0": BITS[:0], "bits1": BITS[:0]}, r"at least one element"),
        ({"image": IMAGE[1:]}, r"size of the descriptors, 6×5, but is 6×4"),
        ({"image": IMAGE.swapaxes(0, 1)}, r"size of the descriptors, 6×5, but is 5×6"),
        ({"image": IMAGE[..., :2]}, r"image must have the shape"),
        ({"image": None}, r"image must have the shape"),
        ({"image": np.full((5, 6), np.nan)}, r"values from 0 to 1"),
        ({"image": np.full((5, 6), 255.0)}, r"values from 0 to 1"),
        ({"image": np.full((5, 6), -0.1)}, r"values from 0 to 1"),
        ({"image": IMAGE.astype(np.int32)}, r"uint8, uint16 or floating point, but is int32"),
        ({"image": IMAGE.astype(bool)}, r"uint8, uint16 or floating point, but is bool"),
        ({"window": 3}, r"even number"),
        ({"window": 0}, r"even number"),
        ({"window": (0, 0, 0, 1)}, r"du must be from 1"),
        ({"window": (0, 1, 0)}, r"four numbers"),
        ({"window": None}, r"whole number"),
        ({"initial_labels": (labels_with(4), labels_with(0))}, r"initial_labels .* 0 to 3"),
        ({"initial_labels": (labels_with(0), labels_with(-1))}, r"initial_labels .* 0 to 3"),
        (
            {"initial_labels": (labels_with(0).astype(int), labels_with(0))},
            r"initial_labels\[0\] must be of type int16",
        ),
        (
            {"initial_labels": (labels_with(0), labels_with(0)[1:])},
            r"initial_labels\[1\] must have the shape \(5, 6\)",
        ),
        ({"initial_lam": np.zeros((5, 6, 3), np.int16)}, r"initial_lam must have the shape"),
        ({"initial_lam": np.zeros((5, 6, 4), np.float32)}, r"initial_lam is of type float32"),
        ({"initial_lam": np.zeros((5, 6), np.int16)}, r"initial_lam must have 3 axes"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], sentence: str) -> None:
    crf.solve(**GOOD)
    with pytest.raises(InputError, match=sentence) as error:
        crf.solve(**GOOD | changes)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e20])
def test_bad_floats(value: float) -> None:
    phi = PHI.copy()
    phi[1, 2, 3] = value
    with pytest.raises(InputError, match="phi1 has values"):
        crf.solve(phi0=PHI, phi1=phi, image=IMAGE, window=4)


def test_floats_need_float32() -> None:
    config = CrfConfig(arithmetic="int16")
    with pytest.raises(InputError, match="'int16' needs bits"):
        crf.solve(phi0=PHI, phi1=PHI, image=IMAGE, window=4, config=config)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("alpha", -1.0, "alpha must not be negative"),
        ("tau1", -0.1, "tau1 must not be negative"),
        ("gap_tolerance", -1e-9, "gap_tolerance must not be negative"),
        ("tau2", 0.2, "tau2 must be at least tau1, but 0.2 < 0.25"),
        ("delta", 1.99, "delta must be at least 2"),
        ("kappa", -0.01, "kappa must be from 0 to 1"),
        ("kappa", 1.01, "kappa must be from 0 to 1"),
        ("outer", 0, "outer must be at least 1"),
        ("inner", -3, "inner must be at least 1"),
        ("outer", 2.5, "outer must be a whole number, not 2.5"),
        ("inner", None, "inner must be a whole number, not None"),
        ("minorant", "tree", "minorant must be one of 'sequential', 'hierarchical', not 'tree'"),
        ("rounding", None, "rounding must be one of 'argmin', 'icm', 'chains', not None"),
        ("arithmetic", "int8", "arithmetic must be one of 'auto', 'int16', 'float32', not 'int8'"),
        ("tau2", "much", "tau2 must be a number, not 'much'"),
        *(
            (name, value, f"{name} must be finite")
            for name in ("c_outside", "alpha", "tau1", "tau2", "delta", "gap_tolerance", "kappa")
            for value in (math.nan, math.inf)
        ),
    ],
)
def test_bad_parameters(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as error:
        CrfConfig(**{name: value})
    assert str(error.value).endswith(".")


def test_parameters_of_numpy() -> None:
    config = CrfConfig(tau2=np.float32(50), outer=np.int64(2))  # type: ignore[arg-type]
    assert (type(config.tau2), type(config.outer)) == (float, int)
    assert config == CrfConfig(tau2=50.0, outer=2)
    assert CrfConfig.paper() == CrfConfig(outer=5, inner=8, gap_tolerance=0.0, rounding="argmin")


def test_nothing_is_written_to_the_arguments() -> None:
    problem = usual()
    arrays = [*problem.descriptors.values(), problem.image]
    kept = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    problem.solve()
    assert all(same_bytes(a, b) for a, b in zip(arrays, kept, strict=True))


def test_the_flow_is_that_of_the_labels() -> None:
    result = usual().solve()
    assert result.flow.shape == (9, 11, 2)
    assert (result.flow[..., 0] == result.u - 3).all()
    assert (result.flow[..., 1] == result.v - 2).all()
    assert result.u.dtype == result.v.dtype == np.int16
    assert result.window == Window(-3, 6, -2, 5)


# --- parameters from a file -----------------------------------------------------------------------


def test_parameters_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "crf.toml"
    file.write_text("tau1 = 4.0\nouter = 3\nrounding = 'icm'\n")
    assert CrfConfig(tau2=50).updated(file) == CrfConfig(tau1=4, tau2=50, outer=3, rounding="icm")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tau1 = ", "is not TOML"),
        ("tau3 = 1.0", "may hold only c_outside, alpha"),
        ("tau1 = 100.0", "tau2 must be at least tau1"),
        (None, "does not exist"),
    ],
)
def test_a_bad_file_of_parameters(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "crf.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(FileError, match=f"crf.toml: .*{message}"):
        CrfConfig().updated(file)


def test_a_warm_start_from_a_result_of_another_scale() -> None:
    cold = usual(0, arithmetic="int16", outer=3).solve()
    for arithmetic in ("int16", "float32"):
        problem = usual(0, arithmetic=arithmetic, outer=3)
        plain, warm = problem.solve(), problem.solve(initial_lam=cold)
        assert warm.history[0].bound > plain.history[0].bound


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
