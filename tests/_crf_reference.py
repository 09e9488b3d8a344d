"""The joint model in plain numpy: energies of all labelings, and Algorithm 1 in int64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from _crf_problems import DIRECTIONS, Model, Problem, other
from _problems import Array

# --- energies ------------------------------------------------------------------------------------


def pairs(model: Model) -> Iterator[tuple[tuple[int, int], tuple[int, int], Array]]:
    """All edges: two pixels, and w ρ(t)."""
    height, width = model.shape
    for y, x in itertools.product(range(height), range(width)):
        if x + 1 < width:
            yield (y, x), (y, x + 1), model.right[y, x]
        if y + 1 < height:
            yield (y, x), (y + 1, x), model.down[y, x]


def energy(model: Model, u: Array, v: Array) -> Any:
    """E of a labeling, term by term."""
    total = sum(model.costs[y, x, u[y, x], v[y, x]] for y, x in np.ndindex(model.shape))
    for a, b, table in pairs(model):
        total += table[abs(int(u[a]) - int(u[b]))] + table[abs(int(v[a]) - int(v[b]))]
    return total


def differences(count: int) -> Array:
    labels = np.arange(count)
    return abs(labels[:, None] - labels)


def product_edge(model: Model, table: Array) -> Array:
    """w [ρ(u - u') + ρ(v - v')] of all pairs of joint labels u · dv + v."""
    du, dv = model.costs.shape[2:]
    matrix = table[differences(du)][:, None, :, None] + table[differences(dv)][None, :, None, :]
    return matrix.reshape(du * dv, du * dv)


def all_energies(model: Model) -> Array:
    """E of every labeling: one axis for each pixel, along which its joint labels u · dv + v."""
    height, width, du, dv = model.costs.shape
    n = height * width
    total = np.zeros((du * dv,) * n, model.costs.dtype)

    def along(values: Array, *pixels: int) -> Array:
        return values.reshape([du * dv if i in pixels else 1 for i in range(n)])

    for i, costs in enumerate(model.costs.reshape(n, -1)):
        total += along(costs, i)
    for (y, x), (y2, x2), table in pairs(model):
        total += along(product_edge(model, table), y * width + x, y2 * width + x2)
    return total


def optimum(model: Model) -> Any:
    return all_energies(model).min()


# --- chains --------------------------------------------------------------------------------------


def send(a: Array, table: Array) -> Array:
    """min_x a(x) + w ρ(x - k) for each chain: a is chains × D, the table chains × T."""
    message: Array = (a[:, :, None] + table[:, differences(a.shape[1])]).min(axis=1)
    return message


def sweep(x: Array, tables: Array) -> list[Array]:
    """Min-marginals of each node of chains × nodes × labels with what comes before it."""
    sums = [x[:, 0]]
    for i in range(1, x.shape[1]):
        sums.append(x[:, i] + send(sums[-1], tables[:, i - 1]))
    return sums


def chain_minima(x: Array, tables: Array) -> Array:
    minima: Array = sweep(x, tables)[-1].min(axis=1)
    return minima


def along(volume: Array, direction: str) -> Array:
    """A volume as chains × nodes × labels (and, by the same call, back)."""
    return volume if direction == "horizontal" else volume.swapaxes(0, 1)


def psi(model: Model, lam1: Array, lam2: Array, lam3: Array, lam4: Array) -> int:
    """Ψ = Ψ¹ + Ψ² + Ψ³ as the paper defines it."""
    total = 0
    for between, unary in ((lam1, lam3), (lam2, lam4)):
        for direction, x in (("horizontal", between + unary), ("vertical", -between)):
            total += int(chain_minima(along(x, direction), model.edges(direction)).sum())
    rest = model.costs - lam3[:, :, :, None] - lam4[:, :, None, :]
    return total + int(rest.min(axis=(2, 3)).sum())


# --- Algorithm 1 ---------------------------------------------------------------------------------


class FixedShares:
    """A share of whole numbers, rounded down, in units of 2^-16."""

    @staticmethod
    def of(share: float) -> int:
        return min(int(share * 65536), 65535)

    @staticmethod
    def ratio(part: int, whole: int) -> int:
        return part * 65536 // whole

    @staticmethod
    def take(total: Array, share: int) -> Array:
        return total * share // 65536


class FloatShares:
    """A share of whole numbers, rounded down, by a product in float32."""

    @staticmethod
    def of(share: float) -> np.float32:
        return np.float32(share)

    @staticmethod
    def ratio(part: int, whole: int) -> np.float32:
        return np.float32(part) / np.float32(whole)

    @staticmethod
    def take(total: Array, share: np.float32) -> Array:
        return np.floor(total.astype(np.float32) * share).astype(np.int64)


class Reference:
    """Algorithm 1 in int64 with two `hold` for each plane and all constants left where they are.

    `literal` adds the messages between the planes to λ, as they are printed.
    """

    def __init__(self, problem: Problem, *, literal: bool = False) -> None:
        self.model, self.config, self.literal = problem.rounded, problem.config, literal
        fixed = problem.arithmetic().dtype is np.int16
        self._shares: Any = FixedShares if fixed else FloatShares
        counts = {"u": problem.window.du, "v": problem.window.dv}
        zero = {p: np.zeros((*problem.shape, d), np.int64) for p, d in counts.items()}
        self.lam, self.slack = dict(zero), dict(zero)
        self.hold = {p: dict.fromkeys(DIRECTIONS, zero[p]) for p in counts}
        self._passes = {"u": 0, "v": 0}
        self._start = "horizontal"

    def iterate(self) -> int:
        """One outer iteration; return the bound."""
        self.message("u")
        self.dmm("u", self._start)
        self.message("v")
        bound = self.dmm("v", other(self._start))
        self._start = other(self._start)
        return bound

    def message(self, to: str) -> None:
        if to == "u":
            message = (self.model.costs - self.lam["v"][:, :, None, :]).min(axis=3)
        else:
            message = (self.model.costs - self.lam["u"][:, :, :, None]).min(axis=2)
        self.lam[to] = self.lam[to] + message if self.literal else message

    def dmm(self, plane: str, start: str) -> int:
        hold, direction = self.hold[plane], start
        for _ in range(2 * self.config.inner - 1):
            x = self.lam[plane] - hold[other(direction)]
            reverse = self._passes[plane] // 2 % 2 == 1
            s = self._minorant(x, direction, reverse)
            hold[direction] = x - s
            self._passes[plane] += 1
            direction = other(direction)
        self.slack[plane] = s
        self.lam[plane] = hold["horizontal"] + hold["vertical"]
        return int(s.min(axis=2).sum())

    def psi(self) -> int:
        lam1, lam2 = (-self.hold[plane]["vertical"] for plane in ("u", "v"))
        return psi(self.model, lam1, lam2, self.lam["u"], self.lam["v"])

    def _minorant(self, volume: Array, direction: str, reverse: bool) -> Array:
        x, tables = along(volume, direction), self.model.edges(direction)
        if reverse:
            x, tables = x[:, ::-1], tables[:, ::-1]
        nested = self.config.minorant == "hierarchical"
        s = self._hierarchical(x, tables) if nested else self._sequential(x, tables)
        return along(s[:, ::-1] if reverse else s, direction)

    def _share_out(
        self, before: Array, after: Array, table: Array, share: Any
    ) -> tuple[Array, Array]:
        """What the two nodes of an edge get, from their min-marginals on either side of it."""
        m1 = send(before, table)
        total = m1 + after
        kept = self._shares.take(total - total.min(axis=1, keepdims=True), share)
        m = send(kept - m1, table)
        m -= m.min(axis=1, keepdims=True)
        return m, send(-m, table)

    def _sequential(self, x: Array, tables: Array) -> Array:
        n = x.shape[1]
        backward = sweep(x[:, ::-1], tables[:, ::-1])[::-1]
        s, cm = [], x[:, 0]
        for i in range(n - 1):
            share = self._shares.of(max(self.config.kappa, 1 / (n - i)))
            m, handed_on = self._share_out(cm, backward[i + 1], tables[:, i], share)
            s.append(cm + m)
            cm = x[:, i + 1] + handed_on
        return np.stack([*s, cm], axis=1)

    def _hierarchical(self, x: Array, tables: Array) -> Array:
        n = x.shape[1]
        if n == 1:
            return x
        half = n // 2
        first, second = x[:, :half].copy(), x[:, half:].copy()
        before = sweep(first, tables[:, : half - 1])[-1]
        after = sweep(second[:, ::-1], tables[:, half:][:, ::-1])[-1]
        share = self._shares.ratio(half, n)
        m, handed_on = self._share_out(before, after, tables[:, half - 1], share)
        first[:, -1] += m
        second[:, 0] += handed_on
        halves = (
            self._hierarchical(first, tables[:, : half - 1]),
            self._hierarchical(second, tables[:, half:]),
        )
        return np.concatenate(halves, axis=1)
