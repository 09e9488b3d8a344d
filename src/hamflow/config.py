"""What the estimator does, in one place: presets, and how to change them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from hamflow._check import check_range
from hamflow._tables import build, config_of_file
from hamflow.crf.joint_model import JointModel
from hamflow.errors import InputError
from hamflow.refinement import (
    ChoiceCompletion,
    GuardedRefinement,
    LabelingCompletion,
    NoCompletion,
    NoTemporal,
    TrackFilter,
    Upsampling,
)
from hamflow.stages import STAGES, Completion, Matcher, Refinement, Temporal, stage_class


def _fitted() -> JointModel:
    # Larger τ than the paper's, as fits to pairs outside of Sintel have them; and few iterations,
    # after which check and completion make as much of the matches (docs/decisions.md).
    return JointModel(tau1=4.0, tau2=50.0, outer=1, inner=2)


@dataclass(frozen=True)
class EstimatorConfig:
    """All that :class:`hamflow.Estimator` can be told.

    Parameters
    ----------
    model : str
        The descriptor: a name or a file, as `hamflow.load_model` takes it.
    coarse_model : str
        A descriptor of cells of 4×4 pixels, whose bits stand beside those of `model` at the
        coarsest scale; an empty text for none.
    prior : float
        How much the bits at a finer scale must say against the flow of the coarser one where that
        is trusted and clearly better than others, from 0 (it only decides the window) to 255.
    scale : int
        Matching takes place in images reduced by this power of two; 0 chooses it by their size.
    matching_pixels : int
        How many pixels the reduced images have at most if the scale is to be chosen.
    closer_pixels : int
        If images of twice that size have at most so many pixels, they are matched once more, and
        what is found there replaces the flow of before beside decided matches, or where it changes
        little. Not in videos, and not with a given scale or window.
    levels : int
        How many scales are searched, each twice as coarse as the one before. The coarsest is
        searched in a large window; what is found there decides the window of the next.
    square : int
        Side D of the paper's square window if no other is given; 0 lets the estimator find one.
    bidirectional : bool
        Match in both directions. Where they disagree the flow is completed from around, and
        occlusions and confidence are computed from both.
    memory : float
        Gigabytes that the matcher may take. A window that the estimator finds and that needs more
        is narrowed; one that is given is not.
    matcher : Matcher
        The joint model, or another way from descriptors to matches.
    completion : Completion
        What happens to pixels without a trusted match.
    refinement : Refinement
        What takes the flow to the full size and to subpixel precision.
    temporal : Temporal
        What makes the flow of a video hold together in time; it needs both directions.
    """

    model: str = "default"
    coarse_model: str = "coarse"
    prior: float = 5.0
    scale: int = 0
    matching_pixels: int = 170_000
    closer_pixels: int = 200_000
    levels: int = 2
    square: int = 0
    bidirectional: bool = True
    memory: float = 2.0
    matcher: Matcher = field(default_factory=_fitted)
    completion: Completion = field(default_factory=ChoiceCompletion)
    refinement: Refinement = field(default_factory=GuardedRefinement)
    temporal: Temporal = field(default_factory=TrackFilter)

    def __post_init__(self) -> None:
        if not isinstance(self.model, str | os.PathLike):
            raise InputError(f"model must be a name or a file, not {self.model!r}.")
        if type(self.scale) is not int or self.scale not in (0, *(2**k for k in range(9))):
            raise InputError(f"scale must be 0 or a power of two up to 256, not {self.scale!r}.")
        for name, least in (
            ("matching_pixels", 1),
            ("closer_pixels", 0),
            ("levels", 1),
            ("square", 0),
        ):
            check_range(self, name, least, whole=True)
        if not isinstance(self.coarse_model, str | os.PathLike):
            raise InputError(f"coarse_model must be a name or a file, not {self.coarse_model!r}.")
        check_range(self, "memory", 0, 1e6, above=True)
        check_range(self, "prior", 0, 255)

    def tables(self) -> dict[str, Any]:
        """Return all settings as a TOML file would give them, ready for JSON."""
        values = asdict(self)
        for stage in STAGES:
            values[stage] = {"method": getattr(self, stage).method, **values[stage]}
        return values


_FAST = EstimatorConfig(
    model="fast",
    matching_pixels=45_000,
    closer_pixels=50_000,
    matcher=replace(_fitted(), inner=3),
    completion=LabelingCompletion(neighbors=50, rounds=5),
    refinement=GuardedRefinement(warps=2, inner=2, sweeps=12, rounds=1),
)

PRESETS: dict[str, EstimatorConfig] = {
    "paper": EstimatorConfig(
        coarse_model="",
        prior=0.0,
        scale=1,
        closer_pixels=0,
        levels=1,
        square=128,
        bidirectional=False,
        memory=64.0,
        matcher=JointModel.paper(),
        completion=NoCompletion(),
        refinement=Upsampling(smooth=False),
        temporal=NoTemporal(),
    ),
    "realtime": replace(
        _FAST,
        matching_pixels=12_000,
        closer_pixels=13_000,
        levels=1,
        refinement=replace(_FAST.refinement, finest=2),  # type: ignore[type-var]
    ),
    "fast": _FAST,
    "balanced": EstimatorConfig(),
    "fine": EstimatorConfig(closer_pixels=680_000),
}
"""The shipped settings, by name."""


def preset_config(preset: str | os.PathLike[str] | EstimatorConfig) -> EstimatorConfig:
    """Return the settings of a preset, or those that a TOML file makes of one.

    The file names the preset that it starts from (``"balanced"`` if it names none) and what is
    different, with a table for each stage. A table may choose another ``method``, whose parameters
    then start from their defaults::

        preset = "balanced"
        levels = 3
        [matcher]
        tau2 = 80.0
        [completion]
        method = "none"

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
    base = PRESETS[name]
    stages = {s: _stage(s, getattr(base, s), tables.pop(s, {})) for s in STAGES}
    plain = {f.name: getattr(base, f.name) for f in fields(base) if f.name not in STAGES}
    config: EstimatorConfig = build(EstimatorConfig, plain | tables, ready=stages)
    return config


def _stage(stage: str, base: Any, table: object) -> Any:
    """Return a stage as a table changes it, or begins it anew with another method."""
    if not isinstance(table, Mapping):
        raise InputError(f"{stage} must be a table, not {table!r}.")
    values = dict(table)
    kind = stage_class(stage, values.pop("method", base.method))
    start = asdict(base) if kind is type(base) else {}
    return build(kind, start | values, f"{stage}.")
