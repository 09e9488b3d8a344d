"""Problems of the joint model: the model in plain numpy, and problems for the tests."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

import hamflow
from _problems import all_costs, all_distances, random_bits, same_bytes
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

    @property
    def m(self) -> int:
        """Bits of a descriptor."""
        return 64 * self.descriptors["bits0"][0, 0].size

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
        return np.where(distances < 0, self.config.c_outside, 2.0 * distances - self.m)

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
    words: int = 1,
    **config: Any,
) -> Problem:
    """Two layers that move differently and some noise, in most cases; an image of any contrast."""
    height, width = shape
    window = Window.of(window)
    bits0, bits1 = (random_bits(rng, height, width, words) for _ in range(2))
    if kind == "moved":
        v, u = (
            first + rng.integers(count, size=2)
            for first, count in ((window.v0, window.dv), (window.u0, window.du))
        )
        y, x = np.mgrid[:height, :width]
        layer = (x < width // 2).astype(int)
        seen = bits1[(y + v[layer]) % height, (x + u[layer]) % width]
        noise = random_bits(rng, height, width, words) & random_bits(rng, height, width, words)
        new = rng.random(shape) < 0.3
        bits0 = np.where(new if words == 1 else new[..., None], bits0, seen ^ noise)
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
WORDS = st.sampled_from([1, 1, 2])
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
        "rounding": draw(st.sampled_from(["argmin", "icm", "rows", "chains"])),
    }
    return some | fixed


@st.composite
def tiny_problems(draw: st.DrawFn, **fixed: Any) -> Problem:
    shape, window = draw(st.sampled_from(TINY))
    rng = np.random.default_rng(draw(SEEDS))
    kind, words = draw(st.sampled_from(KINDS)), draw(WORDS)
    return random_problem(rng, shape, window, kind, words, **draw(parameters(**fixed)))


def with_phi(problem: Problem, rng: np.random.Generator, m: int = 7) -> Problem:
    """The same with float descriptors, whose costs have about the range of the bits'."""
    size = np.sqrt(100 / m)
    phi = {
        name: rng.uniform(-size, size, (*problem.shape, m)).astype(np.float32)
        for name in ("phi0", "phi1")
    }
    return replace(problem, descriptors=phi).with_config(arithmetic="auto")


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
    kind, words = draw(st.sampled_from(KINDS)), draw(WORDS)
    problem = random_problem(rng, shape, window, kind, words, **draw(parameters(**fixed)))
    return replace(problem, image=other_image(problem.image, draw(st.sampled_from(IMAGES))))


def usual(seed: int = 0, shape: tuple[int, int] = (9, 11), **config: Any) -> Problem:
    """A problem with some structure, for which the solver has something to do."""
    settings = {"gap_tolerance": 0.0, **config}
    return random_problem(np.random.default_rng(seed), shape, (-3, 6, -2, 5), **settings)


def random_labels(rng: np.random.Generator, problem: Problem) -> tuple[Array, Array]:
    window = problem.window
    return tuple(  # type: ignore[return-value]
        rng.integers(0, count, problem.shape).astype(np.int16) for count in (window.du, window.dv)
    )


def random_unary(problem: Problem, seed: int, most: int = 60) -> tuple[Array, Array]:
    """Costs of the labels of both planes."""
    rng = np.random.default_rng(seed)
    counts = (problem.window.du, problem.window.dv)
    a, b = (rng.integers(0, most + 1, (*problem.shape, n)).astype(np.uint8) for n in counts)
    return a, b


def same_result(a: CrfResult, b: CrfResult) -> bool:
    arrays = ("u", "v", "slack_u", "slack_v", "lam_v", "margin")
    numbers = ("bound", "energy", "gap", "scale")
    return all(same_bytes(getattr(a, name), getattr(b, name)) for name in arrays) and all(
        getattr(a, name) == getattr(b, name) for name in numbers
    )
