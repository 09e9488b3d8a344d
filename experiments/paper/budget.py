"""One budget for all networks of a table: in which settings their trainings differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from hamflow.descriptors.architecture import Architecture
from hamflow.learning.config import TrainConfig, config_values

Settings = dict[str, object]
"""Settings of a training by name, as in ``network.channels``; those that are known."""

# What the table compares, and what does not change what is learned: where files are, how often
# the state is saved or looked at, and how the work is divided.
_FREE = {"model", "network.layers", "data.root", "workers", "threads", "checkpoint_minutes"}
_FREE_BEGINNING = "validat"


def settings_of(config: TrainConfig) -> Settings:
    """Return the settings that all networks of a table must have alike."""
    return _shared(config_values(config))


def noted_settings(architecture: Architecture, metadata: Mapping[str, str]) -> Settings:
    """Return those of them that a file of weights tells by itself.

    Parameters
    ----------
    architecture : Architecture
        Of the network.
    metadata : mapping of str to str
        As `hamflow.descriptors.weights.read_weights` returns it.
    """
    # As it comes back from a checkpoint: lists for tuples.
    values: dict[str, Any] = {"network": json.loads(json.dumps(architecture.metadata()))}
    for name, noted in (("window", "window"), ("steps", "step")):
        number = metadata.get(noted, "")[:20]
        if number.isdecimal():
            values[name] = int(number)
    return _shared(values)


def difference(trainings: Mapping[str, Settings]) -> str | None:
    """Return in which setting two trainings differ, as part of a sentence; None if in none.

    Parameters
    ----------
    trainings : mapping of str to Settings
        The settings by the names of the networks. What is known of one only counts as alike.
    """
    for (one, first), (other, second) in combinations(trainings.items(), 2):
        for name, value in first.items():
            if name in second and second[name] != value:
                return (
                    f"The training of {one} has {name} = {value}, that of {other} has "
                    f"{second[name]}"
                )
    return None


def _shared(values: Mapping[str, Any]) -> Settings:
    return {
        name: value
        for name, value in _flat(values)
        if name not in _FREE and not name.startswith(_FREE_BEGINNING)
    }


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value
