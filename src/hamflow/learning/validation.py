"""Validation: the errors of winner takes all, with bits and as the network is trained."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray

from hamflow import matching
from hamflow.descriptors import pack_bits
from hamflow.learning.augment import Sample
from hamflow.learning.coarse import CellTruth, CoarseNetwork, cell_errors, cell_loss
from hamflow.learning.config import TrainConfig
from hamflow.learning.data import as_tensor
from hamflow.learning.loss import Truth, matching_loss
from hamflow.learning.matching import project
from hamflow.learning.network import DescriptorNetwork
from hamflow.window import Window


@dataclass(frozen=True)
class Validation:
    """Means over the validation pairs, of the pixels or cells that count.

    Attributes
    ----------
    loss : float
        As in training.
    epe_qq, outlier_3px_qq : float
        Endpoint error of winner takes all on bits, and the share of errors above 3 pixels. A coarse
        network finds whole cells: there, the first is the mean distance from the true cell in
        pixels, and the second the share of cells matched more than one cell (4 pixels) from it in x
        or y. The two kinds of network cannot be compared by these numbers.
    epe_trained, outlier_3px_trained : float
        The same with floats where the trained model has them.
    constant_bits : float
        Share of the bits that are the same at more than 98 % of an image's pixels.
    """

    loss: float
    epe_qq: float
    outlier_3px_qq: float
    epe_trained: float
    outlier_3px_trained: float
    constant_bits: float


def validate(
    network: DescriptorNetwork, samples: Iterable[Sample], config: TrainConfig
) -> Validation:
    """Evaluate the network on pairs with known flow; pairs without a counted pixel are skipped."""
    measure = _measured_cells if isinstance(network, CoarseNetwork) else _measured
    network.eval()
    rows = [measure(network, sample, config) for sample in samples]
    network.train()
    columns = np.array(rows).reshape(-1, len(fields(Validation))).T
    known = [column[np.isfinite(column)] for column in columns]
    return Validation(*(float(k.mean()) if k.size else float("nan") for k in known))


def _measured_cells(network: DescriptorNetwork, sample: Sample, config: TrainConfig) -> list[float]:
    assert isinstance(network, CoarseNetwork)
    pair = (sample.flow, sample.occluded)
    truth = CellTruth.of(*pair)
    with torch.no_grad():
        phi = network(as_tensor([sample.image0, sample.image1]))
        loss = cell_loss(network, phi, pair, config.model)
        trained = cell_errors(phi, truth, quantized=config.model == "qq")
        bits = cell_errors(phi, truth, quantized=True)
    return [float(loss), *bits, *trained, constant_bits(phi[0])]


def _measured(network: DescriptorNetwork, sample: Sample, config: TrainConfig) -> list[float]:
    window = Window.of(config.window)
    truth = Truth.of(sample.flow, window, sample.occluded)
    with torch.no_grad():
        phi = network(as_tensor([sample.image0, sample.image1])).contiguous()
    first, second = (field.numpy() for field in phi)
    quantized = None
    if config.network.m == 64:
        bits = pack_bits(first), pack_bits(second)
        quantized = matching.min_projection(*bits, window).wta()
    if config.model == "qq":
        costs = project(phi[0], phi[1], window, "qq", outside=config.outside)
        trained = quantized
    else:
        project_floats = (
            matching.float_min_projection
            if config.model == "ff"
            else matching.hybrid_min_projection
        )
        projected = project_floats(first, second, window, outside=config.outside)
        costs = torch.from_numpy(projected.cu), torch.from_numpy(projected.cv)
        trained = projected.wta()
    loss = matching_loss(*costs, truth, target=config.target, temperature=config.temperature)
    mask = truth.mask.numpy()
    return [
        float(loss) if mask.any() else float("nan"),
        *_errors(quantized, sample.flow, mask),
        *_errors(trained, sample.flow, mask),
        constant_bits(phi[0]),
    ]


def constant_bits(phi: torch.Tensor) -> float:
    """Return the share of the components whose sign is the same nearly everywhere."""
    share = (phi > 0).float().flatten(0, -2).mean(0)
    return float(((share < 0.02) | (share > 0.98)).float().mean())


def _errors(
    flow: NDArray[np.float32] | None, truth: NDArray[np.float32], mask: NDArray[np.bool_]
) -> list[float]:
    if flow is None or not mask.any():
        return [float("nan")] * 2
    error = np.hypot(*(flow - truth)[mask].T)
    return [float(error.mean()), float((error > 3).mean())]
