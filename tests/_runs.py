"""Small networks in the folders of training runs, made without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from _networks import random_weights
from experiments.paper import table1
from experiments.paper.table1 import parse_network
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.weights import save_weights
from hamflow.learning.config import config_of, config_values
from hamflow.learning.state import CHECKPOINT


def save_network(folder: Path, seed: int, **noted: str) -> Path:
    """Weights of a small network with as many layers as the folder's name says."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / table1.WEIGHTS
    architecture = Architecture(layers=parse_network(folder.name).layers, channels=4)
    save_weights(path, architecture, random_weights(architecture, seed), noted)
    return path


def save_run(folder: Path, step: int = 3, **settings: Any) -> Path:
    """The checkpoint of a run, as `hamflow train` writes it, without the optimizer's state."""
    network = parse_network(folder.name)
    values = {"steps": 3, "window": 16, "network": {"layers": network.layers, "channels": 4}}
    config = config_of(values | {"model": network.train} | settings)
    weights = random_weights(config.network)
    metadata = {
        "format": "hamflow-checkpoint",
        "config": json.dumps(config_values(config)),
        "progress": json.dumps({"step": step}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {f"weights.{name}": value for name, value in weights.items()}
    save_file(tensors, folder / CHECKPOINT, metadata)
    return folder
