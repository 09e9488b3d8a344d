"""One pass of the in-plane solver in plain numpy (int64, O(D²) messages), and random passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

import hamflow
from _problems import at_level, same_bytes
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


def run(p: Pass, *, with_s: bool = True, fresh: bool = False) -> Result:
    """Make the pass on copies."""
    lam, hold = p.lam.copy(), p.hold.copy()
    s = np.full_like(lam, 12345) if with_s else None
    how = (p.vertical, p.reverse, p.reach, fresh)
    bound = _native.chain_pass(lam, hold, s, p.edges, p.shares, *how)
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
