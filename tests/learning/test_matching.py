"""The differentiable min-projections: FF, FQ and QQ."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from _learning import PATIENCE, one_thread  # noqa: E402, F401
from _problems import Array, all_costs, random_phi, run_python  # noqa: E402
from hamflow import InputError, Window  # noqa: E402
from hamflow.learning.matching import project  # noqa: E402

WINDOWS = [
    Window(-2, 4, -2, 4),
    Window(-3, 5, 0, 2),
    Window(-1, 2, -4, 7),
    Window(0, 1, -1, 3),
    Window(-2, 4, 0, 1),
]
OUTSIDE = -0.75
H_STEP = 2.0**-8
"""Costs are linear in each component, so that differences are exact but for rounding."""

Projection = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def phi_pair(seed: int, height: int = 4, width: int = 5, m: int = 64) -> tuple[Array, Array]:
    """Descriptors with no component so close to 0 that a small step would turn its sign."""
    rng = np.random.default_rng(seed)

    def away_from_zero(phi: Array) -> Array:
        return np.asarray(np.where(phi >= 0, 0.05, -0.05) + 0.95 * phi, np.float32)

    return (
        away_from_zero(random_phi(rng, height, width, m)),
        away_from_zero(random_phi(rng, height, width, m)),
    )


def smallest_gap(costs: Array) -> float:
    """By how much the second smallest inner cost is above the smallest, at the least."""
    gaps = [np.diff(np.sort(costs, axis=axis), axis=axis) for axis in (2, 3)]
    return min(
        float(np.take(gap, 0, axis).min()) if gap.shape[axis] else np.inf
        for gap, axis in zip(gaps, (2, 3), strict=True)
    )


def separated_phi(window: Window, m: int) -> tuple[Array, Array]:
    """Descriptors whose inner minima of the float cost do not move when a component does."""
    for seed in range(10_000):
        pair = phi_pair(seed, 3, 4, m)
        costs = all_costs(*pair, window, OUTSIDE)
        # Several targets outside cost the same, so only pixels without any count as separated.
        if smallest_gap(costs + 1e-3 * outside_order(costs)) > 4 * H_STEP:
            return pair
    raise AssertionError("no such descriptors")


def outside_order(costs: Array) -> Array:
    """Break the ties of targets outside, the smaller label first; they have no gradient."""
    order = np.arange(costs.shape[2])[:, None] * 100 + np.arange(costs.shape[3]) * 100
    return np.asarray(np.where(costs == OUTSIDE, order, 0))


def weights_of(window: Window, height: int, width: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(5)
    return (
        torch.from_numpy(random_phi(rng, height, width, window.du)),
        torch.from_numpy(random_phi(rng, height, width, window.dv)),
    )


def gradients(work: Projection, pair: tuple[Array, Array], window: Window) -> tuple[Array, ...]:
    """c^u, c^v, and the gradients of a weighted sum of them."""
    phi0, phi1 = (torch.from_numpy(phi.copy()).requires_grad_() for phi in pair)
    cu, cv = work(phi0, phi1)
    wu, wv = (w.to(cu.dtype) for w in weights_of(window, *pair[0].shape[:2]))
    ((cu * wu).sum() + (cv * wv).sum()).backward()
    return tuple(t.detach().numpy() for t in (cu, cv, phi0.grad, phi1.grad))


def weighted_sum(model: str, pair: tuple[Array, Array], window: Window) -> float:
    cu, cv = project(
        torch.from_numpy(pair[0]), torch.from_numpy(pair[1]), window, model, outside=OUTSIDE
    )
    wu, wv = weights_of(window, *pair[0].shape[:2])
    return float((cu.double() * wu).sum() + (cv.double() * wv).sum())


def finite_differences(
    model: str, pair: tuple[Array, Array], window: Window, every: int = 1
) -> list[Array]:
    """The derivatives with respect to every so many-th component; NaN for the others."""
    found = []
    for number in (0, 1):
        grad = np.full(pair[number].shape, np.nan)
        for index in list(np.ndindex(grad.shape))[::every]:
            values = []
            for sign in (1, -1):
                moved = [phi.copy() for phi in pair]
                moved[number][index] += sign * H_STEP
                values.append(weighted_sum(model, (moved[0], moved[1]), window))
            grad[index] = (values[0] - values[1]) / (2 * H_STEP)
        found.append(grad)
    return found


def stored_costs(phi0: Tensor, phi1: Tensor, window: Window, outside: float) -> Tensor:
    """The whole 4D cost, H×W×du×dv, with everything that autograd needs."""
    height, width = phi0.shape[:2]
    planes = []
    for u in range(window.u0, window.u0 + window.du):
        for v in range(window.v0, window.v0 + window.dv):
            x, y = torch.arange(width) + u, torch.arange(height) + v
            inside = ((y >= 0) & (y < height))[:, None] & ((x >= 0) & (x < width))
            target = phi1[y.clamp(0, height - 1)][:, x.clamp(0, width - 1)]
            cost = -(phi0 * target).sum(-1)
            planes.append(torch.where(inside, cost, torch.full_like(cost, outside)))
    return torch.stack(planes, -1).reshape(height, width, window.du, window.dv)


def at_argmins(costs: Tensor, chosen_by: Array) -> tuple[Tensor, Tensor]:
    """Take `costs` where other costs are smallest, the smaller label where several are."""
    v_hat = torch.from_numpy(chosen_by.argmin(axis=3))
    u_hat = torch.from_numpy(chosen_by.argmin(axis=2))
    cu = costs.gather(3, v_hat[..., None])[..., 0]
    cv = costs.gather(2, u_hat[:, :, None])[:, :, 0]
    return cu, cv


def brute_force(model: str, window: Window, outside: float = OUTSIDE) -> Projection:
    def work(phi0: Tensor, phi1: Tensor) -> tuple[Tensor, Tensor]:
        first, second = phi0.double(), phi1.double()
        signs = [torch.where(phi.detach() > 0, 1.0, -1.0).double() for phi in (first, second)]
        if model == "qq":  # the signs' values with the gradients of what they are the signs of
            first = first + (signs[0] - first).detach()
            second = second + (signs[1] - second).detach()
        costs = stored_costs(first, second, window, outside)
        if model == "ff":
            return at_argmins(costs, costs.detach().numpy())
        # In the inner argmin a target outside has the chance level.
        return at_argmins(costs, stored_costs(*signs, window, 0.0).numpy())

    return work


@pytest.mark.parametrize("window", WINDOWS[:3], ids=str)
def test_ff_gradient_is_the_finite_difference(window: Window) -> None:
    pair = separated_phi(window, m=3)
    grads = gradients(lambda a, b: project(a, b, window, "ff", outside=OUTSIDE), pair, window)[2:]
    for grad, difference in zip(grads, finite_differences("ff", pair, window), strict=True):
        assert np.abs(grad).max() > 0.1
        np.testing.assert_allclose(grad, difference, atol=1e-3)


def test_fq_gradient_is_the_finite_difference() -> None:
    window = WINDOWS[1]
    pair = phi_pair(1, 3, 4)
    grads = gradients(lambda a, b: project(a, b, window, "fq", outside=OUTSIDE), pair, window)[2:]
    differences = finite_differences("fq", pair, window, every=5)  # of all pixels some
    for grad, difference in zip(grads, differences, strict=True):
        known = np.isfinite(difference)
        assert known.any(axis=2).all()
        assert np.abs(grad[known]).max() > 0.1
        np.testing.assert_allclose(grad[known], difference[known], atol=2e-3)


@pytest.mark.parametrize("model", ["ff", "fq", "qq"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("shape", [(7, 6), (1, 9), (5, 1), (1, 1)])
def test_like_a_version_that_stores_everything(
    model: str, window: Window, shape: tuple[int, int]
) -> None:
    pair = phi_pair(2, *shape)
    ours = gradients(lambda a, b: project(a, b, window, model, outside=OUTSIDE), pair, window)
    brute = gradients(brute_force(model, window), pair, window)
    for one, other in zip(ours, brute, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_qq_is_straight_through() -> None:
    """Values of the signs; the gradient is that of FQ at the signs, whatever the floats are."""
    window = WINDOWS[0]
    pair = phi_pair(3)
    signs = (np.sign(pair[0]), np.sign(pair[1]))
    quantized = gradients(lambda a, b: project(a, b, window, "qq"), pair, window)
    at_signs = gradients(lambda a, b: project(a, b, window, "fq"), signs, window)
    for one, other in zip(quantized, at_signs, strict=True):
        assert np.array_equal(one, other)
    assert set(np.unique(quantized[0])) <= set(range(-64, 65, 2))
    assert np.abs(quantized[2]).max() > 0


@pytest.mark.parametrize("model", ["fq", "qq"])
def test_inner_minimizer_can_be_given(model: str) -> None:
    window = Window(-3, 6, -1, 3)
    pair = phi_pair(4, 6, 7)
    flow = np.zeros((6, 7, 2), np.float32)
    flow[..., 0], flow[..., 1] = 1.4, -0.6  # which are the labels of 1 and -1
    unknown = np.zeros((6, 7), bool)
    unknown[0], unknown[1, 2], unknown[2, 3], unknown[3, 4] = True, True, True, True
    flow[0], flow[1, 2], flow[2, 3], flow[3, 4] = np.nan, (3, 0), (0, -2), (np.inf, 0)

    def brute(phi0: Tensor, phi1: Tensor) -> tuple[Tensor, Tensor]:
        usual = brute_force(model, window)(phi0, phi1)
        if model == "qq":
            phi0, phi1 = (phi + (torch.sign(phi) - phi).detach() for phi in (phi0, phi1))
        costs = stored_costs(phi0.double(), phi1.double(), window, OUTSIDE)
        given = costs[:, :, :, -1 - window.v0], costs[:, :, 1 - window.u0]
        mask = torch.from_numpy(unknown)[..., None]
        return torch.where(mask, usual[0], given[0]), torch.where(mask, usual[1], given[1])

    ours = gradients(
        lambda a, b: project(a, b, window, model, outside=OUTSIDE, inner=flow), pair, window
    )
    for one, other in zip(ours, gradients(brute, pair, window), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_inner_is_checked() -> None:
    phi = torch.zeros(4, 5, 64)
    flow = np.zeros((4, 5, 2), np.float32)
    with pytest.raises(InputError, match="leave it out"):
        project(phi, phi, 4, "ff", inner=flow)
    for wrong in (flow[:3], flow.astype(np.float64), flow[::-1]):
        with pytest.raises(InputError, match="inner"):
            project(phi, phi, 4, "fq", inner=wrong)


@pytest.mark.parametrize("model", ["ff", "fq", "qq"])
def test_outside_has_a_constant_cost_and_no_gradient(model: str) -> None:
    pair = phi_pair(6)
    far = Window(10, 3, -40, 2)
    cu, cv, *grads = gradients(lambda a, b: project(a, b, far, model, outside=2.5), pair, far)
    assert (cu == 2.5).all()
    assert (cv == 2.5).all()
    assert not any(grad.any() for grad in grads)
    # Where the chosen pairs do not depend on it, neither does the gradient.
    if model != "ff":
        near = WINDOWS[0]
        first, second = (
            gradients(lambda a, b, c=c: project(a, b, near, model, outside=c), pair, near)
            for c in (0.0, 7.0)
        )
        assert not np.array_equal(first[0], second[0])
        assert all(np.array_equal(a, b) for a, b in zip(first[2:], second[2:], strict=True))


def test_only_one_of_the_two_is_used() -> None:
    pair = [torch.from_numpy(phi).requires_grad_() for phi in phi_pair(7)]
    cu, _ = project(*pair, 4)
    cu.sum().backward()
    assert all(phi.grad is not None and phi.grad.abs().max() > 0 for phi in pair)


def test_without_gradients_and_from_views() -> None:
    both = torch.from_numpy(np.stack(phi_pair(8, 6, 5)))
    cu, cv = project(both[0], both[1], 4)
    assert not cu.requires_grad
    turned = both.transpose(1, 2).contiguous().transpose(1, 2)  # the same, not contiguous
    assert all(map(torch.equal, project(turned[0], turned[1], 4), (cu, cv)))


def test_bad_input_is_named() -> None:
    phi = torch.zeros(4, 5, 64)
    with pytest.raises(InputError, match="model must be ff, fq or qq, not 'qf'"):
        project(phi, phi, 4, "qf")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="float32"):
        project(phi.double(), phi.double(), 4)
    with pytest.raises(InputError, match="64"):
        project(phi[..., :32], phi[..., :32], 4, "fq")
    with pytest.raises(InputError, match="NaN"):
        project(phi, phi * torch.nan, 4)


MEMORY = """
import json, re, numpy as np, torch
from pathlib import Path
from hamflow.descriptors.architecture import Architecture
from hamflow.learning.loss import Truth, matching_loss
from hamflow.learning.matching import project
from hamflow.learning.network import build_network
from hamflow.window import Window

torch.set_num_threads(1)
network = build_network(Architecture(layers=3, channels=4))
optimizer = torch.optim.Adam(network.parameters())
images = torch.rand(2, 3, 96, 128)
flow = np.ones((96, 128, 2), np.float32)

def step(d):
    window = Window.of(d)
    phi = network(images)
    costs = project(phi[0], phi[1], window)
    matching_loss(*costs, Truth.of(flow, window)).backward()
    optimizer.step()
    # Not getrusage, whose figure begins with the memory of the process that started this one.
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])

step(8)
print(json.dumps([step(d) for d in (96, 192, 288)]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak")
def test_memory_of_a_step_is_linear_in_d() -> None:
    # Freed memory goes back at once, where glibc manages it; else peaks hide in what was kept.
    at_once = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    run = run_python("-c", MEMORY, timeout=PATIENCE, HAMFLOW_NUM_THREADS="1", **at_once)
    assert run.returncode == 0, run.stderr
    peaks = json.loads(run.stdout)
    more, twice_as_many_more = peaks[1] - peaks[0], peaks[2] - peaks[0]
    volume = 96 * 128 * (96 + 96) * 4  # c^u and c^v of as many labels as are added
    assert 2 * volume < more < 12 * volume
    assert 1.6 < twice_as_many_more / more < 2.3  # 2.7 if it grew with the square
    assert twice_as_many_more < 96 * 128 * 192**2 * 4 / 5  # the 4D cost of D = 192
