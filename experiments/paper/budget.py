"""Check that all networks of a table were trained with the same settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from hamflow.descriptors.architecture import Architecture
from hamflow.learning.config import TrainConfig, config_values

Settings = dict[str, object]
"""The known settings of a training by name, such as ``network.channels``."""

# These may differ: the table compares the first two, and the others do not change what is learned.
_FREE = {"model", "network.layers", "data.root", "workers", "threads", "checkpoint_minutes"}
_FREE_PREFIX = "validat"


def settings_of(config: TrainConfig) -> Settings:
    """Return the settings that must be the same for all networks of a table."""
    return _shared(config_values(config))


def noted_settings(architecture: Architecture, metadata: Mapping[str, str]) -> Settings:
    """Return those of these settings that are written in a file of weights.

    Parameters
    ----------
    architecture : Architecture
        The network's.
    metadata : mapping of str to str
        As `hamflow.descriptors.weights.read_weights` returns it.
    """
    # In the form of a checkpoint: lists instead of tuples.
    values: dict[str, Any] = {"network": json.loads(json.dumps(architecture.metadata()))}
    for name, noted in (("window", "window"), ("steps", "step")):
        number = metadata.get(noted, "")[:20]
        if number.isdecimal():
            values[name] = int(number)
    return _shared(values)


def difference(trainings: Mapping[str, Settings]) -> str | None:
    """Return a clause that says in which setting two trainings differ; None if they do not.

    Parameters
    ----------
    trainings : mapping of str to Settings
        The settings by the names of the networks. A setting that one network lacks is ignored.
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
        if name not in _FREE and not name.startswith(_FREE_PREFIX)
    }


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value
