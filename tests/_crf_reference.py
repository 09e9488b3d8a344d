"""The joint model in plain numpy: energies of all labelings, Algorithm 1 in int64, LPs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from _problems import all_costs, all_distances, random_bits
from hamflow import Window, crf
from hamflow.crf import CrfConfig, CrfResult
from hamflow.crf.arithmetic import Arithmetic
from hamflow.crf.data import BitsData, PhiData
from hamflow.crf.dual import Dual

Array = NDArray[Any]

DIRECTIONS = ("horizontal", "vertical")


def other(name: str) -> str:
    """The other direction, or the other plane."""
    return {"horizontal": "vertical", "vertical": "horizontal", "u": "v", "v": "u"}[name]


# --- problems ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """Costs H×W×du×dv, and w ρ(t), t = 0, 1, ..., of the edges to the right and down, H×W×T.

    Unrounded in float64, or in units of the solver in int64.
    """

    costs: Array
    right: Array
    down: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.costs.shape[0], self.costs.shape[1]

    def edges(self, direction: str) -> Array:
        """Return w ρ(t) along all rows or columns: chains × edges × T."""
        if direction == "horizontal":
            return self.right[:, :-1]
        return self.down[:-1].swapaxes(0, 1)


@dataclass(frozen=True)
class Problem:
    """What `solve` gets."""

    descriptors: dict[str, Array]
    image: Array
    window: Window
    config: CrfConfig

    def __repr__(self) -> str:  # what hypothesis prints; the rest follows from the seed
        return f"Problem({[*self.descriptors]}, {self.shape}, {self.window}, {self.config})"

    @property
    def shape(self) -> tuple[int, int]:
        return self.image.shape[0], self.image.shape[1]

    def with_config(self, **changes: Any) -> Problem:
        return replace(self, config=replace(self.config, **changes))

    def solve(self, **arguments: Any) -> CrfResult:
        return crf.solve(
            **self.descriptors,
            image=self.image,
            window=self.window,
            config=self.config,
            **arguments,
        )

    def weights(self) -> tuple[Array, Array]:
        return crf.edge_weights(self.image, self.config.alpha)

    def data(self) -> BitsData | PhiData:
        kind = BitsData if "bits0" in self.descriptors else PhiData
        return kind(*self.descriptors.values(), self.window, self.config.c_outside)

    def arithmetic(self) -> Arithmetic:
        floats = "phi0" in self.descriptors
        return Arithmetic.choose(self.config, self.data().largest, floats=floats)

    def dual(self, data: Any = None) -> Dual:
        """The solver's dual, where it has just begun."""
        data = self.data() if data is None else data
        data.use(self.arithmetic())
        return Dual(data, self.config, self.arithmetic(), self.weights())

    def costs(self) -> Array:
        """The 4D costs, unrounded."""
        if "phi0" in self.descriptors:
            return all_costs(*self.descriptors.values(), self.window, self.config.c_outside)
        distances = all_distances(*self.descriptors.values(), self.window, -1)
        return np.where(distances < 0, self.config.c_outside, 2.0 * distances - 64)

    @functools.cached_property
    def model(self) -> Model:
        """The model of the user."""
        t = np.arange(max(self.window.du, self.window.dv))
        rho = np.array([rho_of(self.config, int(distance)) for distance in t])
        right, down = (weights.astype(np.float64)[..., None] * rho for weights in self.weights())
        return Model(self.costs(), right, down)

    @functools.cached_property
    def rounded(self) -> Model:
        """The model that the solver computes with, all rounded down to its units."""
        config, scale = self.config, self.arithmetic().scale
        labels = max(self.window.du, self.window.dv)
        t = np.arange(labels)
        slope = (config.tau2 - config.tau1) / (config.delta - 1)
        tables = []
        for weights in self.weights():
            w = weights.astype(np.float64)[..., None]
            first, step, cap = (
                np.floor(w * cost * scale).astype(np.int64)
                for cost in (config.tau1, slope, config.tau2)
            )
            # δ has little to do with it where all labels are nearer to each other.
            furthest = max(1, min(int(np.ceil(config.delta)) - 1, labels))
            reach = 1 << (furthest - 1).bit_length()
            table = np.where(t <= reach, np.minimum(first + step * (t - 1), cap), cap)
            tables.append(np.where(t == 0, 0, table))
        return Model(np.floor(self.costs() * scale).astype(np.int64), *tables)


def rho_of(config: CrfConfig, t: int) -> float:
    """ρ(t) from its definition."""
    if t == 0:
        return 0.0
    if t >= config.delta:
        return config.tau2
    return config.tau1 + (config.tau2 - config.tau1) * (t - 1) / (config.delta - 1)


KINDS = ("moved", "random", "tied", "flat")


def random_problem(
    rng: np.random.Generator,
    shape: tuple[int, int],
    window: Window | tuple[int, int, int, int],
    kind: str = "moved",
    **config: Any,
) -> Problem:
    """Two layers that move differently and some noise, in most cases; an image of any contrast."""
    height, width = shape
    window = Window.of(window)
    bits0, bits1 = random_bits(rng, height, width), random_bits(rng, height, width)
    if kind == "moved":
        v, u = (
            first + rng.integers(count, size=2)
            for first, count in ((window.v0, window.dv), (window.u0, window.du))
        )
        y, x = np.mgrid[:height, :width]
        layer = (x < width // 2).astype(int)
        seen = bits1[(y + v[layer]) % height, (x + u[layer]) % width]
        noise = random_bits(rng, height, width) & random_bits(rng, height, width)
        bits0 = np.where(rng.random(shape) < 0.3, bits0, seen ^ noise)
    elif kind == "tied":
        bits0, bits1 = bits0 & np.uint64(3), bits1 & np.uint64(3)
    elif kind == "flat":
        bits0, bits1 = bits0 * np.uint64(0), bits1 * np.uint64(0)
    contrast = int(rng.choice([0, 10, 60, 255]))
    image = rng.integers(0, contrast + 1, (height, width, 3)).astype(np.uint8)
    return Problem({"bits0": bits0, "bits1": bits1}, image, window, CrfConfig(**config))


class ArrayData:
    """Any costs H×W×du×dv, as the solver's data term."""

    def __init__(self, costs: Array, window: Window) -> None:
        self._costs, self.window = costs, window
        self.shape = (costs.shape[0], costs.shape[1])
        self.largest = float(abs(costs).max())

    def use(self, arithmetic: Any) -> None:
        self._fixed = np.floor(self._costs * arithmetic.scale).astype(np.int64)

    def message(self, to: str, lam: Array, out: Array) -> None:
        sent = lam[:, :, None, :] if to == "u" else lam[:, :, :, None]
        out[:] = (self._fixed - sent).min(axis=3 if to == "u" else 2)


SEEDS = st.integers(0, 2**32 - 1)
TINY = (  # shapes and windows with few enough labelings to look at all of them
    ((2, 2), (-1, 2, 0, 2)),
    ((2, 2), (-1, 3, -1, 3)),
    ((2, 3), (-1, 3, 0, 2)),
    ((3, 2), (0, 2, -1, 2)),
    ((1, 4), (-1, 3, -1, 2)),
    ((4, 1), (0, 2, -2, 4)),
    ((3, 3), (-1, 2, -1, 2)),
    ((2, 4), (-1, 3, 0, 1)),
    ((3, 2), (0, 1, -2, 4)),
    ((1, 1), (-3, 5, -2, 6)),
    ((2, 2), (0, 1, 0, 1)),
    ((2, 3), (30, 2, -9, 2)),
)


@st.composite
def parameters(draw: st.DrawFn, **fixed: Any) -> dict[str, Any]:
    """Parameters of the model and of the solver, not only usual ones."""
    tau2 = draw(st.sampled_from([25.0, 25.0, 50.0, 3.3, 0.0]))
    some = {
        "tau2": tau2,
        "tau1": min(tau2, draw(st.sampled_from([0.25, 4.0, 0.0, 7.7]))),
        "delta": draw(st.sampled_from([2.0, 2.0, 2.5, 3.0, 4.0, 6.0])),
        "alpha": draw(st.sampled_from([8.5, 8.5, 0.0, 30.0])),
        "c_outside": draw(st.sampled_from([0.0, 0.0, -32.0, 41.3, 64.0])),
        "outer": draw(st.integers(1, 4)),
        "inner": draw(st.integers(1, 4)),
        "gap_tolerance": 0.0,
        "kappa": draw(st.sampled_from([0.2, 0.2, 0.0, 1.0])),
        "minorant": draw(st.sampled_from(["sequential", "hierarchical"])),
        "arithmetic": draw(st.sampled_from(["int16", "float32"])),
        "rounding": draw(st.sampled_from(["argmin", "icm", "chains"])),
    }
    return some | fixed


@st.composite
def tiny_problems(draw: st.DrawFn, **fixed: Any) -> Problem:
    shape, window = draw(st.sampled_from(TINY))
    rng = np.random.default_rng(draw(SEEDS))
    kind = draw(st.sampled_from(KINDS))
    return random_problem(rng, shape, window, kind, **draw(parameters(**fixed)))


def with_phi(problem: Problem, rng: np.random.Generator, m: int = 7) -> Problem:
    """The same with float descriptors, whose costs have about the range of the bits'."""
    size = np.sqrt(100 / m)
    phi = {
        name: rng.uniform(-size, size, (*problem.shape, m)).astype(np.float32)
        for name in ("phi0", "phi1")
    }
    return replace(problem, descriptors=phi).with_config(arithmetic="auto")


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


# --- LP relaxations ------------------------------------------------------------------------------


def local_polytope(unaries: list[Array], edges: list[tuple[int, int, Array]]) -> float:
    """The LP relaxation of a pairwise model: marginals of nodes and edges that agree."""
    starts = np.cumsum([0, *(a.size for a in unaries), *(cost.size for _, _, cost in edges)])
    rows: list[Array] = []
    columns: list[Array] = []
    values: list[Array] = []
    right: list[float] = []

    def constrain(plus: Array, minus: Array, total: float) -> None:
        """Σ plus - Σ minus = total."""
        rows.append(np.full(len(plus) + len(minus), len(right)))
        columns.append(np.concatenate([plus, minus]))
        values.append(np.repeat([1.0, -1.0], [len(plus), len(minus)]))
        right.append(total)

    none = np.array([], int)
    for node, costs in enumerate(unaries):
        constrain(starts[node] + np.arange(costs.size), none, 1.0)
    for number, (i, j, cost) in enumerate(edges):
        at = starts[len(unaries) + number] + np.arange(cost.size).reshape(cost.shape)
        for k in range(cost.shape[0]):
            constrain(at[k], np.array([starts[i] + k]), 0.0)
        for k in range(cost.shape[1]):
            constrain(at[:, k], np.array([starts[j] + k]), 0.0)
    matrix = sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(len(right), int(starts[-1])),
    )
    objective = np.concatenate([*(a.ravel() for a in unaries), *(c.ravel() for _, _, c in edges)])
    result = linprog(objective, A_eq=matrix, b_eq=np.array(right), method="highs")
    assert result.status == 0, result.message
    return float(result.fun)


def decomposed_lp(model: Model) -> float:
    """Of the paper's model: nodes u and v for each pixel, and its costs on an edge between them."""
    height, width, du, dv = model.costs.shape
    n = height * width
    unaries = [np.zeros(du)] * n + [np.zeros(dv)] * n
    edges = [(i, n + i, costs) for i, costs in enumerate(model.costs.reshape(n, du, dv))]
    for (y, x), (y2, x2), table in pairs(model):
        i, j = y * width + x, y2 * width + x2
        edges += [(i, j, table[differences(du)]), (n + i, n + j, table[differences(dv)])]
    return local_polytope(unaries, edges)


def product_lp(model: Model) -> float:
    """Of the product model: one node with du · dv labels for each pixel."""
    width = model.shape[1]
    unaries = list(model.costs.reshape(model.shape[0] * width, -1))
    edges = [
        (y * width + x, y2 * width + x2, product_edge(model, table))
        for (y, x), (y2, x2), table in pairs(model)
    ]
    return local_polytope(unaries, edges)
