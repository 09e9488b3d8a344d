"""One pass of the in-plane solver against plain numpy: int64, O(D²) messages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

import hamflow
from _problems import at_level, everywhere, same_bytes
from hamflow import _native

Array = NDArray[Any]

REACHES = (1, 1, 2, 4, 8, 32, 4096)
LABELS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 129)
"""Around the widths of vectors; 64 and 128 have loops of their own."""


@dataclass(frozen=True)
class Pass:
    """The arguments of one pass."""

    lam: Array
    hold: Array
    edges: Array
    shares: Array | None
    vertical: bool = False
    reverse: bool = False
    reach: int = 1

    def __repr__(self) -> str:  # what hypothesis prints; the costs follow from the seed
        shares = "hierarchical" if self.shares is None else "sequential"
        return (
            f"Pass({self.lam.dtype} {self.lam.shape}, {shares}, vertical={self.vertical}, "
            f"reverse={self.reverse}, reach={self.reach})"
        )


@dataclass(frozen=True)
class Result:
    lam: Array
    hold: Array
    s: Array | None
    bound: float


def run(p: Pass, *, with_s: bool = True) -> Result:
    """Make the pass on copies."""
    lam, hold = p.lam.copy(), p.hold.copy()
    s = np.full_like(lam, 12345) if with_s else None
    bound = _native.chain_pass(lam, hold, s, p.edges, p.shares, p.vertical, p.reverse, p.reach)
    return Result(lam, hold, s, bound)


def same(a: Result, b: Result) -> bool:
    arrays = ((a.lam, b.lam), (a.hold, b.hold), (a.s, b.s))
    return a.bound == b.bound and all(same_bytes(x, y) for x, y in arrays)


# --- plain numpy: chains × nodes × labels ---------------------------------------------------------


def along(volume: Array, p: Pass) -> Array:
    """Return a volume in the order of the pass."""
    chains = volume.transpose(1, 0, 2) if p.vertical else volume
    return (chains[:, ::-1] if p.reverse else chains).astype(np.int64)


def costs(p: Pass) -> Array:
    """X of all chains."""
    return along(p.lam, p) - along(p.hold, p)


def all_rho(p: Pass) -> list[Array]:
    """Return w ρ(x - k) of every edge along the chains, each chains × D × D."""
    edges = p.edges.transpose(1, 0, 2) if p.vertical else p.edges
    edges = edges[:, :-1].astype(np.int64)  # the last node has no next one
    edges = edges[:, ::-1] if p.reverse else edges
    labels = np.arange(p.lam.shape[2])
    t = abs(labels[:, None] - labels)
    rho = []
    for first, slope, cap in edges.transpose(1, 2, 0)[..., None, None]:
        sloped = np.where(t <= p.reach, np.minimum(first + slope * (t - 1), cap), cap)
        rho.append(np.where(t == 0, 0, sloped))
    return rho


def send(a: Array, rho: Array) -> Array:
    """The message of a, chains × D, over an edge."""
    message: Array = (a[:, :, None] + rho).min(axis=1)
    return message


def forward(x: Array, rho: list[Array]) -> Array:
    """The last node's min-marginals."""
    out = x[:, 0]
    for i, edge in enumerate(rho):
        out = x[:, i + 1] + send(out, edge)
    return out


def backward(x: Array, rho: list[Array]) -> Array:
    """The first node's min-marginals."""
    return forward(x[:, ::-1], rho[::-1])


def chain_minima(x: Array, rho: list[Array]) -> Array:
    minima: Array = forward(x, rho).min(axis=1)
    return minima


def part_of(total: Array, share: Any) -> Array:
    """Return a share of whole numbers, rounded down."""
    if isinstance(share, np.float32):
        return np.floor(total.astype(np.float32) * share).astype(np.int64)
    return total * int(share) // 65536


def share_out(before: Array, after: Array, rho: Array, share: Any) -> tuple[Array, Array]:
    """Return what the nodes before and after an edge get, from their min-marginals on its sides."""
    m1 = send(before, rho)
    total = m1 + after
    kept = part_of(total - total.min(axis=1, keepdims=True), share)
    m = send(kept - m1, rho)
    m -= m.min(axis=1, keepdims=True)
    return m, send(-m, rho)


def sequential(x: Array, rho: list[Array], shares: Array) -> Array:
    s = x.copy()
    for i, share in enumerate(shares):
        m, n = share_out(s[:, i], backward(x[:, i + 1 :], rho[i + 1 :]), rho[i], share)
        s[:, i] += m
        s[:, i + 1] += n
    return s


def hierarchical(x: Array, rho: list[Array], dtype: Any) -> Array:
    n = x.shape[1]
    if n == 1:
        return x
    middle = n // 2
    share: Any = middle * 65536 // n
    if dtype == np.float32:
        share = np.float32(middle) / np.float32(n)
    first, second, at = x[:, :middle].copy(), x[:, middle:].copy(), middle - 1
    sides = forward(first, rho[:at]), backward(second, rho[middle:])
    given_first, given_second = share_out(*sides, rho[at], share)
    first[:, -1] += given_first
    second[:, 0] += given_second
    halves = hierarchical(first, rho[:at], dtype), hierarchical(second, rho[middle:], dtype)
    return np.concatenate(halves, axis=1)


def in_the_image(chains: Array, p: Pass) -> Array:
    """The inverse of `along`."""
    chains = chains[:, ::-1] if p.reverse else chains
    chains = chains.transpose(1, 0, 2) if p.vertical else chains
    return np.ascontiguousarray(chains.astype(p.lam.dtype))


def brute(p: Pass) -> Result:
    """What a pass must give."""
    x, rho = costs(p), all_rho(p)
    shares = p.shares
    s = hierarchical(x, rho, p.lam.dtype) if shares is None else sequential(x, rho, shares)
    lam, hold = along(p.lam, p) - s, x - s
    bound = int(chain_minima(x, rho).sum())
    return Result(in_the_image(lam, p), in_the_image(hold, p), in_the_image(s, p), bound)


# --- random passes -------------------------------------------------------------------------------


def random_edges(rng: np.random.Generator, height: int, width: int, cap: int, dtype: Any) -> Array:
    """Weights of all sizes, some 0; first steps and slopes that now and then pass the cap."""
    caps = rng.integers(0, cap + 1, (height, width))
    caps[rng.random(caps.shape) < 0.2] = 0
    caps[rng.random(caps.shape) < 0.2] = cap
    firsts = (caps * rng.uniform(0, 1.1, caps.shape)).astype(np.int64)
    slopes = ((caps - firsts) * rng.choice([0, 0.1, 0.6, 1], caps.shape)).astype(np.int64)
    slopes[rng.random(caps.shape) < 0.1] = cap
    edges = np.stack([firsts, abs(slopes), caps], axis=2)
    return edges.astype(dtype)


def random_shares(rng: np.random.Generator, count: int, dtype: Any) -> Array:
    """Shares in all of the range, the ends included."""
    if dtype == np.float32:
        return rng.choice([0, 1, *rng.random(8)], count).astype(np.float32)
    return rng.choice([0, 1, 32768, 65535, *rng.integers(0, 65536, 6)], count).astype(np.uint16)


def random_volume(rng: np.random.Generator, shape: tuple[int, ...], most: int, kind: str) -> Array:
    if kind == "tied":
        return rng.integers(-2, 3, shape) * (most // 2)
    if kind == "extreme":
        return rng.choice([-most, most], shape)
    return rng.integers(-most, most + 1, shape)


def random_pass(
    rng: np.random.Generator,
    shape: tuple[int, int, int],
    *,
    dtype: Any = np.int16,
    kind: str = "random",
    most: int = 4096,
    cap: int = 1600,
    nested: bool = False,
    **flags: Any,
) -> Pass:
    """Costs within ±most, and a hold and edges that suit the cap."""
    lam = random_volume(rng, shape, most, kind).astype(dtype)
    hold = random_volume(rng, shape, cap, kind).astype(dtype)
    edges = random_edges(rng, *shape[:2], cap, dtype)
    nodes = shape[0] if flags.get("vertical") else shape[1]
    shares = None if nested else random_shares(rng, nodes - 1, dtype)
    return Pass(lam, hold, edges, shares, **flags)


SIZES = st.sampled_from([(1, 1), (1, 9), (9, 1), (2, 2), (3, 5), (6, 4), (5, 11), (13, 2)])
SEEDS = st.integers(0, 2**32 - 1)
TYPES = st.sampled_from([np.int16, np.float32])
KINDS = st.sampled_from(["random", "tied", "extreme"])


@st.composite
def passes(
    draw: st.DrawFn, sizes: st.SearchStrategy[tuple[int, int]] = SIZES, labels: Any = None
) -> Pass:
    height, width = draw(sizes)
    count = draw(labels if labels is not None else st.sampled_from(LABELS))
    flags = {name: draw(st.booleans()) for name in ("vertical", "reverse", "nested")}
    return random_pass(
        np.random.default_rng(draw(SEEDS)),
        (height, width, count),
        dtype=draw(TYPES),
        kind=draw(KINDS),
        cap=draw(st.sampled_from([1, 40, 1600])),
        reach=draw(st.sampled_from(REACHES)),
        **flags,
    )


TINY = passes(st.sampled_from([(1, 4), (4, 1), (2, 3), (3, 3), (1, 5), (5, 2)]), st.integers(1, 4))
LEVELS = ("reference", *hamflow.isa_levels())
ANY_LEVEL = st.sampled_from(LEVELS)


def wrong_levels(p: Pass, expected: Result) -> list[str]:
    return [level for level in LEVELS if not same(at_level(level, lambda: run(p)), expected)]


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


# --- bad arguments, past the checks of Python -----------------------------------------------------


def arguments(dtype: Any = np.int16) -> dict[str, Any]:
    """Good arguments, all arrays new."""
    share = np.float32 if dtype == np.float32 else np.uint16
    volumes = {name: np.zeros((4, 5, 6), dtype) for name in ("lam", "hold", "s")}
    arrays = {"edges": np.zeros((4, 5, 3), dtype), "shares": np.zeros(4, share)}
    return volumes | arrays | {"vertical": False, "reverse": False, "reach": 1}


def call(dtype: Any = np.int16, **changed: Any) -> None:
    kernel: Callable[..., Any] = _native.chain_pass
    kernel(**(arguments(dtype) | changed))


ARRAYS = ("lam", "hold", "s", "edges", "shares")
BOTH = pytest.mark.parametrize("dtype", [np.int16, np.float32])


@BOTH
def test_good_arguments(dtype: Any) -> None:
    call(dtype)
    call(dtype, s=None)
    call(dtype, shares=None)
    call(dtype, vertical=True, shares=arguments(dtype)["shares"][:3])


@BOTH
@pytest.mark.parametrize("name", ARRAYS)
def test_wrong_shapes(dtype: Any, name: str) -> None:
    array = arguments(dtype)[name]
    for axis in range(array.ndim):
        for size in (array.shape[axis] - 1, array.shape[axis] + 1):
            shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
            with pytest.raises(ValueError, match="shape"):
                call(dtype, **{name: np.zeros(shape, array.dtype)})
    for other in (array[0], array[None], 3, array.tolist()):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call(dtype, **{name: other})


@BOTH
def test_shares_are_of_the_chains(dtype: Any) -> None:
    with pytest.raises(ValueError, match="shares"):
        call(dtype, vertical=True)
    with pytest.raises(ValueError, match="shares"):
        call(dtype, shares=arguments(dtype)["shares"][:3])


@BOTH
@pytest.mark.parametrize("reach", [0, -1, -4, 3, 6, 8192, 2**31 - 1])
def test_reaches(dtype: Any, reach: int) -> None:
    with pytest.raises(ValueError, match="reach"):
        call(dtype, reach=reach)


@BOTH
@pytest.mark.parametrize("labels", [0, 4097])
def test_numbers_of_labels(dtype: Any, labels: int) -> None:
    volume = np.zeros((4, 5, labels), dtype)
    with pytest.raises(ValueError, match="labels"):
        call(dtype, lam=volume, hold=volume.copy(), s=None)


@BOTH
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("vertical", [False, True])
def test_empty_images(dtype: Any, axis: int, vertical: bool) -> None:
    good = arguments(dtype)
    empty = {name: np.delete(good[name], np.s_[:], axis) for name in ("lam", "hold", "edges")}
    for shares in (None, good["shares"][:0]):
        with pytest.raises(ValueError, match="side must be 1 to"):
            call(dtype, **empty, s=None, shares=shares, vertical=vertical)


@BOTH
@pytest.mark.parametrize("name", ARRAYS)
def test_wrong_types(dtype: Any, name: str) -> None:
    array = arguments(dtype)[name]
    other = np.float32 if dtype == np.int16 else np.int16
    for wrong in (other, np.float64, np.int32, np.int8, np.bool_):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call(dtype, **{name: array.astype(wrong)})


@BOTH
@pytest.mark.parametrize("name", ["lam", "hold", "s"])
def test_what_cannot_be_written(dtype: Any, name: str) -> None:
    array = arguments(dtype)[name]
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call(dtype, **{name: np.repeat(array, 2, axis=-1)[..., ::2]})  # no copy is made
    array.flags.writeable = False
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call(dtype, **{name: array})


def test_flags() -> None:
    for name in ("vertical", "reverse", "reach"):
        for bad in (None, "x", 0.5):
            with pytest.raises(TypeError, match="incompatible function arguments"):
                call(**{name: bad})
