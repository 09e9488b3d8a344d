from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

import hamflow
from _problems import (
    FLOAT_TOLERANCE,
    THREADS,
    WIDE,
    BitsProblem,
    all_costs,
    all_distances,
    at_level,
    bits_problems,
    everywhere,
    random_bits,
    random_phi,
    same_bytes,
    shapes_and_windows,
    wide_problem,
    with_threads,
)
from hamflow import InputError, Window
from hamflow.matching import HammingCost, float_message, message, min_projection
from hamflow.matching.messages import Receiver

Array = NDArray[Any]
RECEIVERS = st.sampled_from(["u", "v"])
SEEDS = st.integers(0, 2**32 - 1)


def senders(window: Window, to: str) -> int:
    return window.dv if to == "u" else window.du


def along_sender(lam: Array, to: str) -> Array:
    """Shape lam for the 4D cost H×W×du×dv."""
    return lam[:, :, None, :] if to == "u" else lam[:, :, :, None]


def minimum(candidates: Array, to: str) -> Array:
    return candidates.min(axis=3 if to == "u" else 2)


def saturate(x: Array) -> Array:
    return np.clip(x, -32768, 32767)


def brute_message16(problem: BitsProblem, lam: Array, to: str, cost: HammingCost) -> Array:
    """What messages.inl promises: N = (lam - base) - step * h with saturating sums, then -N."""
    distances = all_distances(problem.bits0, problem.bits1, problem.window, -1)
    offsets = along_sender(lam.astype(np.int64), to)
    inside = saturate(saturate(offsets - int(cost.base)) - int(cost.step) * distances)
    outside = saturate(offsets - int(cost.outside))
    return minimum(saturate(-np.where(distances >= 0, inside, outside)), to).astype(np.int16)


def brute_message32(problem: BitsProblem, lam: Array, to: str, cost: HammingCost) -> Array:
    distances = all_distances(problem.bits0, problem.bits1, problem.window, -1)
    costs = np.where(distances >= 0, cost.step * distances + cost.base, cost.outside)
    return minimum(costs - along_sender(lam.astype(np.float64), to), to)


@st.composite
def fixed_costs(draw: st.DrawFn) -> HammingCost:
    step = draw(st.integers(1, 128))
    base = draw(st.integers(-32768, 32767 - 128 * step))
    return HammingCost(step, base, draw(st.integers(-32768, 32767)))


def lam16(problem: BitsProblem, to: str, reach: int, seed: int) -> NDArray[np.int16]:
    shape = (*problem.shape, senders(problem.window, to))
    return np.random.default_rng(seed).integers(-reach, reach, shape, np.int16)


def lam32(problem: BitsProblem, to: str, seed: int) -> NDArray[np.float32]:
    shape = (*problem.shape, senders(problem.window, to))
    return np.random.default_rng(seed).uniform(-50, 50, shape).astype(np.float32)


# --- int16 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "window"), WIDE)
@pytest.mark.parametrize("to", ["u", "v"])
def test_wide_images(size: Any, window: Any, to: Receiver) -> None:
    problem = wide_problem(size, window)
    cost, lam = HammingCost(4, -100, 13), lam16(problem, to, 900, 7)
    expected = brute_message16(problem, lam, to, cost)
    fields = problem.bits0, problem.bits1, problem.window
    for result in everywhere(lambda: message(*fields, lam, to=to, cost=cost)):
        assert same_bytes(result, expected)


@settings(max_examples=200)
@given(
    problem=bits_problems(),
    to=RECEIVERS,
    cost=st.sampled_from([HammingCost.fixed(1), HammingCost.fixed(32, -8.5)]) | fixed_costs(),
    reach=st.sampled_from([1, 1000, 32767]),
    seed=SEEDS,
)
def test_fixed_point(
    problem: BitsProblem, to: Receiver, cost: HammingCost, reach: int, seed: int
) -> None:
    lam = lam16(problem, to, reach, seed)

    def send() -> Array:
        return message(problem.bits0, problem.bits1, problem.window, lam, to=to, cost=cost)

    expected = brute_message16(problem, lam, to, cost)
    assert same_bytes(at_level("reference", send), expected)
    for result in everywhere(send):
        assert same_bytes(result, expected)


@pytest.mark.parametrize("to", ["u", "v"])
@pytest.mark.parametrize("lam", [-32768, 32767])
@pytest.mark.parametrize("cost", [HammingCost(128, -4096, 0), HammingCost(128, -32768, 32767)])
@pytest.mark.parametrize("words", [1, 2])
def test_everything_saturates(to: Receiver, lam: int, cost: HammingCost, words: int) -> None:
    rng = np.random.default_rng(0)
    bits0, bits1 = (random_bits(rng, 9, 40, words) for _ in range(2))
    problem = BitsProblem(bits0, bits1, Window.of(36))
    offsets = np.full((9, 40, 36), lam, np.int16)
    expected = brute_message16(problem, offsets, to, cost)
    for result in everywhere(
        lambda: message(problem.bits0, problem.bits1, problem.window, offsets, to=to, cost=cost)
    ):
        assert same_bytes(result, expected)


@settings(max_examples=30)
@given(problem=bits_problems(), to=RECEIVERS, scale=st.sampled_from([1, 16, 64]))
def test_the_first_message_is_the_min_projection(
    problem: BitsProblem, to: Receiver, scale: int
) -> None:
    # Method, invariant 5. What lies outside costs what its distance would.
    m = 64 * problem.words
    outside = 2.0 * problem.outside - m
    projection = min_projection(
        problem.bits0, problem.bits1, problem.window, outside=problem.outside
    )
    distances = (projection.cu if to == "u" else projection.cv).astype(np.int16)
    shape = (*problem.shape, senders(problem.window, to))
    args = (problem.bits0, problem.bits1, problem.window)
    cost = HammingCost.fixed(scale, outside, words=problem.words)
    fixed = message(*args, np.zeros(shape, np.int16), to=to, cost=cost)
    assert same_bytes(fixed, (2 * distances - m) * np.int16(scale))
    # Small whole numbers are exact in float32.
    cost = HammingCost(base=-m, outside=outside)
    floats = message(*args, np.zeros(shape, np.float32), to=to, cost=cost)
    assert (floats == 2 * distances - m).all()


@settings(max_examples=30)
@given(problem=bits_problems(), to=RECEIVERS, seed=SEEDS)
def test_words_of_a_descriptor(problem: BitsProblem, to: Receiver, seed: int) -> None:
    lam, floats = lam16(problem, to, 1000, seed), lam32(problem, to, seed)
    first, second = (
        bits.reshape(*problem.shape, -1)[..., 0] for bits in (problem.bits0, problem.bits1)
    )
    rng = np.random.default_rng(seed)
    other0, other1 = (random_bits(rng, *problem.shape) for _ in range(2))
    blank = np.zeros_like(other0)

    def send(words0: list[Array], words1: list[Array], offsets: Array, **cost: Any) -> Array:
        bits0, bits1 = np.stack(words0, axis=2), np.stack(words1, axis=2)
        return message(bits0, bits1, problem.window, offsets, to=to, **cost)

    # Words that say nothing change nothing; neither does the order of words.
    cost = HammingCost.fixed(32, 1.0)
    for offsets, kind in ((lam, {"cost": cost}), (floats, {"cost": HammingCost()})):
        alone = send([first], [second], offsets, **kind)
        assert same_bytes(send([first, blank], [second, blank], offsets, **kind), alone)
        assert same_bytes(
            send([first, other0], [second, other1], offsets, **kind),
            send([other0, first], [other1, second], offsets, **kind),
        )
    # By default c = 2 h - m: 64 less for a word that always agrees, where nothing is outside.
    window = Window(0, 1, 0, 1)
    zero = np.zeros((*problem.shape, 1), np.float32)
    words = np.stack([first, blank], axis=2), np.stack([second, blank], axis=2)
    both = message(*words, window, zero, to=to)
    assert (both == message(first.copy(), second.copy(), window, zero, to=to) - 64).all()


@settings(max_examples=20)
@given(problem=bits_problems(), to=RECEIVERS, shift=st.integers(-500, 500), seed=SEEDS)
def test_a_constant_passes_through(
    problem: BitsProblem, to: Receiver, shift: int, seed: int
) -> None:
    args = (problem.bits0, problem.bits1, problem.window)
    lam = lam16(problem, to, 1000, seed)
    cost = HammingCost.fixed(32)
    before = message(*args, lam, to=to, cost=cost)
    assert (message(*args, lam + np.int16(shift), to=to, cost=cost) == before - shift).all()
    floats = lam32(problem, to, seed)
    moved = message(*args, floats + np.float32(shift / 16), to=to)
    assert np.allclose(moved, message(*args, floats, to=to) - shift / 16, 0, FLOAT_TOLERANCE)


def test_units_of_fixed_costs() -> None:
    assert HammingCost.fixed(1) == HammingCost()
    assert HammingCost.fixed(32, outside=-1.5) == HammingCost(64, -2048, -48)


# --- float32 -------------------------------------------------------------------------------------


def check_floats(send: Callable[[], Array], expected: Array) -> None:
    assert np.allclose(at_level("reference", send), expected, 0, FLOAT_TOLERANCE)
    for level in hamflow.isa_levels():
        result = at_level(level, send)
        assert result.dtype == np.float32
        assert np.allclose(result, expected, 0, FLOAT_TOLERANCE)
        for count in THREADS:
            assert same_bytes(at_level(level, lambda n=count: with_threads(n, send)), result)


@settings(max_examples=120)
@given(
    problem=bits_problems(),
    to=RECEIVERS,
    cost=st.sampled_from([HammingCost(), HammingCost(0.03, -1, 0.5), HammingCost(1.7, 5, -99)]),
    seed=SEEDS,
)
def test_floats(problem: BitsProblem, to: Receiver, cost: HammingCost, seed: int) -> None:
    lam = lam32(problem, to, seed)

    def send() -> Array:
        return message(problem.bits0, problem.bits1, problem.window, lam, to=to, cost=cost)

    expected = brute_message32(problem, lam, to, cost)
    check_floats(send, expected)


@settings(max_examples=40)
@given(
    place=shapes_and_windows(entries=20_000),
    m=st.sampled_from([64, 64, 1, 7, 65]),
    to=RECEIVERS,
    outside=st.sampled_from([0.0, -3.5, 30.0]),
    seed=SEEDS,
)
def test_float_message(
    place: tuple[int, int, Window], m: int, to: Receiver, outside: float, seed: int
) -> None:
    height, width, window = place
    rng = np.random.default_rng(seed)
    phi0, phi1 = random_phi(rng, height, width, m), random_phi(rng, height, width, m)
    lam = rng.uniform(-20, 20, (height, width, senders(window, to))).astype(np.float32)

    def send() -> Array:
        return float_message(phi0, phi1, window, lam, to=to, outside=outside)

    costs = all_costs(phi0, phi1, window, outside)
    expected = minimum(costs - along_sender(lam.astype(np.float64), to), to)
    check_floats(send, expected)


@pytest.mark.parametrize("to", ["u", "v"])
def test_large_images(to: Receiver) -> None:
    """Beyond one tile and one thread's share, where random problems do not reach."""
    rng = np.random.default_rng(0)
    window = Window(-20, 36, -16, 33)
    problem = BitsProblem(random_bits(rng, 90, 110), random_bits(rng, 90, 110), window)
    args = (problem.bits0, problem.bits1, window)
    at = np.s_[40:44, 50:54]
    # Targets of these pixels lie in this part of the image.
    part = np.s_[40 - 16 : 44 + 17, 50 - 20 : 54 + 16]
    small = BitsProblem(problem.bits0[part].copy(), problem.bits1[part].copy(), window)

    def check(lam: Array, expected: Array, cost: HammingCost) -> None:
        results = list(everywhere(lambda: message(*args, lam, to=to, cost=cost)))
        for result in results:
            assert np.allclose(result[at], expected[16:20, 20:24], 0, FLOAT_TOLERANCE)
            assert np.allclose(result, results[0], 0, FLOAT_TOLERANCE)

    fixed, floats = lam16(problem, to, 2000, 1), lam32(problem, to, 1)
    # In units of 1/16 float32 would need sixteen times the tolerance.
    cost16, cost32 = HammingCost.fixed(16), HammingCost()
    check(fixed, brute_message16(small, fixed[part], to, cost16), cost16)
    check(floats, brute_message32(small, floats[part], to, cost32), cost32)


def test_offsets_that_overflow_in_units_of_the_step() -> None:
    bits = np.zeros((2, 3), np.uint64)
    lam = np.full((2, 3, 4), 1e10, np.float32)
    with pytest.raises(InputError, match="lam is too large for a step"):
        message(bits, bits, 4, lam, to="v", cost=HammingCost(step=1e-30))
