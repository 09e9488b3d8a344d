"""The loss (eq. 5 of the paper): cross-entropy of softmax over ``-c^u`` and ``-c^v``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hamflow.errors import InputError
from hamflow.learning.config import Target
from hamflow.window import MAX_DISPLACEMENT, Window

SPREAD = (0.05, 0.2, 0.5, 0.2, 0.05)
"""Weights of the target around the true label (W. Luo, A. Schwing, R. Urtasun, CVPR 2016)."""


@dataclass(frozen=True)
class Truth:
    """The true flow of a pair in the form that the loss needs.

    Attributes
    ----------
    mask : (H, W) bool tensor
        Pixels that count: known, visible in both images, and inside the window.
    u, v : (N,) int64 tensors
        Labels of those pixels, row by row.
    flow : (H, W, 2) array of float32
        The true flow where the mask is set, NaN elsewhere.
    """

    mask: Tensor
    u: Tensor
    v: Tensor
    flow: NDArray[np.float32]

    @classmethod
    def of(
        cls, flow: NDArray[np.float32], window: Window, occluded: NDArray[np.bool_] | None = None
    ) -> Truth:
        """Find the pixels that count, and their labels.

        The flow is NaN where it is unknown; pixels that leave the frame always count as occluded.
        """
        height, width = flow.shape[:2]
        # This excludes infinite values and those that would not fit an integer.
        known: NDArray[np.bool_] = np.asarray((np.abs(flow) <= MAX_DISPLACEMENT).all(axis=2))
        whole = np.rint(np.where(known[..., None], flow, 0)).astype(np.int64)
        label_u, label_v = whole[..., 0] - window.u0, whole[..., 1] - window.v0
        x = whole[..., 0] + np.arange(width)
        y = whole[..., 1] + np.arange(height)[:, None]
        mask: NDArray[np.bool_] = known & (label_u >= 0) & (label_u < window.du)
        mask &= (label_v >= 0) & (label_v < window.dv)
        mask &= (x >= 0) & (x < width) & (y >= 0) & (y < height)
        if occluded is not None:
            mask &= ~occluded
        return cls(
            torch.from_numpy(mask),
            torch.from_numpy(label_u[mask]),
            torch.from_numpy(label_v[mask]),
            np.where(mask[..., None], flow, np.float32(np.nan)),
        )


def matching_loss(
    cu: Tensor, cv: Tensor, truth: Truth, *, target: Target = "one", temperature: float = 1.0
) -> Tensor:
    """Return the loss of eq. 5 as a mean over the pixels that count: a scalar, 0 without any.

    Parameters
    ----------
    cu, cv : (H, W, du) and (H, W, dv) tensors
        Costs of `hamflow.learning.matching.project`. Labels that lead outside of the image stay in
        the softmax with their cost.
    truth : Truth
        The true labels, and the pixels that count.
    target : "one" or "spread"
        The target distribution: only the true label, as in eq. 5, or its neighbors, too.
    temperature : float
        Costs are divided by this before the softmax. With a higher one the network learns a larger
        margin.
    """
    # By index, because the gradient of indexing with a mask is much slower.
    rows = truth.mask.flatten().nonzero()[:, 0]
    of_u, of_v = (costs.flatten(0, 1).index_select(0, rows) for costs in (cu, cv))
    return (
        pixel_losses(of_u, truth.u, target=target, temperature=temperature)
        + pixel_losses(of_v, truth.v, target=target, temperature=temperature)
    ).sum() / max(len(truth.u), 1)


def balance_loss(phi: Tensor) -> Tensor:
    """Return how far the bits are from being set in half of the pixels: 0 to m.

    It is the sum over all components of the squared mean over all pixels of `phi` (..., m), and not
    part of the paper's loss. A bit that is the same everywhere carries no information, and without
    this term it may stay so.
    """
    return (phi.flatten(0, -2).mean(0) ** 2).sum()


def pixel_losses(
    costs: Tensor, labels: Tensor, *, target: Target = "one", temperature: float = 1.0
) -> Tensor:
    """Return the cross-entropy (N,) of costs (N, D) and true labels (N,), as in `matching_loss`."""
    if target not in get_args(Target):
        raise InputError(f"target must be one or spread, not {target!r}.")
    if temperature <= 0:
        raise InputError(f"temperature must be positive, but is {temperature}.")
    log_p = torch.log_softmax(costs / -temperature, dim=1)
    if target == "one":
        return -log_p.gather(1, labels[:, None])[:, 0]
    radius = len(SPREAD) // 2
    around = labels[:, None] + torch.arange(-radius, radius + 1)
    shares = torch.tensor(SPREAD, dtype=costs.dtype).expand(len(labels), -1)
    shares = shares * ((around >= 0) & (around < costs.shape[1]))
    # At the ends of the window, the other labels get the shares of those that do not exist.
    shares = shares / shares.sum(1, keepdim=True)
    return -(shares * log_p.gather(1, around.clamp(0, costs.shape[1] - 1))).sum(1)
