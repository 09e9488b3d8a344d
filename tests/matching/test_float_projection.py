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
    all_costs,
    all_distances,
    brute_wta,
    everywhere,
    nearest_argmin,
    random_phi,
    same_bytes,
    shapes_and_windows,
    with_threads,
)
from hamflow import InputError, Window
from hamflow.descriptors import pack_bits
from hamflow.matching import (
    FloatMinProjection,
    float_min_projection,
    hybrid_min_projection,
    min_projection,
)

Array = NDArray[Any]
Place = tuple[int, int, Window]
PLACES = shapes_and_windows(entries=15_000)
SEEDS = st.integers(0, 2**32 - 1)
OUTSIDE = st.sampled_from([0.0, 0.0, -4.5, 20.0])


def random_pair(place: Place, m: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return random_phi(rng, *place[:2], m), random_phi(rng, *place[:2], m)


def costs_at(costs: Array, result: FloatMinProjection) -> tuple[Array, Array]:
    """The 4D cost at the result's inner argmins."""
    assert result.v_hat is not None
    assert result.u_hat is not None
    at_v = np.take_along_axis(costs, result.v_hat[..., None].astype(np.intp), axis=3)[..., 0]
    at_u = np.take_along_axis(costs, result.u_hat[:, :, None].astype(np.intp), axis=2)[:, :, 0]
    return at_v, at_u


def close(a: Array, b: Array) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=FLOAT_TOLERANCE))


def same(a: FloatMinProjection, b: FloatMinProjection) -> bool:
    return all(
        same_bytes(getattr(a, name), getattr(b, name)) for name in ("cu", "cv", "v_hat", "u_hat")
    )


def assert_threads_agree(
    work: Callable[[], FloatMinProjection], result: FloatMinProjection
) -> None:
    for count in THREADS:
        assert same(with_threads(count, work), result)


# --- FF ------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(place=PLACES, m=st.sampled_from([64, 64, 1, 7, 65]), outside=OUTSIDE, seed=SEEDS)
def test_floats(place: Place, m: int, outside: float, seed: int) -> None:
    phi0, phi1 = random_pair(place, m, seed)
    window = place[2]
    costs = all_costs(phi0, phi1, window, outside)

    def work() -> FloatMinProjection:
        return float_min_projection(phi0, phi1, window, outside=outside, argmins=True)

    for level in ("reference", *hamflow.isa_levels()):
        hamflow.set_isa(level)
        result = work()
        assert result.cu.dtype == result.cv.dtype == np.float32
        assert close(result.cu, costs.min(axis=3))
        assert close(result.cv, costs.min(axis=2))
        # Another argmin is as good where the costs differ by less than rounding.
        at_v, at_u = costs_at(costs, result)
        assert close(result.cu, at_v)
        assert close(result.cv, at_u)
        plain = float_min_projection(phi0, phi1, window, outside=outside)
        assert same_bytes(plain.cu, result.cu)
        assert same_bytes(plain.cv, result.cv)
        assert plain.v_hat is plain.u_hat is None
        assert_threads_agree(work, result)
        check_winner(result, costs)


@pytest.mark.parametrize("m", [64, 7])
@pytest.mark.parametrize("width", [8, 16, 33])
def test_pixels_without_targets_beside_others(width: int, m: int) -> None:
    # Some of the pixels that share a register tile have all their targets outside.
    rng = np.random.default_rng(0)
    phi0, phi1 = random_phi(rng, 3, width, m), random_phi(rng, 3, width, m)
    for u0 in range(-width - 4, width + 2):
        for du in (2, 5, 16):
            window = Window(u0, du, -1, 2)
            costs = all_costs(phi0, phi1, window, 0.0)
            for level in hamflow.isa_levels():
                hamflow.set_isa(level)
                result = float_min_projection(phi0, phi1, window)
                assert close(result.cu, costs.min(axis=3)), (level, window)
                assert close(result.cv, costs.min(axis=2)), (level, window)


def check_winner(result: FloatMinProjection, costs: Array) -> None:
    flow, window = result.wta(), result.window
    labels = flow.astype(int) - (window.u0, window.v0)
    rows, columns = np.indices(flow.shape[:2])
    best = costs[rows, columns, labels[..., 0], labels[..., 1]]
    assert close(best, costs.min(axis=(2, 3)))


@settings(max_examples=40)
@given(place=PLACES, seed=SEEDS)
def test_ties_of_floats(place: Place, seed: int) -> None:
    # Signs alone have whole-number costs, exact in float32, with many ties.
    phi0, phi1 = (np.sign(phi) for phi in random_pair(place, 8, seed))
    costs = all_costs(phi0, phi1, place[2], 0.0)
    for result in everywhere(
        lambda: float_min_projection(phi0, phi1, place[2], outside=0, argmins=True)
    ):
        assert (result.v_hat == costs.argmin(axis=3)).all()
        assert (result.u_hat == costs.argmin(axis=2)).all()
        assert (result.wta() == brute_wta(costs, place[2])).all()


@pytest.mark.parametrize("project", [float_min_projection, hybrid_min_projection])
@pytest.mark.parametrize("outside", [0.0, 9.0])
def test_still_and_moved_frames(project: Callable[..., FloatMinProjection], outside: float) -> None:
    rng = np.random.default_rng(0)
    flat = np.broadcast_to(random_phi(rng, 64), (30, 40, 64)).copy()
    signs = np.sign(random_phi(rng, 30, 40, 64))
    moved = np.roll(signs, (4, -3), axis=(0, 1))
    for level in hamflow.isa_levels():
        hamflow.set_isa(level)
        assert (project(flat, flat, 16, outside=outside).wta() == 0).all()
        assert (project(signs, signs, 16, outside=outside).wta() == 0).all()
        assert (project(signs, moved, 16, outside=outside).wta()[8:-8, 8:-8] == (-3, 4)).all()


# --- FQ ------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(place=PLACES, outside=OUTSIDE, seed=SEEDS)
def test_hybrid(place: Place, outside: float, seed: int) -> None:
    phi0, phi1 = random_pair(place, 64, seed)
    window = place[2]
    bits0, bits1 = pack_bits(phi0), pack_bits(phi1)
    # In the inner argmin a target outside has the chance level.
    distances = all_distances(bits0, bits1, window, 32)
    costs = all_costs(phi0, phi1, window, outside)

    def work() -> FloatMinProjection:
        return hybrid_min_projection(phi0, phi1, window, outside=outside)

    for level in ("reference", *hamflow.isa_levels()):
        hamflow.set_isa(level)
        result = work()
        assert (result.v_hat == distances.argmin(axis=3)).all()
        assert (result.u_hat == distances.argmin(axis=2)).all()
        at_v, at_u = costs_at(costs, result)
        assert close(result.cu, at_v)
        assert close(result.cv, at_u)
        assert same_bytes(result.bits0, bits0)
        assert same_bytes(result.bits1, bits1)
        assert_threads_agree(work, result)
        # v from the result's own c^v, then u from the quantized row.
        v = nearest_argmin(result.cv, window.v0)
        at = (v - window.v0)[:, :, None, None]
        row = np.take_along_axis(distances, at, axis=3)[..., 0]
        assert (result.wta() == np.stack([nearest_argmin(row, window.u0), v], axis=2)).all()


# --- gradients -----------------------------------------------------------------------------------


def numpy_scatter(result: FloatMinProjection, gu: Array, gv: Array) -> tuple[Array, Array]:
    assert result.v_hat is not None
    assert result.u_hat is not None
    height, width, m = result.phi0.shape
    window = result.window
    phi0, phi1 = result.phi0.astype(np.float64), result.phi1.astype(np.float64)
    grads = np.zeros((2, height, width, m))
    y, x, ku = np.indices(gu.shape)
    rows_u, columns_u = y + window.v0 + result.v_hat, x + window.u0 + ku
    yv, xv, kv = np.indices(gv.shape)
    rows_v, columns_v = yv + window.v0 + kv, xv + window.u0 + result.u_hat
    for g, y0, x0, y1, x1 in (
        (gu, y, x, rows_u, columns_u),
        (gv, yv, xv, rows_v, columns_v),
    ):
        inside = (y1 >= 0) & (y1 < height) & (x1 >= 0) & (x1 < width)
        here, there = (y0[inside], x0[inside]), (y1[inside], x1[inside])
        weight = g[inside][:, None].astype(np.float64)
        np.add.at(grads[0], here, -weight * phi1[there])
        np.add.at(grads[1], there, -weight * phi0[here])
    return grads[0], grads[1]


def with_argmins(kind: str, phi0: Array, phi1: Array, window: Window) -> FloatMinProjection:
    if kind == "FF":
        return float_min_projection(phi0, phi1, window, outside=1.5, argmins=True)
    return hybrid_min_projection(phi0, phi1, window, outside=1.5)


def check_scatter(result: FloatMinProjection, *gradients: Array) -> None:
    gu, gv = (gradient.astype(np.float32) for gradient in gradients)
    got = result.backward(gu, gv)
    for a, b in zip(got, numpy_scatter(result, gu, gv), strict=True):
        assert close(a, b)
    for count in (*THREADS, *THREADS):
        again = with_threads(count, lambda: result.backward(gu, gv))
        assert all(same_bytes(a, b) for a, b in zip(got, again, strict=True))


@settings(max_examples=60)
@given(place=PLACES, kind=st.sampled_from(["FF", "FQ"]), seed=SEEDS)
def test_backward_is_a_scatter(place: Place, kind: str, seed: int) -> None:
    phi0, phi1 = random_pair(place, 64 if kind == "FQ" else 5 + seed % 4, seed)
    rng = np.random.default_rng(seed)
    for level in ("reference", *hamflow.isa_levels()):
        hamflow.set_isa(level)
        result = with_argmins(kind, phi0, phi1, place[2])
        # Mean losses have small gradients; then the tolerance is one for sums of many, too.
        check_scatter(
            result, *(rng.uniform(-1, 1, c.shape) / c.shape[2] for c in (result.cu, result.cv))
        )


@pytest.mark.parametrize("kind", ["FF", "FQ"])
def test_backward_of_a_larger_image(kind: str) -> None:
    rng = np.random.default_rng(0)
    phi0, phi1 = random_phi(rng, 70, 90, 64), random_phi(rng, 70, 90, 64)
    for level in hamflow.isa_levels():
        hamflow.set_isa(level)
        result = with_argmins(kind, phi0, phi1, Window(-10, 20, -8, 12))
        check_scatter(result, *(rng.uniform(-0.1, 0.1, c.shape) for c in (result.cu, result.cv)))


@pytest.mark.parametrize("kind", ["FF", "FQ"])
def test_backward_against_finite_differences(kind: str) -> None:
    # The minimum is piecewise linear, and a random problem is not at a kink.
    rng = np.random.default_rng(1)
    m = 64 if kind == "FQ" else 6
    window = Window(-1, 3, -2, 3)
    phi = [random_phi(rng, 3, 4, m) for _ in range(2)]
    result = with_argmins(kind, phi[0], phi[1], window)
    gu, gv = (rng.uniform(-1, 1, c.shape).astype(np.float32) for c in (result.cu, result.cv))
    grads = result.backward(gu, gv)

    def loss(fields: list[Array]) -> float:
        costs = all_costs(fields[0], fields[1], window, 1.5)
        if kind == "FF":
            return float((gu * costs.min(axis=3)).sum() + (gv * costs.min(axis=2)).sum())
        at_v, at_u = costs_at(costs, result)
        return float((gu * at_v).sum() + (gv * at_u).sum())

    step = 1e-6
    for which in range(2):
        for at in rng.choice(phi[which].size, 60, replace=False):
            up, down = ([f.astype(np.float64) for f in phi] for _ in range(2))
            up[which].flat[at] += step
            down[which].flat[at] -= step
            slope = (loss(up) - loss(down)) / (2 * step)
            assert abs(slope - grads[which].flat[at]) < FLOAT_TOLERANCE


def test_targets_outside_have_no_gradient() -> None:
    rng = np.random.default_rng(0)
    phi0, phi1 = random_phi(rng, 5, 6, 64), random_phi(rng, 5, 6, 64)
    for window in (Window(6, 4, -2, 3), Window(-1, 3, -50, 5)):
        for kind in ("FF", "FQ"):
            result = with_argmins(kind, phi0, phi1, window)
            assert (result.cu == 1.5).all()
            assert (result.cv == 1.5).all()
            for grad in result.backward(np.ones_like(result.cu), np.ones_like(result.cv)):
                assert (grad == 0).all()


def test_backward_needs_argmins() -> None:
    phi = np.ones((2, 3, 4), np.float32)
    result = float_min_projection(phi, phi, 2)
    with pytest.raises(InputError, match="argmins=True"):
        result.backward(result.cu, result.cv)


# --- bits and floats -----------------------------------------------------------------------------


def test_bits_and_floats_have_one_cost() -> None:
    # c = 2 h - 64 for the signs.
    rng = np.random.default_rng(0)
    phi0, phi1 = (np.sign(random_phi(rng, 6, 7, 64)) for _ in range(2))
    bits = min_projection(pack_bits(phi0), pack_bits(phi1), 6)
    floats = float_min_projection(phi0, phi1, 6)
    assert (floats.cu == 2 * bits.cu.astype(int) - 64).all()
    assert (floats.cv == 2 * bits.cv.astype(int) - 64).all()
