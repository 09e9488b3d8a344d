"""What the folder of a training run tells about its network, read without torch."""

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
"""File with the state of a run; `hamflow.learning.loop` has the name, too, but needs torch."""

_FORMAT = "hamflow-checkpoint"


@dataclass(frozen=True)
class Run:
    """A training run, as its checkpoint has it.

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
        """Whether all steps are taken."""
        return self.step >= self.config.steps


@dataclass(frozen=True)
class Found:
    """A network that is there, or on its way.

    Attributes
    ----------
    run : Run or None
        How it is trained; None if there are weights only.
    settings : dict
        What is known of that, for `experiments.paper.budget.difference`.
    weights : bool
        Whether its weights are there; a run that is finished can lack them.
    """

    run: Run | None
    settings: Settings
    weights: bool

    @property
    def finished(self) -> bool:
        """Whether it need not be trained any more."""
        return self.run is None or self.run.finished


def find_network(network: Network, folder: Path) -> Found | None:
    """Return what there is of a network in its folder; None if there is nothing.

    Raises
    ------
    FileError
        If a file is damaged, or of another network than that of the table.
    """
    weights, checkpoint = folder / WEIGHTS, folder / CHECKPOINT
    run = read_run(checkpoint) if checkpoint.exists() else None
    if run is not None:
        _check_network(checkpoint, network, run.config.network, run.config.model)
        # The weights of a run that goes on are written anew.
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
            f"{weights}: is of step {metadata['step'][:20]}, but the {CHECKPOINT} beside it of "
            f"step {run.step}; remove the weights, which are then taken from that."
        )
    return Found(run, settings_of(run.config), weights=True)


def read_run(checkpoint: Path) -> Run:
    """Return whose checkpoint a file is and how far it had come, without reading the weights.

    Raises
    ------
    FileError
        If it is not a checkpoint.
    """
    with _opened(checkpoint) as file:
        metadata: Mapping[str, str] = file.metadata() or {}
    if metadata.get("format") != _FORMAT:
        raise FileError(
            f"{checkpoint}: is not a checkpoint of a training run; remove it to train anew."
        )
    try:
        config = config_of(json.loads(metadata["config"]))
        step = json.loads(metadata["progress"])["step"]
        if type(step) is not int or step < 0:
            raise ValueError(f"step is {step!r}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FileError(
            f"{checkpoint}: is a damaged checkpoint ({error}); remove it to train anew."
        ) from error
    return Run(config, step)


def restore_weights(folder: Path) -> None:
    """Write the weights of a run from its checkpoint, as the run itself writes them.

    Raises
    ------
    FileError
        If they are not in the checkpoint.
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
            "it to train anew."
        ) from error


def _opened(checkpoint: Path) -> Any:
    try:
        return safe_open(checkpoint, framework="np")
    except (SafetensorError, OSError) as error:
        raise FileError(
            f"{checkpoint}: is not a safetensors file ({error}); remove it to train anew."
        ) from error


def _check_network(
    path: Path, network: Network, architecture: Architecture, model: str | None
) -> None:
    """Raise a FileError if a file is not of the network that its folder is named after."""
    if architecture.layers != network.layers:
        what = f"has {architecture.layers} layers, not {network.layers}"
    elif model not in (None, network.train):
        what = f"was trained as {str(model)[:20]}, not as {network.train}"
    elif architecture.m != BITS:
        what = f"has descriptors of m = {architecture.m}, not {BITS}"
    else:
        return
    raise FileError(
        f"{os.fspath(path)}: {what}, as {network.name} has; name its folder as it is, or remove it "
        f"to train {network.name} anew."
    )
