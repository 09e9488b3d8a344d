"""The training loop."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

from hamflow import _runtime
from hamflow._resume import WorkLog
from hamflow.descriptors.weights import read_weights, save_weights
from hamflow.errors import FileError, InputError
from hamflow.learning.allocator import keep_freed_memory
from hamflow.learning.augment import Sample
from hamflow.learning.checkpoint import load_checkpoint, save_checkpoint
from hamflow.learning.coarse import CoarseNetwork, cell_loss
from hamflow.learning.config import WORK, TrainConfig, config_values
from hamflow.learning.data import TrainingPairs, as_tensor, training_batches, validation_samples
from hamflow.learning.log import CURVE, PICTURE, StepLog
from hamflow.learning.loss import Truth, balance_loss, matching_loss
from hamflow.learning.matching import project
from hamflow.learning.network import DescriptorNetwork, build_network
from hamflow.learning.state import BEST, CHECKPOINT, LAST, TrainingState, read_state
from hamflow.learning.validation import Validation, constant_bits, validate
from hamflow.window import Window

_FIRST_IMAGES = 4  # on which the weights are initialized
# Settings that may differ when a run is continued, because its steps do not depend on them.
_FREE = {"workers", "threads", "checkpoint_minutes", "validate_every", "validation_pairs"}


@dataclass(frozen=True)
class Step:
    """A step of the training, for the log and the callback.

    Attributes
    ----------
    number : int
        The number of the step, from 1.
    loss, rate, norm : float
        The mean loss of the batch over all processes, the learning rate, and the norm of the
        gradient before it was clipped.
    constant_bits : float
        Share of the bits that are nearly constant over the first image.
    waited, seconds : float
        How long the step waited for its data, and how long it took in all.
    validation : Validation or None
        The validation after the step, if there was one.
    """

    number: int
    loss: float
    rate: float
    norm: float
    constant_bits: float
    waited: float
    seconds: float
    validation: Validation | None = None


def train(
    config: TrainConfig,
    output: Path,
    *,
    overwrite: bool = False,
    callback: Callable[[Step], None] | None = None,
) -> TrainingState:
    """Train descriptors and write the results to a folder.

    The folder gets the best weights so far (``best.safetensors``), the latest
    (``last.safetensors``), a checkpoint to continue from, a log of all steps (``run.jsonl``), and
    the learning curve as CSV, picture and TensorBoard events. A run that was interrupted is
    continued from its last checkpoint as if it had never stopped. Under ``torchrun`` every process
    learns from its own share of the pairs, and the gradients are averaged; the first process writes
    the folder, and all read it to continue.

    Parameters
    ----------
    config : TrainConfig
        The run.
    output : Path
        Its folder: new, empty, or with an interrupted run of the same settings.
    overwrite : bool
        Start again, and remove an earlier run in that folder.
    callback : callable, optional
        Called after each step.

    Returns
    -------
    TrainingState
        The steps taken: less than `config.steps` after a Ctrl-C or a SIGTERM.

    Raises
    ------
    InputError, FileError
        If the folder holds other files, or a run with other settings or another number of
        processes, if another process trains there, or if a file cannot be read or written.
    """
    rank, processes = _place()
    opened = nullcontext() if rank else WorkLog.in_folder(output, WORK, overwrite=overwrite)
    with opened as log:
        if log is not None:
            # Which pairs a step learns from depends on the number of processes.
            log.begin({**config_values(config), "processes": processes}, free=_FREE)
            for name in (CHECKPOINT, BEST, LAST, CURVE, PICTURE) if overwrite else ():
                (output / name).unlink(missing_ok=True)
        checkpoint = output / CHECKPOINT
        # Checked before any process can have written one.
        found = None if overwrite or not checkpoint.exists() else checkpoint
        if processes > 1 and not dist.is_initialized():
            dist.init_process_group("gloo")
        with _Run(config, output, found, log, (rank, processes)) as run:
            return run.go(callback)


class _Run:
    def __init__(
        self,
        config: TrainConfig,
        output: Path,
        checkpoint: Path | None,
        log: WorkLog | None,
        place: tuple[int, int],
    ) -> None:
        self.config, self.output = config, output
        self.rank, self.processes = place
        self.main = log is not None
        self.progress = TrainingState()
        if checkpoint is not None:
            written, self.progress = read_state(checkpoint)
            if log is not None:
                log.check(config_values(written), config_values(config), free=_FREE)
        self.window = Window.of(config.window)
        _use_threads(config.threads)
        keep_freed_memory()
        torch.manual_seed(config.seed)
        self.network = build_network(config.network)
        if checkpoint is None:
            _first_weights(self.network, config)
        elif config.start is not None and isinstance(self.network, CoarseNetwork):
            self.network.drop_normalization()  # as when the run began with those weights
        # Only now, because the weights to start from decide which parameters there are.
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate)
        if checkpoint is not None:
            load_checkpoint(checkpoint, self.network, self.optimizer)
        self.model = DistributedDataParallel(self.network) if self.processes > 1 else self.network
        self.log = None if log is None else StepLog(log, config, self.progress.step)

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self.log is not None:
            self.log.close()
        if self.processes > 1 and dist.is_initialized():
            dist.destroy_process_group()

    def go(self, callback: Callable[[Step], None] | None) -> TrainingState:
        config, progress = self.config, self.progress
        batches = training_batches(config, progress.step, self.rank, self.processes)
        saved = time.monotonic()
        with _stop_signals() as stopping:
            while progress.step < config.steps and not self._agree(stopping.is_set()):
                started = time.monotonic()
                batch = next(batches)
                waited = time.monotonic() - started
                rate = self._rate()
                loss, norm, constant = self._learn(batch, rate)
                progress.step += 1
                validation = None
                if self.main and self._due():
                    validation = self._validate()
                seconds = time.monotonic() - started
                progress.seconds += seconds
                step = Step(progress.step, loss, rate, norm, constant, waited, seconds, validation)
                if self.log is not None:
                    self.log.add(step)
                if callback is not None:
                    callback(step)
                if self.main and time.monotonic() - saved > 60 * config.checkpoint_minutes:
                    self._save()
                    saved = time.monotonic()
        if self.main and progress.step:
            self._save()
        return progress

    def _learn(self, batch: list[Sample], rate: float) -> tuple[float, float, float]:
        """Take a step; return the loss, the norm of the gradient and the share of constant bits."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        images = as_tensor([image for s in batch for image in (s.image0, s.image1)])
        with torch.autocast("cpu", torch.bfloat16, enabled=self.config.precision == "bfloat16"):
            phi = self.model(images)
        phi = phi.float()
        losses = [self._loss(phi[2 * i : 2 * i + 2], sample) for i, sample in enumerate(batch)]
        loss = torch.stack(losses).sum() / len(batch)
        mean = self._mean(loss.detach().clone())
        norm = math.nan
        if math.isfinite(mean):
            loss.backward()  # type: ignore[no-untyped-call]
            norm = float(clip_grad_norm_(self.network.parameters(), self.config.clip))
        if not math.isfinite(norm):
            what = "gradient" if math.isfinite(mean) else "loss"
            raise InputError(
                f"The {what} of step {self.progress.step + 1} is not finite; start a new run with "
                "a lower learning_rate or a higher temperature."
            )
        self.optimizer.step()
        return mean, norm, constant_bits(phi[0].detach())

    def _loss(self, phi: Tensor, sample: Sample) -> Tensor:
        """Return the loss of one pair."""
        loss = self._match_loss(phi, sample)
        if self.config.balance:
            loss = loss + self.config.balance * balance_loss(phi)
        return loss

    def _match_loss(self, phi: Tensor, sample: Sample) -> Tensor:
        config = self.config
        bootstrapping = self.progress.step < config.bootstrap * config.steps
        if isinstance(self.network, CoarseNetwork):
            scheme = "ff" if bootstrapping else config.model
            return cell_loss(self.network, phi, (sample.flow, sample.occluded), scheme)
        truth = Truth.of(sample.flow, self.window, sample.occluded)
        first, second = phi.unbind()
        costs = project(
            first,
            second,
            self.window,
            config.model,
            outside=config.outside,
            inner=truth.flow if bootstrapping and config.model != "ff" else None,
        )
        return matching_loss(*costs, truth, target=config.target, temperature=config.temperature)

    def _rate(self) -> float:
        """Return the learning rate of the next step: a ramp, then a cosine."""
        config, step = self.config, self.progress.step
        ramp = min(1.0, (step + 1) / max(config.warmup, 1))
        fall = 0.5 + 0.5 * math.cos(math.pi * min(1.0, step / config.steps))
        return config.learning_rate * ramp * (config.final_rate + (1 - config.final_rate) * fall)

    def _due(self) -> bool:
        step = self.progress.step
        last = step == self.config.steps
        return self.config.validation_pairs > 0 and (last or step % self.config.validate_every == 0)

    def _validate(self) -> Validation:
        result = validate(self.network, validation_samples(self.config), self.config)
        error = result.epe_trained if math.isnan(result.epe_qq) else result.epe_qq
        if error < self.progress.best:
            self.progress.best, self.progress.best_step = error, self.progress.step
            self._save_weights(BEST)
        return result

    def _save(self) -> None:
        save_checkpoint(
            self.output / CHECKPOINT, self.config, self.progress, self.network, self.optimizer
        )
        self._save_weights(LAST)
        if self.log is not None:
            self.log.save(self.progress.step)

    def _save_weights(self, name: str) -> None:
        extra = {
            "model": self.config.model,
            "window": str(self.config.window),
            "step": str(self.progress.step),
        }
        save_weights(self.output / name, self.config.network, self.network.weights(), extra)

    def _agree(self, stop: bool) -> bool:
        """Return whether any process should stop: they must all stop at the same step."""
        return self._mean(torch.tensor(float(stop))) > 0

    def _mean(self, value: Tensor) -> float:
        """Return the mean of a number over the processes."""
        if self.processes > 1:
            dist.all_reduce(value)
        return float(value) / self.processes


def _first_weights(network: DescriptorNetwork, config: TrainConfig) -> None:
    if config.start is not None:
        architecture, weights, _ = read_weights(config.start)
        if architecture != config.network:
            raise FileError(
                f"{config.start}: has another network than the run; set network to {architecture}."
            )
        network.load(weights)
    else:
        pairs = TrainingPairs(config)
        network.initialize(_common_size([pairs[i].image0 for i in range(_FIRST_IMAGES)]))


def _common_size(images: list[NDArray[np.float32]]) -> Tensor:
    rows, columns = (min(image.shape[axis] for image in images) for axis in (0, 1))
    return as_tensor([image[:rows, :columns] for image in images])


def _place() -> tuple[int, int]:
    """Return the rank of this process and the number of processes, under torchrun."""
    if not dist.is_torchelastic_launched():
        return 0, 1
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def _use_threads(threads: int) -> None:
    if not threads:
        threads = torch.get_num_threads()
        here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        if here > 1:  # torchrun gives each process one thread, whatever the machine has
            threads = max(1, (os.cpu_count() or 1) // here)
    torch.set_num_threads(threads)
    _runtime.set_num_threads(threads)


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """Turn Ctrl-C and SIGTERM into a request to stop after the step; a second Ctrl-C stops at once.

    A signal that the process was started to ignore stays ignored.
    """
    stopping = threading.Event()
    before = {}

    def request(number: int, _: object) -> None:
        if stopping.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stopping.set()

    if threading.current_thread() is threading.main_thread():
        heard = [
            s for s in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(s) != signal.SIG_IGN
        ]
        before = {s: signal.signal(s, request) for s in heard}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            # None: the handler was not set by Python and cannot be restored.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
