"""Pairs for training and validation: a number gives the same pair in every process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, Sampler

from hamflow._processes import follow_parent
from hamflow.datasets import open_dataset
from hamflow.datasets.pair_dataset import evenly
from hamflow.errors import HamflowError, InputError
from hamflow.learning.augment import Sample, augment
from hamflow.learning.config import AugmentConfig, DataConfig, TrainConfig

_ENDLESS = 2**40
_VALIDATION_SEED = 2**31  # larger than the seeds that a user can choose


class PairSource:
    """The pairs of a `DataConfig` by number, without augmentation."""

    def __init__(self, config: DataConfig, seed: int) -> None:
        self._config = config
        options: dict[str, Any] = {"subset": config.subset}
        if config.dataset == "synthetic":
            options = {"config": config.synthetic, "seed": seed, "size": _ENDLESS}
        self._pairs = open_dataset(config.dataset, config.root, **options)
        self.count = len(self._pairs)

    def __getitem__(self, number: int) -> Sample:
        pair = self._pairs[number]
        occluded = pair.occluded
        if occluded is None:
            occluded = np.zeros(pair.flow.shape[:2], np.bool_)
        sample = Sample(_floats(pair.image0), _floats(pair.image1), pair.flow, occluded)
        return _reduced(sample, self._config.reduce)


class TrainingPairs(Dataset[Sample]):
    """The endless sequence of augmented pairs that a run is trained on."""

    def __init__(self, config: TrainConfig) -> None:
        self._source = PairSource(config.data, config.seed)
        self._augment: AugmentConfig = config.augment
        self._crop = config.data.crop if config.data.dataset != "synthetic" else None
        self._seed = config.seed

    def __len__(self) -> int:
        return _ENDLESS

    def __getitem__(self, number: int) -> Sample:
        rng = np.random.default_rng([self._seed, 1, number])
        if self._source.count == _ENDLESS:
            chosen = number
        else:
            # Every pair once, then all again in another order.
            turn, place = divmod(number, self._source.count)
            order = np.random.default_rng([self._seed, 2, turn]).permutation(self._source.count)
            chosen = int(order[place])
        return augment(self._source[chosen], self._augment, self._crop, rng)


def training_batches(
    config: TrainConfig, first_step: int, rank: int = 0, processes: int = 1
) -> Iterator[list[Sample]]:
    """Yield the batches of one process from `first_step` on, prepared in advance by the workers."""
    loader: DataLoader[Sample | HamflowError] = DataLoader(
        _Answers(TrainingPairs(config)),
        batch_size=config.batch,
        sampler=_Numbers(first_step, config.steps, rank, processes, config.batch),
        num_workers=config.workers,
        collate_fn=list,
        prefetch_factor=4 if config.workers else None,
        multiprocessing_context="forkserver" if config.workers else None,
        worker_init_fn=_prepare_worker,
    )
    for answers in loader:
        for answer in answers:
            if isinstance(answer, HamflowError):
                raise answer
        yield answers


@dataclass(frozen=True)
class _Numbers(Sampler[int]):
    """The numbers of the pairs of one process; all processes together use each number once."""

    first_step: int
    steps: int
    rank: int
    processes: int
    batch: int

    def __len__(self) -> int:
        return (self.steps - self.first_step) * self.batch

    def __iter__(self) -> Iterator[int]:
        for step in range(self.first_step, self.steps):
            start = (step * self.processes + self.rank) * self.batch
            yield from range(start, start + self.batch)


class _Answers(Dataset[Sample | HamflowError]):
    """Pairs, or the error of reading one: an error raised in a worker would lose its class."""

    def __init__(self, pairs: TrainingPairs) -> None:
        self._pairs = pairs

    def __getitem__(self, number: int) -> Sample | HamflowError:
        try:
            return self._pairs[number]
        except HamflowError as error:
            return error


def _prepare_worker(_: int) -> None:
    """Make a worker live exactly as long as the training process.

    Ctrl-C and SIGTERM reach the workers, too, but these must continue: the training process first
    finishes its step, for which it may need another pair, and then ends them. If it is killed, the
    workers must notice it themselves: torch watches only their parent, which is the fork server,
    and the fork server waits for them.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    follow_parent()


def validation_samples(config: TrainConfig) -> Iterator[Sample]:
    """Yield the pairs to validate on, which are always the same."""
    data = config.validation or config.data
    source = PairSource(data, config.seed + _VALIDATION_SEED)
    count = config.validation_pairs
    if source.count == _ENDLESS:
        numbers = list(range(count))
    else:
        numbers = evenly(source.count, min(1.0, count / source.count))
    for number in numbers:
        yield source[number]


def as_tensor(images: list[NDArray[np.float32]]) -> torch.Tensor:
    """Return images (H, W, 3) of one size as N×3×H×W."""
    if len({image.shape for image in images}) != 1:
        raise InputError("The images of a batch differ in size; set data.crop, or set batch to 1.")
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous()


def _floats(image: NDArray[np.uint8] | NDArray[np.uint16]) -> NDArray[np.float32]:
    return image.astype(np.float32) / np.float32(np.iinfo(image.dtype).max)


def _reduced(sample: Sample, factor: int) -> Sample:
    """Average boxes of pixels; a box is occluded if half of it is, and known if all of it is."""
    if factor == 1:
        return sample
    rows, columns = (side // factor for side in sample.flow.shape[:2])
    if min(rows, columns) < 1:
        raise InputError(f"A pair has fewer than {factor} rows or columns; set data.reduce lower.")

    def boxes(array: NDArray[np.float32]) -> NDArray[np.float32]:
        cut = array[: rows * factor, : columns * factor]
        blocks = cut.reshape(rows, factor, columns, factor, -1)
        return np.asarray(blocks.mean(axis=(1, 3), dtype=np.float64), np.float32)

    hidden = boxes(sample.occluded[..., None].astype(np.float32))[..., 0] >= 0.5
    flow = boxes(sample.flow) / np.float32(factor)
    return Sample(boxes(sample.image0), boxes(sample.image1), flow, hidden)
