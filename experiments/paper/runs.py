"""Read the folder of a training run, without torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError

from experiments.paper.budget import Settings, noted_settings, settings_of
from experiments.paper.table1 import BITS, WEIGHTS, Network
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.weights import read_weights, save_weights
from hamflow.errors import FileError, InputError
from hamflow.learning.config import TrainConfig
from hamflow.learning.state import CHECKPOINT, TrainingState, open_checkpoint, read_state


@dataclass(frozen=True)
class Found:
    """A network that is trained, or whose training has begun.

    Attributes
    ----------
    run : (TrainConfig, TrainingState) or None
        The settings and the progress of its training; None if there are only weights.
    settings : dict
        The known settings of its training, for `experiments.paper.budget.difference`.
    weights : bool
        Whether the file of weights exists; it may be missing even after the last step.
    """

    run: tuple[TrainConfig, TrainingState] | None
    settings: Settings
    weights: bool

    @property
    def finished(self) -> bool:
        """Whether its training is finished."""
        return self.run is None or self.run[1].step >= self.run[0].steps


def find_network(network: Network, folder: Path) -> Found | None:
    """Return what the folder of a network contains; None if there is nothing.

    Raises
    ------
    FileError
        If a file is damaged, or belongs to another network.
    """
    weights, checkpoint = folder / WEIGHTS, folder / CHECKPOINT
    run = read_state(checkpoint) if checkpoint.exists() else None
    found = None
    if run is not None:
        config, state = run
        _check_network(checkpoint, network, config.network, config.model)
        found = Found(run, settings_of(config), weights.exists())
    # A run that continues writes its weights again.
    if not weights.exists() or (found is not None and not found.finished):
        return found
    architecture, _, metadata = read_weights(weights)
    _check_network(weights, network, architecture, metadata.get("model"))
    if found is None:
        return Found(None, noted_settings(architecture, metadata), weights=True)
    if metadata.get("step", str(state.step)) != str(state.step):
        raise FileError(
            f"{weights}: is of step {metadata['step'][:20]}, but {CHECKPOINT} next to it of step "
            f"{state.step}; remove the weights to restore them from the checkpoint."
        )
    return found


def restore_weights(folder: Path) -> None:
    """Write the weights of a run from its checkpoint, as the run itself writes them.

    Raises
    ------
    FileError
        If the checkpoint does not contain them.
    """
    checkpoint = folder / CHECKPOINT
    config, state = read_state(checkpoint)
    noted = {"model": config.model, "window": str(config.window), "step": str(state.step)}
    try:
        with open_checkpoint(checkpoint, "np") as file:
            names = config.network.parameters()
            weights = {name: file.get_tensor(f"weights.{name}") for name in names}
        save_weights(folder / WEIGHTS, config.network, weights, noted)
    except (SafetensorError, InputError) as error:
        raise FileError(
            f"{checkpoint}: has no weights that fit its network ({str(error).rstrip('.')}); remove "
            "it to train again."
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
