"""The state of a run in one safetensors file: weights, optimizer, and progress."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.learning.config import TrainConfig, config_values
from hamflow.learning.network import DescriptorNetwork
from hamflow.learning.state import FORMAT, TrainingState, open_checkpoint


def save_checkpoint(
    path: Path,
    config: TrainConfig,
    progress: TrainingState,
    network: DescriptorNetwork,
    optimizer: torch.optim.Adam,
) -> None:
    """Write the state atomically."""
    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in network.named_parameters():
        tensors[f"weights.{name}"] = parameter.detach()
        state = optimizer.state.get(parameter, {})
        for key in ("exp_avg", "exp_avg_sq", "step"):
            if key in state:
                tensors[f"{key}.{name}"] = state[key]
    tensors |= {f"buffers.{name}": buffer for name, buffer in _buffers(network).items()}
    metadata = {
        "format": FORMAT,
        "config": json.dumps(config_values(config)),
        "progress": json.dumps(vars(progress)),
    }
    content = save({name: t.contiguous() for name, t in tensors.items()}, metadata)
    with atomic_write(path) as file:
        file.write(content)


def load_checkpoint(path: Path, network: DescriptorNetwork, optimizer: torch.optim.Adam) -> None:
    """Restore the weights and the state of the optimizer from a checkpoint."""
    with open_checkpoint(path, "pt") as file:
        present = set(file.keys())
        for name, parameter in network.named_parameters():
            expected = {f"weights.{name}": parameter.shape}
            stepped = f"step.{name}" in present
            if stepped:
                expected |= {f"{key}.{name}": parameter.shape for key in ("exp_avg", "exp_avg_sq")}
                expected[f"step.{name}"] = torch.Size()
            for key, shape in expected.items():
                if key not in present or not _fits(file.get_slice(key), shape):
                    raise FileError(f"{path}: has no {key} of the right shape; start a new run.")
            with torch.no_grad():
                parameter.copy_(file.get_tensor(f"weights.{name}"))
            if stepped:
                optimizer.state[parameter] = {
                    key: file.get_tensor(f"{key}.{name}").clone()
                    for key in ("step", "exp_avg", "exp_avg_sq")
                }
        for name, buffer in _buffers(network).items():
            key = f"buffers.{name}"
            if key not in present or not _fits(file.get_slice(key), buffer.shape):
                raise FileError(f"{path}: has no {key} of the right shape; start a new run.")
            buffer.copy_(file.get_tensor(key))


def _buffers(network: DescriptorNetwork) -> dict[str, torch.Tensor]:
    """Return the means and variances of batch normalization, without the count of its batches."""
    return {name: buffer for name, buffer in network.named_buffers() if buffer.is_floating_point()}


def _fits(entry: Any, shape: torch.Size) -> bool:
    return entry.get_dtype() == "F32" and tuple(entry.get_shape()) == tuple(shape)
