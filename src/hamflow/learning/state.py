"""How far a training run is, as its checkpoint says; readable without torch."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError, safe_open

from hamflow.errors import FileError, missing_file
from hamflow.learning.config import TrainConfig, config_of

CHECKPOINT = "checkpoint.safetensors"
"""The file with the state of a run, in the folder of the run."""
BEST, LAST = "best.safetensors", "last.safetensors"
"""The files with its best weights and its latest ones."""
FORMAT = "hamflow-checkpoint"


@dataclass
class TrainingState:
    """Steps and seconds so far, the smallest validation error, and the step where it was found."""

    step: int = 0
    seconds: float = 0.0
    best: float = float("inf")
    best_step: int = 0


def read_state(path: Path) -> tuple[TrainConfig, TrainingState]:
    """Return the settings and the progress in a checkpoint, without reading the weights."""
    with open_checkpoint(path, "np") as file:
        metadata: dict[str, str] = file.metadata() or {}
    if metadata.get("format") != FORMAT:
        raise FileError(
            f"{path}: is not a checkpoint of a training run; remove it, or start a new run."
        )
    try:
        config = config_of(json.loads(metadata["config"]))
        progress = TrainingState(**json.loads(metadata["progress"]))
        for name, default in vars(TrainingState()).items():
            if type(getattr(progress, name)) is not type(default) or getattr(progress, name) < 0:
                raise ValueError(f"{name} is {getattr(progress, name)!r}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FileError(
            f"{path}: is a damaged checkpoint ({error}); remove it, or start a new run."
        ) from error
    return config, progress


def open_checkpoint(path: Path, framework: Literal["np", "pt"]) -> Any:
    """Open a checkpoint for reading its tensors as arrays of numpy or of torch."""
    if not os.path.isfile(path):
        raise missing_file(path)
    try:
        return safe_open(path, framework=framework)
    except (SafetensorError, OSError) as error:
        raise FileError(
            f"{path}: is not a safetensors file ({error}); remove it, or start a new run."
        ) from error
