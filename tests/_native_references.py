"""Random calls of the compiled functions, with what slow and obvious code in numpy says to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

import _chain_passes
import _choice_reference
import _interpolation_reference
import _variational_reference
from _candidates_reference import described, judged, random_scoring
from _problems import (
    FLOAT_TOLERANCE,
    BitsProblem,
    all_costs,
    all_distances,
    bits_problems,
    nearest_argmin,
    random_phi,
    shapes_and_windows,
)
from hamflow import Window

Array = NDArray[Any]
F = np.float32
SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(st.integers(1, 13), st.integers(1, 19))


@dataclass
class Call:
    """One call of a compiled function, and what it must give."""

    function: str
    arguments: dict[str, Any]
    """By their names, outputs included."""
    expected: dict[str, Array]
    """What the outputs must hold."""
    tolerance: float = 0.0
    result: float | None = None
    loose: dict[str, float] = field(default_factory=dict)
    """Tolerances of single outputs."""
    others: tuple[str, ...] = ()
    """Outputs that are not compared."""

    @property
    def outputs(self) -> set[str]:
        return {*self.expected, *self.others}

    def __repr__(self) -> str:  # what hypothesis prints; the arrays follow from the seed
        shown = {k: getattr(v, "shape", v) for k, v in self.arguments.items()}
        return f"Call({self.function}, {shown})"


def blank(dtype: Any, *shape: int) -> Array:
    """An output whose old content is noticed if it stays."""
    return np.full(shape, 77, dtype)


# --- matching ------------------------------------------------------------------------------------


@dataclass
class Pair:
    """Descriptors of bits or of floats, and their whole 4D cost."""

    fields: dict[str, Array]
    window: Window
    outside: float
    costs: Array
    rng: np.random.Generator

    @property
    def shape(self) -> tuple[int, int]:
        return self.costs.shape[0], self.costs.shape[1]

    def labels(self, *shape: int, below: int) -> NDArray[np.int16]:
        return self.rng.integers(0, below, shape, np.int16)

    def at(self, u: Array, v: Array) -> Array:
        y, x = np.ogrid[: self.shape[0], : self.shape[1]]
        found: Array = self.costs[y, x, u, v]
        return found


@st.composite
def pairs_of_bits(draw: st.DrawFn) -> Pair:
    p: BitsProblem = draw(bits_problems(entries=6000))
    costs = all_distances(p.bits0, p.bits1, p.window, p.outside)
    rng = np.random.default_rng(draw(SEEDS))
    return Pair({"bits0": p.bits0, "bits1": p.bits1}, p.window, p.outside, costs, rng)


@st.composite
def pairs_of_floats(draw: st.DrawFn) -> Pair:
    height, width, window = draw(shapes_and_windows(entries=3000))
    m = draw(st.sampled_from([1, 7, 64, 65]))
    rng = np.random.default_rng(draw(SEEDS))
    phi = [random_phi(rng, height, width, m) for _ in range(2)]
    outside = draw(st.sampled_from([0.0, -3.5, 30.0]))
    costs = all_costs(*phi, window, outside)
    return Pair({"phi0": phi[0], "phi1": phi[1]}, window, outside, costs, rng)


def projection(p: Pair, function: str, dtype: Any) -> Call:
    w = p.window
    out = {"cu": blank(dtype, *p.shape, w.du), "cv": blank(dtype, *p.shape, w.dv)}
    hats = {"v_hat": blank(np.int16, *p.shape, w.du), "u_hat": blank(np.int16, *p.shape, w.dv)}
    expected = {"cu": p.costs.min(axis=3), "cv": p.costs.min(axis=2)}
    given = p.fields | {"window": w.as_tuple(), "outside": p.outside}
    if dtype == F:  # where nearly equal costs may change places
        return Call(function, given | out | hats, expected, FLOAT_TOLERANCE, others=tuple(hats))
    expected |= {"v_hat": p.costs.argmin(axis=3), "u_hat": p.costs.argmin(axis=2)}
    return Call(function, given | out | hats, expected)


def sent(p: Pair, costs: Array, function: str, to: str, dtype: Any) -> Call:
    """The message of costs in float64; rounding of 16-bit costs is `message16`'s."""
    senders, receivers = (p.window.dv, p.window.du) if to == "u" else (p.window.du, p.window.dv)
    lam = p.rng.integers(-2000, 2000, (*p.shape, senders)).astype(dtype)
    along = lam[:, :, None, :] if to == "u" else lam[:, :, :, None]
    found = (costs - along.astype(np.float64)).min(axis=3 if to == "u" else 2)
    arguments = p.fields | {"window": p.window.as_tuple(), "to": to, "lam": lam}
    arguments["out"] = blank(dtype, *p.shape, receivers)
    return Call(function, arguments, {"out": found}, 0 if dtype == np.int16 else 1e-3)


@st.composite
def messages(draw: st.DrawFn, function: str) -> Call:
    to = draw(st.sampled_from(["u", "v"]))
    if function == "float_message":
        p = draw(pairs_of_floats())
        call = sent(p, p.costs, function, to, F)
        call.arguments["outside"] = p.outside
        return call
    p = draw(pairs_of_bits())
    b0, b1 = p.fields.values()
    distances = all_distances(b0, b1, p.window, -1)
    step, base, outside = (
        draw(st.integers(1, 64)),
        draw(st.integers(-4000, 4000)),
        draw(st.integers(-9000, 9000)),
    )
    costs = np.where(distances < 0, outside, step * distances + base)  # far from saturation
    dtype = np.int16 if function == "message16" else F
    call = sent(p, costs, function, to, dtype)
    call.arguments["cost"] = (step, base, outside)
    return call


def gathered(p: Pair) -> Call:
    w = p.window
    v_hat = p.labels(*p.shape, w.du, below=w.dv)
    u_hat = p.labels(*p.shape, w.dv, below=w.du)
    out = {"cu": blank(F, *p.shape, w.du), "cv": blank(F, *p.shape, w.dv)}
    expected = {
        "cu": np.take_along_axis(p.costs, v_hat[..., None].astype(int), axis=3)[..., 0],
        "cv": np.take_along_axis(p.costs, u_hat[:, :, None].astype(int), axis=2)[:, :, 0],
    }
    given = {"window": w.as_tuple(), "outside": p.outside, "v_hat": v_hat, "u_hat": u_hat}
    return Call("gather", p.fields | given | out, expected, FLOAT_TOLERANCE)


def scattered(p: Pair) -> Call:
    call = gathered(p)
    given = {k: v for k, v in call.arguments.items() if k not in ("outside", "cu", "cv")}
    w, (height, width) = p.window, p.shape
    phi0, phi1 = (a.astype(np.float64) for a in p.fields.values())
    grads = {
        name: p.rng.normal(size=(*p.shape, count)).astype(F)
        for name, count in (("grad_cu", w.du), ("grad_cv", w.dv))
    }
    expected = {"grad_phi0": np.zeros_like(phi0), "grad_phi1": np.zeros_like(phi1)}
    for name, other in (("grad_cu", given["v_hat"]), ("grad_cv", given["u_hat"])):
        for (y, x, k), g in np.ndenumerate(grads[name]):
            there = int(other[y, x, k])
            u, v = (k, there) if name == "grad_cu" else (there, k)
            ty, tx = y + w.v0 + v, x + w.u0 + u
            if 0 <= ty < height and 0 <= tx < width:
                expected["grad_phi0"][y, x] -= g * phi1[ty, tx]
                expected["grad_phi1"][ty, tx] -= g * phi0[y, x]
    out = {name: blank(F, *array.shape) for name, array in expected.items()}
    return Call("scatter", given | grads | out, expected, FLOAT_TOLERANCE * 10)


def rescanned(p: Pair, function: str) -> Call:
    v = p.labels(*p.shape, below=p.window.dv)
    row = np.take_along_axis(p.costs, v[:, :, None, None].astype(int), axis=3)[..., 0]
    flow = np.stack([nearest_argmin(row, p.window.u0), v + np.int64(p.window.v0)], axis=2).astype(F)
    given = {"window": p.window.as_tuple(), "outside": p.outside, "v_labels": v}
    return Call(function, p.fields | given | {"flow": blank(F, *p.shape, 2)}, {"flow": flow})


def costs_of_labels(p: Pair) -> Call:
    u, v = (p.labels(*p.shape, below=n) for n in (p.window.du, p.window.dv))
    costs = p.at(u, v)
    if "bits0" in p.fields:  # c = 2 h - m
        marked = all_distances(*p.fields.values(), p.window, -1)
        y, x = np.ogrid[: p.shape[0], : p.shape[1]]
        words = p.fields["bits0"].reshape(*p.shape, -1).shape[2]
        here = marked[y, x, u, v]
        costs = np.where(here < 0, p.outside, 2 * here - 64 * words)
    given = {"window": p.window.as_tuple(), "u": u, "v": v, "outside": float(p.outside)}
    out = {"out": blank(np.float64, *p.shape)}
    return Call("label_costs", p.fields | given | out, {"out": costs}, 1e-9)


@st.composite
def best_labels(draw: st.DrawFn) -> Call:
    shape, rng = draw(SIZES), np.random.default_rng(draw(SEEDS))
    count, first = draw(st.sampled_from([1, 2, 15, 33, 64, 200])), draw(st.integers(-90, 90))
    dtype = draw(st.sampled_from([np.uint8, np.int16, F]))
    low = 0 if dtype == np.uint8 else -300
    costs = (rng.integers(low // 60, 5, (*shape, count)) * 60).astype(dtype)  # with many ties
    expected = nearest_argmin(costs, first) - first
    arguments = {"costs": costs, "first": first, "labels": blank(np.int16, *shape)}
    return Call("best_labels", arguments, {"labels": expected})


# --- the joint model -----------------------------------------------------------------------------


@st.composite
def chain_passes(draw: st.DrawFn) -> Call:
    p = draw(_chain_passes.TINY)
    found = _chain_passes.brute(p)
    arguments = {
        "lam": p.lam.copy(),
        "hold": p.hold.copy(),
        "s": np.full_like(p.lam, 77),
        "edges": p.edges,
        "shares": p.shares,
        "vertical": p.vertical,
        "reverse": p.reverse,
        "reach": p.reach,
    }
    expected = {"lam": found.lam, "hold": found.hold, "s": found.s}
    return Call("chain_pass", arguments, expected, result=found.bound)


@st.composite
def label_sums(draw: st.DrawFn, function: str) -> Call:
    shape, rng = draw(SIZES), np.random.default_rng(draw(SEEDS))
    count = draw(st.sampled_from([1, 2, 3, 17, 64]))
    labels = rng.integers(0, count, shape, np.int16)
    own = labels[..., None].astype(int)
    if function == "add_label_costs":
        costs, total = rng.integers(0, 256, (*shape, count), np.uint8), rng.normal(size=shape)
        expected = total + np.take_along_axis(costs, own, axis=2)[..., 0]
        return Call(
            function, {"costs": costs, "labels": labels, "total": total}, {"total": expected}
        )
    if function == "add_scaled":
        dtype = draw(st.sampled_from([np.int16, F]))
        volume = rng.integers(-90, 90, (*shape, count)).astype(dtype)
        values, factor = rng.integers(0, 256, volume.shape, np.uint8), draw(st.integers(0, 100))
        expected = volume + values * np.int64(factor)
        arguments = {"volume": volume, "values": values, "factor": factor}
        return Call(function, arguments, {"volume": expected})
    dtype = draw(st.sampled_from([np.int16, F]))
    slack = rng.integers(0, 900, (*shape, count)).astype(dtype)
    apart = abs(np.arange(count) - own) > 1  # the nearest other ones do not count
    best = np.where(apart, slack.astype(np.float64), np.inf).min(axis=2)
    margin = best - np.take_along_axis(slack, own, axis=2)[..., 0]
    out = blank(F, *shape)
    return Call(function, {"slack": slack, "labels": labels, "out": out}, {"out": margin})


@st.composite
def label_energies(draw: st.DrawFn) -> Call:
    (h, w), rng = draw(SIZES), np.random.default_rng(draw(SEEDS))
    right, down = (rng.random((h, w)).astype(F) for _ in range(2))
    u, v = (rng.integers(0, 9, (h, w), np.int16) for _ in range(2))
    rho, data = np.sort(rng.random(draw(st.integers(1, 6)))), rng.normal(size=(h, w))

    def step(a: Array, b: Array) -> Array:
        apart: Array = rho[np.minimum(abs(a.astype(int) - b), len(rho) - 1)]
        return apart

    energy = data.sum()
    for field_ in (u, v):
        energy += (right[:, :-1] * step(field_[:, :-1], field_[:, 1:])).sum()
        energy += (down[:-1] * step(field_[:-1], field_[1:])).sum()
    arguments = {"right": right, "down": down, "rho": rho, "u": u, "v": v, "data": data}
    return Call("label_energy", arguments, {}, 1e-6, result=float(energy))


@st.composite
def expectations(draw: st.DrawFn) -> Call:
    shape, rng = draw(SIZES), np.random.default_rng(draw(SEEDS))
    count, first = draw(st.integers(1, 40)), draw(st.integers(-30, 10))
    slope, free = draw(st.sampled_from([0.0, 0.5, 4.0])), draw(st.sampled_from([0.0, 1.5]))
    expected = rng.normal(0, 15, shape).astype(F)
    most = rng.uniform(-10, 300, shape).astype(F)
    away = abs(first + np.arange(count, dtype=F) - expected[..., None]) - F(free)
    limit = np.clip(most, 0, 255)[..., None]
    costs = np.minimum(limit, np.maximum(0, away * F(slope))).astype(np.uint8)
    arguments = {"expected": expected, "most": most, "slope": slope, "free": free, "first": first}
    return Call(
        "expected_costs", arguments | {"out": blank(np.uint8, *shape, count)}, {"out": costs}
    )


# --- images --------------------------------------------------------------------------------------


@st.composite
def filtered(draw: st.DrawFn, function: str) -> Call:
    (h, w), rng = draw(SIZES), np.random.default_rng(draw(SEEDS))
    image = rng.random((h, w, draw(st.integers(1, 4)))).astype(F)
    if function == "smooth":
        weights = rng.random(2 * draw(st.integers(0, 3)) + 1).astype(F)
        reach = len(weights) // 2
        padded = np.pad(image, ((reach, reach), (reach, reach), (0, 0)), "edge").astype(float)
        columns = sum(weight * padded[k : k + h] for k, weight in enumerate(weights))
        both = sum(weight * columns[:, k : k + w] for k, weight in enumerate(weights))
        arguments = {"image": image, "weights": weights, "smoothed": blank(F, *image.shape)}
        return Call(function, arguments, {"smoothed": both}, FLOAT_TOLERANCE)
    if function == "contrasts":
        expected = {"right": np.zeros((h, w)), "down": np.zeros((h, w))}
        expected["right"][:, :-1] = abs(np.diff(image, axis=1)).mean(axis=2)
        expected["down"][:-1] = abs(np.diff(image, axis=0)).mean(axis=2)
        out = {name: blank(F, h, w) for name in expected}
        return Call(function, {"image": image} | out, expected, FLOAT_TOLERANCE)
    factor = draw(st.integers(1, 5))
    if function == "reduce":
        rows, columns = -(-h // factor), -(-w // factor)
        more = ((0, rows * factor - h), (0, columns * factor - w), (0, 0))
        boxes = np.pad(image, more, "edge").reshape(rows, factor, columns, factor, -1)
        out = blank(F, rows, columns, image.shape[2])
        means = boxes.mean(axis=(1, 3), dtype=np.float64)
        arguments = {"image": image, "factor": factor, "out": out}
        return Call(function, arguments, {"out": means}, FLOAT_TOLERANCE)
    expected = image.astype(np.float64)  # upsample
    for axis, side in enumerate((h, w)):
        at = np.clip((np.arange(side * factor) + 0.5) / factor - 0.5, 0, side - 1)
        low = np.minimum(at.astype(int), max(side - 2, 0))
        part = np.expand_dims(at - low, tuple(k for k in range(3) if k != axis))
        first, second = (expected.take(np.minimum(low + k, side - 1), axis) for k in (0, 1))
        expected = first + part * (second - first)
    out = blank(F, *expected.shape)
    return Call(
        function, {"field": image, "factor": factor, "out": out}, {"out": expected}, FLOAT_TOLERANCE
    )


@st.composite
def bytes_of(draw: st.DrawFn, function: str) -> Call:
    shape, rng = draw(SIZES), np.random.default_rng(draw(SEEDS))
    if function == "turn":
        array = rng.integers(0, 256, (*shape, draw(st.integers(1, 24))), np.uint8)
        turned = array.transpose(1, 0, 2)
        return Call(
            function, {"array": array, "out": blank(np.uint8, *turned.shape)}, {"out": turned}
        )
    if function == "clear":
        count = draw(st.integers(0, 300))
        return Call(function, {"bytes": blank(np.uint8, count)}, {"bytes": np.zeros(count)})
    array = rng.normal(size=shape).astype(F)
    limit = float(draw(st.sampled_from([0.5, 2.0, 5.0])))
    if draw(st.booleans()):
        array[tuple(rng.integers(0, n) for n in shape)] = draw(st.sampled_from([np.nan, np.inf]))
    good = bool((abs(array) <= limit).all())
    return Call(function, {"array": array, "limit": limit}, {}, result=good)


# --- completion and refinement -------------------------------------------------------------------


@st.composite
def interpolations(draw: st.DrawFn) -> Call:
    p = _interpolation_reference.random_problem(np.random.default_rng(draw(SEEDS)))
    names = ("right", "down", "pixel", "place", "match", "trust")
    flow, distance = _interpolation_reference.Reference(p).paint()
    out = {"flow": blank(F, *flow.shape), "distance": blank(F, *distance.shape)}
    given = {name: getattr(p, name) for name in names} | {"how": p.how}
    expected = {"flow": flow, "distance": distance}
    return Call("interpolate", given | out, expected, loose={"flow": 1e-3})


@st.composite
def scorings(draw: st.DrawFn) -> Call:
    p = random_scoring(np.random.default_rng(draw(SEEDS)))
    features = described(p)
    names = ("bits", "motion", "geodesic", "texture", "size", "range", "pixel", "network")
    given = {name: getattr(p, name) for name in names}
    given |= {"matched": (p.matched, p.kept), "back": (p.back, p.back_trusted)}
    planes = features.transpose(1, 2, 0)
    expected = {"features": planes, "score": judged(p.network, features.astype(F))}
    out = {name: blank(F, *array.shape) for name, array in expected.items()}
    loose = {"features": 1e-4, "score": 1e-2}
    return Call("score_candidates", given | out, expected, loose=loose)


@st.composite
def choices(draw: st.DrawFn) -> Call:
    rng = np.random.default_rng(draw(SEEDS))
    labels, height, width = (int(n) for n in rng.integers(1, 6, 3) * (1, 3, 7))
    count = _choice_reference.FEATURES
    given = {
        "features": rng.normal(size=(labels, count, height, width)).astype(F),
        "fields": rng.random((_choice_reference.FIELDS, height, width)).astype(F),
        "network": _choice_reference.random_network(rng),
    }
    expected = {"score": _choice_reference.scored(**given)}
    size = float(np.abs(expected["score"]).max())
    score = blank(F, labels, height, width)
    return Call("score_in_context", given | {"score": score}, expected, 1e-4 * (1 + size))


@st.composite
def color_differences(draw: st.DrawFn) -> Call:
    rng = np.random.default_rng(draw(SEEDS))
    labels, height, width, channels, step = (
        int(n) for n in rng.integers(1, 5, 5) * (1, 3, 6, 1, 1)
    )
    first, second = rng.random((2, height, width, channels)).astype(F)
    motion = (rng.normal(size=(labels, height, width, 2)) * 5).astype(F)
    given = {"motion": motion, "first": first, "second": second, "step": step}
    expected = {"out": _choice_reference.colors_apart(**given)}
    return Call(
        "color_differences", given | {"out": blank(F, *expected["out"].shape)}, expected, 1e-4
    )


@st.composite
def refinements(draw: st.DrawFn) -> Call:
    shape = draw(st.tuples(st.integers(2, 7), st.integers(2, 9)))
    schedule = draw(st.sampled_from([(1, 1, 1, 1.0), (1, 2, 2, 1.5), (2, 1, 3, 1.8)]))
    p = _variational_reference.random_problem(
        np.random.default_rng(draw(SEEDS)), shape, schedule=schedule
    )
    alpha, zeta, epsilon = p.terms
    given = {
        "f0": p.f0,
        "f1": p.f1,
        "first_group": p.first_group,
        "strength": p.strength,
        "weight": p.weight,
        "edges": (p.right, p.down),
        "schedule": p.schedule,
        "terms": (alpha, 0.0, zeta, epsilon),
        "limit": float("inf"),
        "start": p.flow,
    }
    flow = _variational_reference.reference(p)
    return Call("variational", given | {"flow": blank(F, *flow.shape)}, {"flow": flow}, 2e-3)


def mapped(pairs: st.SearchStrategy[Pair], call: Callable[..., Call], *more: Any) -> Any:
    return pairs.map(lambda p: call(p, *more))


CALLS: dict[str, st.SearchStrategy[Call]] = {
    "min_projection": mapped(pairs_of_bits(), projection, "min_projection", np.uint8),
    "float_min_projection": mapped(pairs_of_floats(), projection, "float_min_projection", F),
    **{name: messages(name) for name in ("message16", "message32", "float_message")},
    "gather": mapped(pairs_of_floats(), gathered),
    "scatter": mapped(pairs_of_floats(), scattered),
    "rescan_bits": mapped(pairs_of_bits(), rescanned, "rescan_bits"),
    "label_costs": mapped(st.one_of(pairs_of_bits(), pairs_of_floats()), costs_of_labels),
    "best_labels": best_labels(),
    "chain_pass": chain_passes(),
    **{name: label_sums(name) for name in ("add_label_costs", "add_scaled", "label_margins")},
    "label_energy": label_energies(),
    "expected_costs": expectations(),
    **{name: filtered(name) for name in ("smooth", "contrasts", "reduce", "upsample")},
    **{name: bytes_of(name) for name in ("turn", "clear", "all_within")},
    "interpolate": interpolations(),
    "score_candidates": scorings(),
    "score_in_context": choices(),
    "color_differences": color_differences(),
    "variational": refinements(),
}
"""Random calls by the name of their function."""
