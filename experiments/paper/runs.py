"""Read the folder of a training run, without torch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from experiments.paper.budget import Settings, noted_settings, settings_of
from experiments.paper.table1 import BITS, WEIGHTS, Network
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.weights import read_weights, save_weights
from hamflow.errors import FileError, InputError
from hamflow.learning.config import TrainConfig, config_of

CHECKPOINT = "checkpoint.safetensors"
"""File with the state of a run; the same name as in `hamflow.learning.loop`, which needs torch."""

_FORMAT = "hamflow-checkpoint"


@dataclass(frozen=True)
class Run:
    """A training run, as read from its checkpoint.

    Attributes
    ----------
    config : TrainConfig
        Its settings.
    step : int
        Steps taken.
    """

    config: TrainConfig
    step: int

    @property
    def finished(self) -> bool:
        """Whether all steps have been taken."""
        return self.step >= self.config.steps


@dataclass(frozen=True)
class Found:
    """A network that is trained, or whose training has begun.

    Attributes
    ----------
    run : Run or None
        Its training; None if there are only weights.
    settings : dict
        The known settings of its training, for `experiments.paper.budget.difference`.
    weights : bool
        Whether the file of weights exists; it may be missing even after the last step.
    """

    run: Run | None
    settings: Settings
    weights: bool

    @property
    def finished(self) -> bool:
        """Whether its training is finished."""
        return self.run is None or self.run.finished


def find_network(network: Network, folder: Path) -> Found | None:
    """Return what the folder of a network contains; None if there is nothing.

    Raises
    ------
    FileError
        If a file is damaged, or belongs to another network.
    """
    weights, checkpoint = folder / WEIGHTS, folder / CHECKPOINT
    run = read_run(checkpoint) if checkpoint.exists() else None
    if run is not None:
        _check_network(checkpoint, network, run.config.network, run.config.model)
        # A run that continues writes its weights again.
        if not run.finished or not weights.exists():
            return Found(run, settings_of(run.config), weights.exists())
    elif not weights.exists():
        return None
    architecture, _, metadata = read_weights(weights)
    _check_network(weights, network, architecture, metadata.get("model"))
    if run is None:
        return Found(None, noted_settings(architecture, metadata), weights=True)
    if metadata.get("step", str(run.step)) != str(run.step):
        raise FileError(
            f"{weights}: is of step {metadata['step'][:20]}, but {CHECKPOINT} next to it of step "
            f"{run.step}; remove the weights to restore them from the checkpoint."
        )
    return Found(run, settings_of(run.config), weights=True)


def read_run(checkpoint: Path) -> Run:
    """Return the settings and the step of a checkpoint, without reading its weights.

    Raises
    ------
    FileError
        If it is not a checkpoint.
    """
    with _opened(checkpoint) as file:
        metadata: Mapping[str, str] = file.metadata() or {}
    if metadata.get("format") != _FORMAT:
        raise FileError(
            f"{checkpoint}: is not a checkpoint of a training run; remove it to train again."
        )
    try:
        config = config_of(json.loads(metadata["config"]))
        step = json.loads(metadata["progress"])["step"]
        if type(step) is not int or step < 0:
            raise ValueError(f"step is {step!r}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FileError(
            f"{checkpoint}: is a damaged checkpoint ({error}); remove it to train again."
        ) from error
    return Run(config, step)


def restore_weights(folder: Path) -> None:
    """Write the weights of a run from its checkpoint, as the run itself writes them.

    Raises
    ------
    FileError
        If the checkpoint does not contain them.
    """
    checkpoint = folder / CHECKPOINT
    run = read_run(checkpoint)
    config = run.config
    noted = {"model": config.model, "window": str(config.window), "step": str(run.step)}
    try:
        with _opened(checkpoint) as file:
            names = config.network.parameters()
            weights = {name: file.get_tensor(f"weights.{name}") for name in names}
        save_weights(folder / WEIGHTS, config.network, weights, noted)
    except (SafetensorError, InputError) as error:
        raise FileError(
            f"{checkpoint}: has no weights that fit its network ({str(error).rstrip('.')}); remove "
            "it to train again."
        ) from error


def _opened(checkpoint: Path) -> Any:
    try:
        return safe_open(checkpoint, framework="np")
    except (SafetensorError, OSError) as error:
        raise FileError(
            f"{checkpoint}: is not a safetensors file ({error}); remove it to train again."
        ) from error


def _check_network(
    path: Path, network: Network, architecture: Architecture, model: str | None
) -> None:
    """Raise a FileError if a file does not belong to the network that its folder is named after."""
    if architecture.layers != network.layers:
        what = f"has {architecture.layers} layers, not {network.layers}"
    elif model not in (None, network.train):
        what = f"was trained as {str(model)[:20]}, not as {network.train}"
    elif architecture.m != BITS:
        what = f"has descriptors of m = {architecture.m}, not {BITS}"
    else:
        return
    raise FileError(
        f"{os.fspath(path)}: {what}, so it is not the network {network.name}; move it to another "
        f"folder, or remove it to train {network.name} again."
    )
