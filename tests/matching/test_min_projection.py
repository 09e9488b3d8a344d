from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hamflow
from _problems import (
    WIDE,
    BitsProblem,
    all_distances,
    at_level,
    bits_problems,
    brute_wta,
    everywhere,
    examples,
    popcount,
    random_bits,
    same_bytes,
    wide_problem,
)
from hamflow import Window
from hamflow.matching import MinProjection, min_projection


def project(problem: BitsProblem, *, argmins: bool = False) -> MinProjection:
    return min_projection(
        problem.bits0, problem.bits1, problem.window, outside=problem.outside, argmins=argmins
    )


def assert_same(a: MinProjection, b: MinProjection) -> None:
    for name in ("cu", "cv", "v_hat", "u_hat"):
        assert same_bytes(getattr(a, name), getattr(b, name)), name


@pytest.mark.parametrize(("size", "window"), WIDE)
def test_wide_images(size: Any, window: Any) -> None:
    problem = wide_problem(size, window)
    costs = all_distances(problem.bits0, problem.bits1, problem.window, problem.outside)
    for result in everywhere(lambda: project(problem)):
        assert (result.cu == costs.min(axis=3)).all()
        assert (result.cv == costs.min(axis=2)).all()


@examples(150)
@given(problem=bits_problems())
def test_equals_brute_force(problem: BitsProblem) -> None:
    costs = all_distances(problem.bits0, problem.bits1, problem.window, problem.outside)
    result = project(problem, argmins=True)
    assert result.cu.dtype == result.cv.dtype == np.uint8
    assert (result.cu == costs.min(axis=3)).all()
    assert (result.cv == costs.min(axis=2)).all()
    # numpy's argmin too takes the smallest of several.
    assert (result.v_hat == costs.argmin(axis=3)).all()
    assert (result.u_hat == costs.argmin(axis=2)).all()
    assert (result.wta() == brute_wta(costs, problem.window)).all()


@examples(150)
@given(problem=bits_problems())
def test_every_level_equals_the_reference(problem: BitsProblem) -> None:
    plain = at_level("reference", lambda: project(problem))
    full = at_level("reference", lambda: project(problem, argmins=True))
    flow = at_level("reference", full.wta)
    for result in everywhere(lambda: project(problem)):
        assert_same(result, plain)
    for result in everywhere(lambda: project(problem, argmins=True)):
        assert_same(result, full)
    for other in everywhere(full.wta):
        assert same_bytes(other, flow)


@examples(20)
@given(problem=bits_problems())
def test_both_minima_are_one(problem: BitsProblem) -> None:
    result = project(problem)
    assert (result.cu.min(axis=2) == result.cv.min(axis=2)).all()


def test_argmins_only_on_request() -> None:
    problem = BitsProblem(*random_pair(5, 6), Window.of(4))
    assert project(problem).v_hat is None
    assert project(problem).u_hat is None
    for name in ("cu", "cv"):
        assert same_bytes(
            getattr(project(problem), name), getattr(project(problem, argmins=True), name)
        )


def test_result_says_what_it_came_from() -> None:
    bits0, bits1 = random_pair(5, 6)
    result = min_projection(bits0, bits1, (-1, 3, 0, 2), outside=7)
    assert result.bits0 is bits0
    assert result.bits1 is bits1
    assert result.window == Window(-1, 3, 0, 2)
    assert result.outside == 7


# --- large images, large windows -----------------------------------------------------------------


def random_pair(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(height * 1000 + width)
    return random_bits(rng, height, width), random_bits(rng, height, width)


def test_across_tiles() -> None:
    bits0, bits1 = random_pair(130, 150)
    problem = BitsProblem(bits0, bits1, Window.of(32))
    # numpy gets the lower right corner; all targets of its inner part lie within it, or outside.
    corner, inner = np.s_[90:, 110:], np.s_[16:, 16:]
    costs = all_distances(bits0[corner], bits1[corner], problem.window, 32)
    full = project(problem, argmins=True)
    assert (full.cu[corner][inner] == costs.min(axis=3)[inner]).all()
    assert (full.cv[corner][inner] == costs.min(axis=2)[inner]).all()
    assert (full.wta()[corner][inner] == brute_wta(costs, problem.window)[inner]).all()
    for result in everywhere(lambda: project(problem, argmins=True)):
        assert_same(result, full)
        assert same_bytes(result.wta(), full.wta())


@pytest.mark.parametrize("tall", [False, True])
def test_across_strips(tall: bool) -> None:
    # At least 8 bytes per target pixel, 27 MB: bit planes are built in strips of 24 MB at most.
    bits0, bits1 = random_pair(42, 80_000)
    problem = BitsProblem(bits0, bits1, Window(-1, 3, -2, 3))
    if tall:
        problem = BitsProblem(bits0.T.copy(), bits1.T.copy(), Window(-2, 3, -1, 3))
    results = [at_level(level, lambda: project(problem)) for level in hamflow.isa_levels()]
    for result in results[1:]:
        assert_same(result, results[0])
    # And against numpy, around one column (or row) of many.
    axis = 0 if tall else 1
    near = np.arange(70_000, 70_009)
    part = [np.take(bits, near, axis).copy() for bits in (problem.bits0, problem.bits1)]
    costs = all_distances(part[0], part[1], problem.window, 32)
    inner = slice(2, -2)
    for name, over in (("cu", 3), ("cv", 2)):
        got = np.take(getattr(results[0], name), near[inner], axis)
        assert (got == np.take(costs.min(axis=over), np.arange(9)[inner], axis)).all()


@pytest.mark.parametrize("tall", [False, True])
def test_the_widest_window(tall: bool) -> None:
    # The number of a vector of labels is stored in a byte: 4096 labels are the most that fit.
    bits0, bits1 = (bits & np.uint64(0xFFFFF) for bits in random_pair(1, 4200))
    at = np.arange(0, 4200, 61)
    targets = at[:, None] - 2048 + np.arange(4096)
    inside = (targets >= 0) & (targets < 4200)
    distances = popcount(bits0[0, at, None] ^ bits1[0, np.clip(targets, 0, 4199)])
    distances = np.where(inside, distances, 32)
    problem = BitsProblem(bits0, bits1, Window(-2048, 4096, 0, 1))
    if tall:
        problem = BitsProblem(bits0.T.copy(), bits1.T.copy(), Window(0, 1, -2048, 4096))
    for level in hamflow.isa_levels():
        result = at_level(level, lambda: project(problem, argmins=True))
        along, across = (result.cv, result.cu) if tall else (result.cu, result.cv)
        argmin = result.v_hat if tall else result.u_hat
        assert argmin is not None
        assert (along.reshape(4200, 4096)[at] == distances).all()
        assert (across.ravel()[at] == distances.min(axis=1)).all()
        assert (argmin.ravel()[at] == distances.argmin(axis=1)).all()


# --- winner takes all ----------------------------------------------------------------------------


@pytest.mark.parametrize("window", [Window.of(16), Window(-3, 4, -7, 12), Window(-40, 60, 0, 1)])
@pytest.mark.parametrize("outside", [0, 32, 64])
def test_flat_frames_stand_still(window: Window, outside: int) -> None:
    bits = np.full((20, 30), 0x0123456789ABCDEF, np.uint64)
    for flow in everywhere(lambda: min_projection(bits, bits, window, outside=outside).wta()):
        assert (flow == 0).all()


@pytest.mark.parametrize("outside", [1, 32, 64])
def test_identical_frames_stand_still(outside: int) -> None:
    bits, _ = random_pair(40, 50)
    for flow in everywhere(lambda: min_projection(bits, bits, 16, outside=outside).wta()):
        assert (flow == 0).all()


@pytest.mark.parametrize(("a", "b"), [(3, -5), (-8, 7), (0, -8), (7, 0)])
def test_a_moved_frame_moves(a: int, b: int) -> None:
    bits0, _ = random_pair(40, 50)
    bits1 = np.roll(bits0, (b, a), axis=(0, 1))
    for flow in everywhere(lambda: min_projection(bits0, bits1, 16).wta()):
        assert (flow[8:-8, 8:-8] == (a, b)).all()


def test_ties_of_the_winner() -> None:
    # One pixel looks at a row of targets with these distances from it.
    def flow(distances: list[int], u0: int) -> float:
        bits1 = np.array([[(1 << d) - 1 for d in distances]], np.uint64)
        bits0 = np.zeros_like(bits1)
        window = Window(u0, len(distances), 0, 1)
        results = [f[0, -u0, 0] for f in everywhere(min_projection(bits0, bits1, window).wta)]
        assert len(set(results)) == 1
        return float(results[0])

    assert flow([1, 5, 5, 5, 1], -2) == -2  # as near, so the negative one
    assert flow([1, 5, 5, 1, 1], -2) == 1  # nearer
    assert flow([1, 1, 5, 1, 1], -2) == -1
    assert flow([1, 1, 1, 1, 1], -2) == 0
    assert flow([1, 5, 5, 5, 0], -2) == 2  # better


def test_u_comes_from_the_row_of_v() -> None:
    # Two equal minima, (1, 0) and (0, 1) of the window: c^u alone would take u = 0 with v = 0,
    # which matches nothing.
    bits0 = np.zeros((2, 2), np.uint64)
    bits1 = np.array([[0xFF, 0], [0, 0xFF]], np.uint64)
    flow = min_projection(bits0, bits1, (0, 2, 0, 2)).wta()
    assert flow[0, 0].tolist() == [1, 0]


def test_windows_away_from_zero() -> None:
    bits = np.zeros((4, 5), np.uint64)
    assert (min_projection(bits, bits, (3, 4, -9, 5), outside=0).wta() == (3, -5)).all()
