"""One pass of the in-plane solver against plain numpy: int64, O(D²) messages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from _chain_passes import (
    ANY_LEVEL,
    LABELS,
    TINY,
    Array,
    Pass,
    Result,
    all_rho,
    along,
    brute,
    chain_minima,
    costs,
    passes,
    random_pass,
    random_shares,
    run,
    same,
    wrong_levels,
)
from _problems import at_level, everywhere, same_bytes


def test_the_passes_are_not_trivial() -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.int16, np.float32):
        p = random_pass(rng, (6, 8, 16), dtype=dtype, reach=4)
        result = brute(p)
        assert len(np.unique(p.edges)) > 20
        assert (result.hold != 0).mean() > 0.3
        assert not same(result, brute(replace(p, reach=1)))
        assert not same(result, brute(replace(p, reach=8)))
        assert not same(result, brute(replace(p, reverse=True)))
        assert not same(result, brute(replace(p, shares=None)))


# --- the result, byte for byte --------------------------------------------------------------------


@settings(max_examples=300)
@given(p=passes())
def test_equals_plain_numpy(p: Pass) -> None:
    expected = brute(p)
    assert same(at_level("reference", lambda: run(p)), expected)
    for result in everywhere(lambda: run(p)):
        assert same(result, expected)


@settings(max_examples=60)
@given(p=passes(), with_s=st.booleans())
def test_a_fresh_pass_does_not_read_what_is_held(p: Pass, with_s: bool) -> None:
    nothing = replace(p, hold=np.zeros_like(p.hold))
    expected = run(nothing, with_s=with_s)
    assert same(at_level("reference", lambda: run(p, with_s=with_s, fresh=True)), expected)
    for result in everywhere(lambda: run(p, with_s=with_s, fresh=True)):
        assert same(result, expected)


@pytest.mark.parametrize("shape", [(16, 16, 8), (17, 33, 9), (35, 18, 23), (1, 40, 5), (40, 1, 12)])
@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_several_blocks_of_chains(shape: tuple[int, int, int], dtype: Any) -> None:
    rng = np.random.default_rng(shape[1])
    for vertical, reverse in itertools.product((False, True), repeat=2):
        p = random_pass(rng, shape, dtype=dtype, reach=1, vertical=vertical, reverse=reverse)
        expected = brute(p)
        for result in everywhere(lambda p=p: run(p)):
            assert same(result, expected)
        for result in everywhere(lambda p=p: run(p, with_s=False)):
            assert same_bytes(result.hold, expected.hold)
            assert same_bytes(result.lam, p.lam)
            assert result.bound == expected.bound


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_every_number_of_labels(labels: int, dtype: Any) -> None:
    rng = np.random.default_rng(labels)
    for nested, vertical in itertools.product((False, True), repeat=2):
        flags: dict[str, Any] = {"nested": nested, "vertical": vertical}
        flags["reverse"] = bool(rng.integers(2))
        for reach in (1, 4):
            p = random_pass(rng, (4, 5, labels), dtype=dtype, reach=reach, **flags)
            assert not wrong_levels(p, brute(p)), p


@pytest.mark.parametrize(("dtype", "labels"), [(np.int16, 24), (np.int16, 64), (np.float32, 64)])
@pytest.mark.parametrize("reach", [1, 8])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("vertical", [False, True])
def test_larger_images(dtype: Any, labels: int, reach: int, nested: bool, vertical: bool) -> None:
    """More chains than one thread's share, and than whole strips of them."""
    rng = np.random.default_rng(labels)
    flags: dict[str, Any] = {"nested": nested, "vertical": vertical, "reverse": reach == 8}
    p = random_pass(rng, (33, 37, labels), dtype=dtype, reach=reach, **flags)
    result, *others = everywhere(lambda: run(p))
    assert all(same(other, result) for other in others)
    assert result.bound == chain_minima(costs(p), all_rho(p)).sum()
    # Some of the chains, alone.
    some = np.s_[:, 30:] if vertical else np.s_[30:]
    lam, hold, edges = (array[some].copy() for array in (p.lam, p.hold, p.edges))
    expected = brute(replace(p, lam=lam, hold=hold, edges=edges))
    assert result.s is not None
    assert same_bytes(result.s[some].copy(), expected.s)
    assert same_bytes(result.hold[some].copy(), expected.hold)
    assert same_bytes(result.lam[some].copy(), expected.lam)


LIMITS = [
    # C, tau2, and how far a message between the planes shifts all labels of a pixel: 2 tau2.
    # 2 C + 6 tau2 just fits int16.
    (64 * 76, 50 * 76, 2 * 50 * 76),
    (1, 5460, 2 * 5460),
    (16000, 127, 2 * 127),
    # C = 64, tau2 = 50 in units of 1/64, where lam may even vary by all of C + 2 tau2.
    ((64 + 2 * 50) * 64, 50 * 64, 0),
]


def at_the_limits(rng: np.random.Generator, limits: tuple[int, int, int], **flags: Any) -> Pass:
    most, cap, shift = limits
    kind = str(rng.choice(["random", "extreme"]))
    p = random_pass(rng, (9, 8, 17), kind=kind, most=most, cap=cap, **flags)
    lam, hold, edges, shares = p.lam, p.hold, p.edges, p.shares
    if rng.random() < 0.5:  # the two add up
        hold = np.where(lam < 0, cap, -cap).astype(np.int16)
    if rng.random() < 0.5:
        edges = np.full_like(edges, cap)
    if shares is not None and rng.random() < 0.5:
        shares = np.full_like(shares, 65535)
    shifts = rng.choice([-shift, 0, shift], (9, 8, 1)).astype(np.int16)
    return replace(p, lam=lam + shifts, hold=hold, edges=edges, shares=shares)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("nested", [False, True])
def test_nothing_wraps(limits: tuple[int, int, int], nested: bool) -> None:
    rng = np.random.default_rng(0)
    largest = 0
    for _ in range(30):
        flags = {"vertical": bool(rng.integers(2)), "reverse": bool(rng.integers(2))}
        reach = int(rng.choice([1, 2, 8]))
        p = at_the_limits(rng, limits, nested=nested, reach=reach, **flags)
        assert not wrong_levels(p, brute(p)), p
        largest = max(largest, abs(costs(p)).max())
    assert largest == sum(limits)


@pytest.mark.parametrize("nested", [False, True])
def test_nothing_rounds(nested: bool) -> None:
    """Whole numbers far beyond int16 are exact in float32."""
    rng = np.random.default_rng(0)
    for kind, reach in itertools.product(("random", "extreme"), (1, 8)):
        flags: dict[str, Any] = {"most": 1_500_000, "cap": 1_000_000, "nested": nested}
        p = random_pass(rng, (7, 9, 21), dtype=np.float32, kind=kind, reach=reach, **flags)
        assert not wrong_levels(p, brute(p)), p


# --- the method's invariants ----------------------------------------------------------------------


def plain_rho(t: int, edge: Array, reach: int) -> int:
    first, slope, cap = (int(value) for value in edge)
    if t == 0:
        return 0
    return min(first + slope * (abs(t) - 1), cap) if abs(t) <= reach else cap


@settings(max_examples=150)
@given(p=passes(st.just((1, 2))), level=ANY_LEVEL)
def test_messages(p: Pass, level: str) -> None:
    # Where the second of two nodes allows but one label, the chain's minimum is the message.
    edge, costs0, d = p.edges[0, 0], p.lam[0, 0].astype(int).tolist(), p.lam.shape[2]
    expected = [
        min(costs0[x] + plain_rho(x - k, edge, p.reach) for x in range(d)) for k in range(d)
    ]
    lam = np.full((d, 2, d), 12_000, p.lam.dtype)
    lam[:, 0] = p.lam[0, 0]
    lam[range(d), 1, range(d)] = 0
    shares = random_shares(np.random.default_rng(d), 1, p.lam.dtype) if d % 2 else None
    edges = np.broadcast_to(edge, (d, 2, 3)).copy()
    result = at_level(
        level, lambda: run(Pass(lam, np.zeros_like(lam), edges, shares, reach=p.reach))
    )
    assert result.s is not None
    assert result.s.min(axis=2).sum(axis=1).tolist() == expected
    assert result.bound == sum(expected)


@settings(max_examples=150)
@given(p=passes(), level=ANY_LEVEL)
def test_the_minorant_is_tight(p: Pass, level: str) -> None:
    result = at_level(level, lambda: run(p))
    assert result.s is not None
    s, rho = along(result.s, p), all_rho(p)
    minima = chain_minima(costs(p), rho)
    assert (s.min(axis=2).sum(axis=1) == minima).all()
    # Nothing is left to take, and nothing was taken that was not there.
    assert (chain_minima(along(result.hold, p), rho) == 0).all()
    assert result.bound == minima.sum()
    assert isinstance(result.bound, float if p.lam.dtype == np.float32 else int)


def labelings(x: Array) -> Iterator[tuple[int, ...]]:
    return itertools.product(range(x.shape[2]), repeat=x.shape[1])


def energy(k: tuple[int, ...], x: Array, rho: list[Array]) -> Array:
    """Return the energy of the labeling k in all chains."""
    out: Array = x[:, range(x.shape[1]), k].sum(axis=1)
    for i, edge in enumerate(rho):
        out = out + edge[:, k[i], k[i + 1]]
    return out


@settings(max_examples=150)
@given(p=TINY, level=ANY_LEVEL)
def test_all_labelings(p: Pass, level: str) -> None:
    result = at_level(level, lambda: run(p))
    assert result.s is not None
    x, s, rho = costs(p), along(result.s, p), all_rho(p)
    energies = np.array([energy(k, x, rho) for k in labelings(x)])
    sums = np.array([energy(k, s, []) for k in labelings(x)])
    minima = energies.min(axis=0)
    assert (sums <= energies).all()
    assert (sums == energies).any(axis=0).all()  # at a best labeling
    assert (s.min(axis=2).sum(axis=1) == minima).all()
    assert (chain_minima(x, rho) == minima).all()
    assert result.bound == minima.sum()


@settings(max_examples=60)
@given(p=passes(), level=ANY_LEVEL)
def test_what_is_written(p: Pass, level: str) -> None:
    result = at_level(level, lambda: run(p))
    alone = at_level(level, lambda: run(p, with_s=False))
    assert result.s is not None
    assert same_bytes(result.lam, p.lam - result.s)
    assert same_bytes(result.hold, p.lam - p.hold - result.s)
    assert same_bytes(alone.lam, p.lam)
    assert same_bytes(alone.hold, result.hold)
    assert alone.bound == result.bound


@settings(max_examples=40)
@given(p=passes(), level=ANY_LEVEL, which=st.sampled_from(["all", "cap"]))
def test_without_weights(p: Pass, level: str, which: str) -> None:
    edges = p.edges * (0 if which == "all" else np.array([1, 1, 0]))
    p = replace(p, edges=edges.astype(p.lam.dtype))
    result = at_level(level, lambda: run(p))
    assert same_bytes(result.s, p.lam - p.hold)
    assert (result.hold == 0).all()
    assert result.bound == (p.lam - p.hold).min(axis=2).sum(dtype=np.int64)


@settings(max_examples=20)
@given(p=passes(labels=st.just(1)), level=ANY_LEVEL)
def test_one_label(p: Pass, level: str) -> None:
    result = at_level(level, lambda: run(p))
    assert same_bytes(result.s, p.lam - p.hold)
    assert result.bound == (p.lam - p.hold).sum(dtype=np.int64)


@pytest.mark.parametrize("dtype", [np.int16, np.float32])
@pytest.mark.parametrize("nested", [False, True])
def test_single_nodes(dtype: Any, nested: bool) -> None:
    rng = np.random.default_rng(0)
    for shape, vertical in (((1, 1, 5), False), ((6, 1, 20), False), ((1, 7, 64), True)):
        p = random_pass(rng, shape, dtype=dtype, nested=nested, vertical=vertical)
        s, nothing = p.lam - p.hold, np.zeros_like(p.lam)
        bound = s.min(axis=2).sum(dtype=np.int64)
        assert not wrong_levels(p, Result(p.lam - s, nothing, s, bound)), p


@settings(max_examples=50)
@given(p=passes(), level=ANY_LEVEL)
def test_columns_are_rows_of_the_transposed(p: Pass, level: str) -> None:
    def turn(a: Array) -> Array:
        return np.ascontiguousarray(a.transpose(1, 0, 2))

    def turned_pass() -> Result:
        turned = replace(p, lam=turn(p.lam), hold=turn(p.hold), edges=turn(p.edges))
        result = run(replace(turned, vertical=not p.vertical))
        assert result.s is not None
        return Result(turn(result.lam), turn(result.hold), turn(result.s), result.bound)

    assert same(at_level(level, turned_pass), at_level(level, lambda: run(p)))


@settings(max_examples=50)
@given(p=passes(), level=ANY_LEVEL)
def test_backwards_is_forwards_on_the_flipped(p: Pass, level: str) -> None:
    axis = 0 if p.vertical else 1

    def flip(a: Array) -> Array:
        return np.ascontiguousarray(np.flip(a, axis))

    def flipped_pass() -> Result:
        # An edge belongs to the first of its two pixels: the last pixel's, of no use, stays last.
        edges = np.roll(flip(p.edges), -1, axis)
        flipped = replace(p, lam=flip(p.lam), hold=flip(p.hold), edges=edges)
        result = run(replace(flipped, reverse=not p.reverse))
        assert result.s is not None
        return Result(flip(result.lam), flip(result.hold), flip(result.s), result.bound)

    assert same(at_level(level, flipped_pass), at_level(level, lambda: run(p)))


@settings(max_examples=40)
@given(p=passes(), level=ANY_LEVEL, shift=st.integers(-900, 900))
def test_a_constant_stays_with_its_pixel(p: Pass, level: str, shift: int) -> None:
    # Method, invariant 7.
    y, x = p.lam.shape[0] // 2, p.lam.shape[1] - 1
    moved = replace(p, lam=p.lam.copy())
    moved.lam[y, x] += p.lam.dtype.type(shift)
    before, after = at_level(level, lambda: run(p)), at_level(level, lambda: run(moved))
    assert after.bound == before.bound + shift
    assert same_bytes(after.hold, before.hold)
