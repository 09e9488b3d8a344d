"""Learning the coarse network: its normalization, its truth, its loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from _learning import course, stop_after, tiny_config, write_pairs
from hamflow.datasets.synthetic import SyntheticConfig
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.network import NetworkDescriptor
from hamflow.descriptors.weights import Network, read_weights, save_weights
from hamflow.learning.coarse import CellTruth, CoarseNetwork, cell_errors, cell_loss
from hamflow.learning.config import DataConfig, TrainConfig
from hamflow.learning.loop import train

TINY = Architecture("coarse", widths=(4, 6, 8), dilations=(1, 2))


def network(seed: int = 0) -> CoarseNetwork:
    torch.manual_seed(seed)
    made = CoarseNetwork(TINY)
    made.initialize(torch.empty(0))
    return made


def images(count: int = 2, height: int = 32, width: int = 48) -> torch.Tensor:
    return torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(1))


def seen_much(made: CoarseNetwork) -> CoarseNetwork:
    """After some steps, in which the normalization has learned means and variances."""
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        made(images()).square().mean().backward()
        optimizer.step()
    return made.eval()


def test_exported_weights_have_the_normalization_in_them() -> None:
    made = seen_much(network())
    expected = made(images()).detach().numpy()
    again = CoarseNetwork(TINY)
    again.load(made.weights())
    assert again.train()(images()).detach().numpy() == pytest.approx(expected, abs=1e-5)
    exported = NetworkDescriptor("tiny", Network(TINY, made.weights()))
    for image, phi in zip(images().permute(0, 2, 3, 1).numpy(), expected, strict=True):
        assert exported.describe(image) == pytest.approx(phi, abs=2e-3)


@pytest.mark.parametrize("size", [(1, 1), (20, 30), (33, 48)])
def test_incomplete_cells_continue_the_image(size: tuple[int, int]) -> None:
    """As the exported network does: it has a descriptor for each cell that the image touches."""
    made, seen = seen_much(network()), images(1, *size)
    phi = made(seen)[0].detach().numpy()
    exported = NetworkDescriptor("tiny", Network(TINY, made.weights()))
    assert exported.describe(seen[0].permute(1, 2, 0).numpy()) == pytest.approx(phi, abs=2e-3)


def moved(shape: tuple[int, int], u: float, v: float) -> np.ndarray[Any, Any]:
    return np.full((*shape, 2), (u, v), np.float32)


def test_truth_of_a_shift() -> None:
    truth = CellTruth.of(moved((16, 24), 8, -4), np.zeros((16, 24), np.bool_))
    y, x = np.divmod(np.arange(24), 6)
    visible = (x + 2 < 6) & (y - 1 >= 0)
    assert (truth.visible.numpy() == visible).all()
    assert (truth.cell.numpy()[visible] == ((y - 1) * 6 + x + 2)[visible]).all()
    assert truth.shares[:, 0] == pytest.approx(1)


def test_truth_between_cells_is_shared() -> None:
    truth = CellTruth.of(moved((16, 16), 1, 2), np.zeros((16, 16), np.bool_))
    assert truth.shares[0].tolist() == pytest.approx([0.75 * 0.5, 0.25 * 0.5, 0.75 * 0.5, 0.125])
    assert truth.around[0].tolist() == [0, 1, 4, 5]
    assert truth.shares.sum(1) == pytest.approx(1)


def test_unknown_and_occluded_cells_are_not_visible() -> None:
    flow, occluded = moved((8, 8), 0, 0), np.zeros((8, 8), np.bool_)
    flow[:4, :4], occluded[4:, 4:] = np.nan, True
    truth = CellTruth.of(flow, occluded)
    assert truth.visible.tolist() == [False, True, True, False]
    assert truth.known.tolist() == [False, True, True, True]


def test_truth_of_incomplete_cells() -> None:
    """It is known where the center is in the image, and visible if it stays in the image."""
    truth = CellTruth.of(moved((15, 9), 3, 0), np.zeros((15, 9), np.bool_))
    assert truth.columns == 3
    assert truth.known.view(4, 3).tolist() == [[True, True, False]] * 4
    assert truth.visible.view(4, 3).tolist() == [[True, False, False]] * 4


@pytest.mark.parametrize("size", [(1, 1), (20, 44), (33, 48)])
def test_the_loss_of_images_of_any_size(size: tuple[int, int]) -> None:
    made = network()
    truth = (moved(size, 1, 0), np.zeros(size, np.bool_))
    assert torch.isfinite(cell_loss(made, made(images(2, *size)), truth, "fq"))


def codes(rows: int, columns: int, m: int = 32) -> torch.Tensor:
    """Descriptors that differ from cell to cell."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(rows, columns, m, generator=generator) * 2 - 1


@pytest.mark.parametrize("quantized", [False, True])
def test_errors_of_descriptors_that_move(quantized: bool) -> None:
    first = codes(8, 8)
    phi = torch.stack([first, first.roll((1, 2), (0, 1))])
    right, wrong = (
        CellTruth.of(moved((32, 32), *by), np.zeros((32, 32), np.bool_)) for by in ((8, 4), (0, 4))
    )
    assert cell_errors(phi, right, quantized=quantized) == (0.0, 0.0)
    error, missed = cell_errors(phi, wrong, quantized=quantized)
    assert error > 7
    assert missed > 0.6


@pytest.mark.parametrize("scheme", ["ff", "fq", "qq"])
def test_the_loss_is_smallest_at_the_truth(scheme: Any) -> None:
    made, first = network(), codes(8, 8, 64)
    phi = torch.stack([first, first.roll((0, 1), (0, 1))])
    visible = np.zeros((32, 32), np.bool_)
    with torch.no_grad():
        losses = [
            float(cell_loss(made, phi, (moved((32, 32), u, 0), visible), scheme))
            for u in (4, 8, -4)
        ]
    assert losses[0] < 0.7 * min(losses[1:])


@pytest.mark.parametrize("scheme", ["ff", "fq", "qq"])
def test_all_weights_learn(scheme: Any) -> None:
    made = seen_much(network()).train()  # blocks start as the identity: nothing in them is used
    made.zero_grad()
    truth = (moved((32, 48), 4, 0), np.zeros((32, 48), np.bool_))
    cell_loss(made, made(images()), truth, scheme).backward()  # type: ignore[no-untyped-call]
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def coarse_config(**changes: Any) -> TrainConfig:
    data = DataConfig(synthetic=SyntheticConfig(height=64, width=64, max_displacement=20))
    return replace(tiny_config(network=TINY, steps=4, batch=2, balance=0.1, data=data), **changes)


def test_training_writes_a_descriptor(tmp_path: Path) -> None:
    steps: list[Any] = []
    train(
        coarse_config(validate_every=2, validation_pairs=1), tmp_path / "run", callback=steps.append
    )
    assert [s.number for s in steps] == [1, 2, 3, 4]
    assert all(np.isfinite(s.loss) for s in steps)
    assert 0 <= steps[1].validation.outlier_3px_qq <= 1
    architecture, weights, _ = read_weights(tmp_path / "run" / "last.safetensors")
    image = np.zeros((16, 24, 3), np.uint8)
    phi = NetworkDescriptor("trained", Network(architecture, weights)).describe(image)
    assert phi.shape == (4, 6, 64)


def test_training_on_crops_and_whole_images_of_any_size(tmp_path: Path) -> None:
    root = write_pairs(tmp_path / "data", 2, (36, 45))
    crops = DataConfig(dataset="folder", root=root, crop=(20, 20))
    config = coarse_config(
        steps=1, data=crops, validation=replace(crops, crop=None), validation_pairs=2
    )
    steps: list[Any] = []
    train(config, tmp_path / "run", callback=steps.append)
    assert np.isfinite(steps[0].loss)
    assert np.isfinite(steps[0].validation.epe_qq)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("started", [False, True])
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(tmp_path: Path, started: bool) -> None:
    start = tmp_path / "start.safetensors" if started else None
    if start is not None:
        save_weights(start, TINY, seen_much(network()).weights())
    config = coarse_config(start=start)
    train(config, tmp_path / "whole")
    train(config, tmp_path / "parts", callback=stop_after(2))
    train(config, tmp_path / "parts")
    assert course(tmp_path / "whole") == course(tmp_path / "parts")
    ends = [(tmp_path / run / "last.safetensors").read_bytes() for run in ("whole", "parts")]
    assert ends[0] == ends[1]
