"""The solver of the joint model: answers that are known, and the same bytes everywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from _crf_problems import LEVELS, Problem, problems, random_problem, same_result, usual, with_phi
from _problems import (
    THREADS,
    at_level,
    brute_wta,
    everywhere,
    random_bits,
    same_bytes,
    with_threads,
)
from hamflow import Window, crf, pair_bits
from hamflow.crf import CrfConfig, CrfPass, CrfStep

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
    for rounding in ("argmin", "icm", "rows", "chains"):
        flow = problem.with_config(rounding=rounding).solve().flow
        assert (flow == brute_wta(costs, problem.window))[unique].all()


# --- known answers --------------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", ["argmin", "icm", "rows", "chains"])
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


def test_the_flow_is_that_of_the_labels() -> None:
    result = usual().solve()
    assert result.flow.shape == (9, 11, 2)
    assert (result.flow[..., 0] == result.u - 3).all()
    assert (result.flow[..., 1] == result.v - 2).all()
    assert result.u.dtype == result.v.dtype == np.int16
    assert result.window == Window(-3, 6, -2, 5)


# --- descriptors of two words ---------------------------------------------------------------------


def with_words(problem: Problem, *words: str, **config: Any) -> Problem:
    """Put words together to descriptors: "a" is the problem's first one, "0" says nothing."""
    rng = np.random.default_rng(0)
    fields = {}
    for name, bits in problem.descriptors.items():
        known = {"a": bits, "b": random_bits(rng, *problem.shape), "0": np.zeros_like(bits)}
        fields[name] = np.stack([known[word] for word in words], axis=2)
    return replace(problem, descriptors=fields).with_config(**config)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rounding", ["argmin", "icm", "rows", "chains"])
@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
def test_a_word_that_says_nothing(seed: int, rounding: Any, arithmetic: Any) -> None:
    problem = usual(seed, rounding=rounding, arithmetic=arithmetic, tau2=20.0)
    one, alone = problem.solve(), with_words(problem, "a").solve()
    assert same_result(one, alone)
    # Every match costs 64 less, so that what lies outside has to, too.
    two = with_words(problem, "a", "0", c_outside=problem.config.c_outside - 64).solve()
    if arithmetic == "float32":  # in units twice as coarse
        assert two.energy == pytest.approx(one.energy - 64 * one.u.size, rel=1e-3)
        return
    assert two.scale == one.scale
    assert same_bytes(two.u, one.u)
    assert same_bytes(two.v, one.v)
    assert two.energy == pytest.approx(one.energy - 64 * one.u.size, abs=1e-6)
    assert two.bound == one.bound - 64 * one.u.size


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
def test_the_order_of_words(seed: int, arithmetic: Any) -> None:
    problem = usual(seed, arithmetic=arithmetic)
    both = with_words(problem, "a", "b").solve()
    assert same_result(both, with_words(problem, "b", "a").solve())
    assert not (both.u == problem.solve().u).all()


# --- the same bytes everywhere --------------------------------------------------------------------


@settings(max_examples=40)
@given(problem=problems())
def test_bits_give_the_same_bytes_everywhere(problem: Problem) -> None:
    expected = at_level("reference", problem.solve)
    for result in everywhere(problem.solve):
        assert same_result(result, expected)


@pytest.mark.parametrize("rounding", ["icm", "chains"])
@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
@pytest.mark.parametrize(
    ("window", "delta", "words"),
    [(16, 2.0, 1), ((-20, 40, -5, 9), 2.0, 2), ((-20, 40, 0, 1), 6.0, 1)],
)
def test_larger_problems_give_the_same_bytes_everywhere(
    rounding: Any, arithmetic: Any, window: Any, delta: float, words: int
) -> None:
    rng = np.random.default_rng(0)
    config = {"rounding": rounding, "arithmetic": arithmetic, "delta": delta, "outer": 2}
    config |= {"words": words, "tau1": 1.0, "inner": 2}
    problem = random_problem(rng, (21, 34), Window.of(window), **config)
    expected = at_level("reference", problem.solve)
    assert len(np.unique(expected.u)) > 1
    for result in everywhere(problem.solve):
        assert same_result(result, expected)


BETWEEN_LEVELS = 1e-3
"""Most that bound and energy may differ between levels for each pixel, for costs of about ±100."""


@pytest.mark.parametrize("m", [1, 7, 64])
@pytest.mark.parametrize("rounding", ["argmin", "icm", "rows", "chains"])
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


def test_passes_are_told() -> None:
    """The bound grows from pass to pass, up to that of the iteration."""
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    bits = [pair_bits(np.roll(image, shift, axis=1)) for shift in (0, 2)]
    config = CrfConfig(outer=3, inner=4, gap_tolerance=0)
    told: list[CrfPass | CrfStep] = []
    crf.solve(
        bits0=bits[0],
        bits1=bits[1],
        image=image,
        window=8,
        config=config,
        callback=told.append,
        pass_callback=told.append,
    )
    bounds = [step.bound for step in told]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]
    for iteration in range(1, 4):
        of_it = [step for step in told if step.iteration == iteration]
        assert [type(step) for step in of_it] == [CrfPass] * 14 + [CrfStep]  # 7 for each plane
        assert of_it[-1].bound == of_it[-2].bound
