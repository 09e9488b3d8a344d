"""The loss (eq. 5 of the paper): cross-entropy of softmax over ``-c^u`` and ``-c^v``."""

from __future__ import annotations

from dataclasses import dataclass

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
        Pixels that count: known, visible in both images, and inside of the window.
    u, v : (N,) int64 tensors
        Labels of those pixels, row by row.
    flow : (H, W, 2) array of float32
        The true flow where the mask is set and else NaN.
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

        Parameters
        ----------
        flow : (H, W, 2) array of float32
            The true flow, NaN where it is unknown.
        window : Window
            Displacements that have labels.
        occluded : (H, W) array of bool, optional
            Pixels that the second image does not show. What leaves the frame counts as such in
            any case.
        """
        height, width = flow.shape[:2]
        # Not infinite either, nor so long that it would not fit an integer.
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
        Costs as `hamflow.learning.matching.project` returns them. Labels whose target lies
        outside of the image stay in the softmax with the cost that they have.
    truth : Truth
        The true labels, and the pixels that count.
    target : "one" or "spread"
        The target distribution: all of it on the true label, as in eq. 5, or some of it spread over
        the neighboring labels.
    temperature : float
        Costs are divided by this before the softmax. A higher one makes the network learn a larger
        margin.
    """
    # By index: the gradient of indexing with a mask takes far longer.
    rows = truth.mask.flatten().nonzero()[:, 0]
    of_u, of_v = (costs.flatten(0, 1).index_select(0, rows) for costs in (cu, cv))
    return (
        pixel_losses(of_u, truth.u, target=target, temperature=temperature)
        + pixel_losses(of_v, truth.v, target=target, temperature=temperature)
    ).sum() / max(len(truth.u), 1)


def balance_loss(phi: Tensor) -> Tensor:
    """Return how far the bits are from being set in half of the pixels: 0 to m.

    It is the sum over all components of the squared mean over all pixels, and not part of the
    paper's loss. A bit that is the same everywhere carries no information, and without this term
    training may never bring it back.

    Parameters
    ----------
    phi : (..., m) tensor
        Descriptors of one or several images.
    """
    return (phi.flatten(0, -2).mean(0) ** 2).sum()


def pixel_losses(
    costs: Tensor, labels: Tensor, *, target: Target = "one", temperature: float = 1.0
) -> Tensor:
    """Return each pixel's cross-entropy, computed in log space: N costs over D labels give N.

    Parameters
    ----------
    costs : (N, D) tensor
    labels : (N,) int64 tensor
        The true ones.
    target, temperature
        As in `matching_loss`.
    """
    if target not in ("one", "spread"):
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
    # At the ends of the window the shares of labels that do not exist go to the others.
    shares = shares / shares.sum(1, keepdim=True)
    return -(shares * log_p.gather(1, around.clamp(0, costs.shape[1] - 1))).sum(1)
