"""How the solver starts and ends: initial labels, warm starts, the gap, callbacks, Ctrl-C."""

from __future__ import annotations

import itertools
import sys
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from _crf_problems import LEVELS, SEEDS, Problem, problems, random_labels, same_result, usual
from _crf_reference import energy
from _problems import at_level, check_interrupt, same_bytes
from hamflow.crf import CrfStep


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


def test_a_warm_start_from_a_result_of_another_scale() -> None:
    cold = usual(0, arithmetic="int16", outer=3).solve()
    for arithmetic in ("int16", "float32"):
        problem = usual(0, arithmetic=arithmetic, outer=3)
        plain, warm = problem.solve(), problem.solve(initial_lam=cold)
        assert warm.history[0].bound > plain.history[0].bound


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
    assert CrfStep(1, 0.0, 1.0, 0.1).gap is None


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


INTERRUPTED = """
from hamflow import crf
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
@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c(threads: str) -> None:
    check_interrupt(INTERRUPTED, threads)
