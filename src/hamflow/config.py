"""What the estimator does, in one place: presets, and how to change them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from hamflow._tables import build, config_of_file
from hamflow.crf.config import CrfConfig
from hamflow.errors import InputError
from hamflow.refinement.filling import FillConfig
from hamflow.refinement.variational import VariationalConfig

# Larger τ than the paper's, as fits to pairs outside of Sintel have them (docs/decisions.md).
_FITTED = CrfConfig(tau1=4.0, tau2=50.0)


@dataclass(frozen=True)
class EstimatorConfig:
    """All that :class:`hamflow.Estimator` can be told.

    Parameters
    ----------
    model : str
        What pixels are compared by: a name or a file, as `hamflow.load_model` takes it.
    scale : int
        Matching takes place in images reduced by this power of two; 0 decides by their size.
    matching_pixels : int
        How many pixels the reduced images have at most if the scale is to be decided.
    levels : int
        How many scales there are, each twice as coarse as the one before. The coarsest is searched
        in the whole window; it decides the window of the next.
    square : int
        Side D of the paper's square window if no other is given; 0 lets the estimator find one.
    both : bool
        Match in both directions: what they disagree on is replaced, and is the base of occlusions
        and confidence.
    filling : bool
        Replace the flow by what `hamflow.refinement.fill` makes of it.
    fractions : bool
        Refine to fractions of a pixel by `hamflow.refinement.refine`.
    memory : float
        Gigabytes that the joint model may take; a window that the estimator finds and that needs
        more is narrowed (one that is given is not).
    crf : CrfConfig
        The joint model.
    fill : FillConfig
        The interpolation.
    variational : VariationalConfig
        The refinement.
    """

    model: str = "default"
    scale: int = 0
    matching_pixels: int = 170_000
    levels: int = 2
    square: int = 0
    both: bool = True
    filling: bool = True
    fractions: bool = True
    memory: float = 2.0
    crf: CrfConfig = _FITTED
    fill: FillConfig = field(default_factory=FillConfig)
    variational: VariationalConfig = field(default_factory=VariationalConfig)

    def __post_init__(self) -> None:
        if not isinstance(self.model, str | os.PathLike):
            raise InputError(f"model must be a name or a file, not {self.model!r}.")
        if type(self.scale) is not int or self.scale not in (0, *(2**k for k in range(9))):
            raise InputError(f"scale must be 0 or a power of two up to 256, not {self.scale!r}.")
        for name, least in (("matching_pixels", 1), ("levels", 1), ("square", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InputError(f"{name} must be a whole number, at least {least}, not {value!r}.")
        if not 0 < self.memory <= 1e6:
            raise InputError(f"memory must be positive, at most a million, not {self.memory!r}.")


PRESETS: dict[str, EstimatorConfig] = {
    "paper": EstimatorConfig(
        scale=1,
        levels=1,
        square=128,
        both=False,
        filling=False,
        fractions=False,
        memory=64.0,
        crf=CrfConfig.paper(),
    ),
    "fast": EstimatorConfig(
        model="fast",
        matching_pixels=45_000,
        levels=2,
        fill=FillConfig(neighbors=50, rounds=5),
        variational=VariationalConfig(warps=3, sweeps=8),
    ),
    "balanced": EstimatorConfig(),
    "accurate": EstimatorConfig(
        crf=replace(_FITTED, outer=4, gap_tolerance=0.0005),
        fill=FillConfig(cell=2, neighbors=200, rounds=20),
        variational=VariationalConfig(warps=10, inner=3, sweeps=30),
    ),
}
"""The shipped settings, by name."""


def preset_config(preset: str | os.PathLike[str] | EstimatorConfig) -> EstimatorConfig:
    """Return the settings of a preset, or those that a TOML file makes of one.

    The file names what it starts from (``preset = "balanced"``, which is the default) and what is
    different, with a table for each group::

        preset = "balanced"
        levels = 3
        [crf]
        tau2 = 80.0

    Raises
    ------
    InputError
        If there is no such preset.
    FileError
        If the file cannot be read, or has something unknown in it.
    """
    if isinstance(preset, EstimatorConfig):
        return preset
    if isinstance(preset, str) and preset in PRESETS:
        return PRESETS[preset]
    if not isinstance(preset, str | os.PathLike):
        raise InputError(f"preset must be a name, a file or an EstimatorConfig, not {preset!r}.")
    if Path(preset).suffix != ".toml":
        raise InputError(
            f"There is no preset {os.fspath(preset)!r}; choose one of {', '.join(PRESETS)}, or "
            "name a .toml file."
        )
    return config_of_file(preset, _of_tables)


def _of_tables(tables: dict[str, Any]) -> EstimatorConfig:
    name = tables.pop("preset", "balanced")
    if not isinstance(name, str) or name not in PRESETS:
        raise InputError(f"preset must be one of {', '.join(PRESETS)}, not {name!r}.")
    config = build(EstimatorConfig, _merged(PRESETS[name], tables))
    assert isinstance(config, EstimatorConfig)
    return config


def _merged(base: Any, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a dataclass as tables, those of `tables` in their place."""
    values: dict[str, Any] = {}
    for entry in fields(base):
        own = getattr(base, entry.name)
        if is_dataclass(own):
            below = tables.get(entry.name, {})
            values[entry.name] = _merged(own, below) if isinstance(below, Mapping) else below
        else:
            values[entry.name] = tables.get(entry.name, own)
    unknown = sorted(set(tables) - set(values))
    return values | {name: tables[name] for name in unknown}
