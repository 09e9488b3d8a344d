"""The loss against a slow computation of its own, and which pixels count."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from _learning import one_thread  # noqa: E402, F401
from _problems import Array  # noqa: E402
from hamflow import InputError, Window  # noqa: E402
from hamflow.learning.loss import SPREAD, Truth, balance_loss, matching_loss, pixel_losses  # noqa: E402

WINDOW = Window(-3, 8, -2, 5)


def slow_pixel_loss(costs: Array, label: int, target: str, temperature: float) -> float:
    """The cross-entropy of one pixel in float64, term by term."""
    scores = [-float(cost) / temperature for cost in costs]
    largest = max(scores)
    normalizer = largest + math.log(sum(math.exp(score - largest) for score in scores))
    shares = {label: 1.0}
    if target == "spread":
        shares = {
            label + offset: share
            for offset, share in zip(range(-2, 3), SPREAD, strict=True)
            if 0 <= label + offset < len(scores)
        }
    total = sum(shares.values())
    return sum(share / total * (normalizer - scores[k]) for k, share in shares.items())


def random_problem(seed: int, shape: tuple[int, int] = (6, 7)) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    cu = rng.normal(0, 4, (*shape, WINDOW.du)).astype(np.float32)
    cv = rng.normal(0, 4, (*shape, WINDOW.dv)).astype(np.float32)
    return cu, cv, rng.uniform(-4, 5.5, (*shape, 2)).astype(np.float32)


def slow_loss(
    costs: tuple[Array, Array], flow: Array, occluded: Array, target: str, temperature: float
) -> float:
    cu, cv = costs
    height, width = flow.shape[:2]
    losses = []
    for y in range(height):
        for x in range(width):
            u, v = (round(float(f)) for f in flow[y, x])  # Python's rounding is numpy's
            if occluded[y, x] or not (0 <= x + u < width and 0 <= y + v < height):
                continue
            if WINDOW.contains(u, v):
                of_u = slow_pixel_loss(cu[y, x], u - WINDOW.u0, target, temperature)
                of_v = slow_pixel_loss(cv[y, x], v - WINDOW.v0, target, temperature)
                losses.append(of_u + of_v)
    assert len(losses) > 5
    return sum(losses) / len(losses)


@pytest.mark.parametrize("target", ["one", "spread"])
@pytest.mark.parametrize("temperature", [1.0, 0.3, 7.0])
def test_like_a_slow_computation(target: str, temperature: float) -> None:
    for seed in range(3):
        cu, cv, flow = random_problem(seed)
        occluded = np.random.default_rng(seed).uniform(size=flow.shape[:2]) < 0.2
        loss = matching_loss(
            torch.from_numpy(cu),
            torch.from_numpy(cv),
            Truth.of(flow, WINDOW, occluded),
            target=target,
            temperature=temperature,
        )
        expected = slow_loss((cu, cv), flow, occluded, target, temperature)
        assert math.isclose(float(loss), expected, rel_tol=1e-5)


@pytest.mark.parametrize("target", ["one", "spread"])
def test_gradient_is_softmax_minus_target(target: str) -> None:
    cu, cv, flow = random_problem(4)
    truth = Truth.of(flow, WINDOW)
    leaves = [torch.from_numpy(c).double().requires_grad_() for c in (cu, cv)]
    matching_loss(*leaves, truth, target=target, temperature=2.0).backward()
    for leaf, labels in zip(leaves, (truth.u, truth.v), strict=True):
        assert leaf.grad is not None
        grad = leaf.grad[truth.mask].numpy() * len(labels)
        softmax = torch.softmax(leaf.detach()[truth.mask] / -2.0, 1).numpy()
        target_shares = np.zeros_like(softmax)
        for row, label in enumerate(labels.tolist()):
            shares = SPREAD if target == "spread" else (0, 0, 1, 0, 0)
            for offset, share in zip(range(-2, 3), shares, strict=True):
                if 0 <= label + offset < softmax.shape[1]:
                    target_shares[row, label + offset] = share
        target_shares /= target_shares.sum(1, keepdims=True)
        np.testing.assert_allclose(grad, (target_shares - softmax) / 2.0, atol=1e-7)
        assert not leaf.grad[~truth.mask].any()


@pytest.mark.parametrize("target", ["one", "spread"])
def test_huge_costs(target: str) -> None:
    costs = torch.tensor(
        [[-1e4, 1e4, 0.0, 1e4], [1e4, 1e4, -1e4, 1e4], [1e4, 1e4, 1e4, 1e4]], requires_grad=True
    )
    labels = torch.tensor([0, 1, 3])
    losses = pixel_losses(costs, labels, target=target)
    losses.sum().backward()
    assert torch.isfinite(losses).all()
    assert costs.grad is not None
    assert torch.isfinite(costs.grad).all()
    expected = [
        slow_pixel_loss(row.numpy(), int(label), target, 1.0)
        for row, label in zip(costs.detach(), labels, strict=True)
    ]
    np.testing.assert_allclose(losses.detach(), expected, rtol=1e-5, atol=1e-6)
    if target == "one":
        assert losses.tolist() == [0.0, 2e4, pytest.approx(math.log(4))]


@pytest.mark.parametrize("labels", [1, 2, 3, 5, 9])
def test_spread_at_the_ends_of_the_window(labels: int) -> None:
    costs = torch.from_numpy(np.random.default_rng(labels).normal(size=(labels, labels)))
    losses = pixel_losses(costs, torch.arange(labels), target="spread")
    for label in range(labels):
        expected = slow_pixel_loss(costs[label].numpy(), label, "spread", 1.0)
        assert math.isclose(float(losses[label]), expected, rel_tol=1e-9, abs_tol=1e-12)


def test_which_pixels_count() -> None:
    flow = np.zeros((4, 9, 2), np.float32)
    occluded = np.zeros((4, 9), bool)
    flow[0, 1] = np.nan
    flow[0, 2, 1] = np.nan
    flow[0, 3] = np.inf
    flow[0, 4] = 1e30
    occluded[0, 5] = True
    flow[1, 0] = (-1, 0)  # leaves the frame on the left,
    flow[1, 8] = (1, 0)  # on the right,
    flow[3, 4] = (0, 1)  # below
    flow[1, 4] = (0, -2)  # and above
    flow[2, 1] = (5, 0)  # beyond the window, which ends at 4
    flow[2, 2] = (4.4, 0)  # which rounds to 4
    flow[2, 3] = (4.6, 0)
    flow[2, 8] = (-3.5, 0)  # rounds to -4: ties go to the even number
    flow[2, 7] = (-2.5, 0.49)
    truth = Truth.of(flow, WINDOW, occluded)
    hidden = {(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 0), (1, 8), (3, 4), (1, 4)}
    hidden |= {(2, 1), (2, 3), (2, 8)}
    mask = truth.mask.numpy()
    assert {tuple(place) for place in np.argwhere(~mask).tolist()} == hidden
    assert len(truth.u) == len(truth.v) == mask.sum()
    labels = dict(zip(map(tuple, np.argwhere(mask).tolist()), truth.u.tolist(), strict=True))
    assert (labels[2, 2], labels[2, 7], labels[0, 0]) == (7, 1, 3)
    assert truth.v.unique().tolist() == [2]
    assert np.array_equal(np.isfinite(truth.flow).all(axis=2), mask)
    assert np.array_equal(truth.flow[mask], flow[mask])
    assert truth.flow.dtype == np.float32


def test_masked_pixels_do_not_matter() -> None:
    cu, cv, flow = random_problem(5)
    flow[:3] = np.nan
    truth = Truth.of(flow, WINDOW)
    before = matching_loss(torch.from_numpy(cu), torch.from_numpy(cv), truth)
    cu[:3], cv[:3] = 1e20, -1e20
    assert torch.equal(matching_loss(torch.from_numpy(cu), torch.from_numpy(cv), truth), before)


@pytest.mark.parametrize("target", ["one", "spread"])
def test_no_pixel_counts(target: str) -> None:
    cu, cv, flow = random_problem(6)
    leaves = [torch.from_numpy(c).requires_grad_() for c in (cu, cv)]
    loss = matching_loss(*leaves, Truth.of(flow * np.nan, WINDOW), target=target)
    assert loss.item() == 0
    loss.backward()
    assert all(leaf.grad is not None and not leaf.grad.any() for leaf in leaves)


def test_bad_input_is_named() -> None:
    costs, labels = torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(InputError, match="target must be one or spread, not 'two'"):
        pixel_losses(costs, labels, target="two")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="temperature must be positive, but is 0"):
        pixel_losses(costs, labels, temperature=0)


def test_balance() -> None:
    half = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])[..., None]
    constant = torch.ones(2, 2, 1)
    assert balance_loss(torch.cat([half, constant, -constant], -1)) == 2
    mixed = torch.tensor([1.0, 1.0, 1.0, -1.0]).reshape(2, 2, 1)
    assert balance_loss(mixed) == 0.25
