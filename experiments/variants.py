"""Presets with some of their steps left out, as `hamflow.evaluation` can measure them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from hamflow.config import preset_config
from hamflow.estimator import Estimator
from hamflow.evaluation import Estimate, Method
from hamflow.refinement import NoCompletion, Upsampling

_UNCOMPLETED: dict[str, Any] = {"completion": NoCompletion()}
_UPSAMPLED: dict[str, Any] = {"refinement": Upsampling()}
_WHOLE: dict[str, Any] = _UNCOMPLETED | {"refinement": Upsampling(smooth=False)}

UNREFINED: dict[str, Any] = {"bidirectional": False, **_WHOLE}
"""One direction, no completion, no subpixel refinement: what the joint model says is all."""

ABLATION: dict[str, dict[str, Any]] = {
    "all steps": {},
    "one scale of matching": {"levels": 1},
    "without the check of both directions": {"bidirectional": False},
    "without completion": _UNCOMPLETED,
    "without the variational refinement": _UPSAMPLED,
    "whole pixels of the matching scale": _WHOLE,
}
"""Settings that the ablation changes, by what they leave out."""


class Variant:
    """A preset with changed settings, which stands in for a `hamflow.evaluation.Method`.

    Parameters
    ----------
    preset : str
        The name of a preset, or a TOML file that changes one.
    label : str
        What it is called in tables; fit for a file.
    changes : mapping
        Settings of `hamflow.EstimatorConfig` that differ.
    """

    def __init__(self, preset: str, label: str, changes: dict[str, Any]) -> None:
        self.label = label
        config = replace(preset_config(preset), **changes)
        self._estimator = Estimator(config)
        base = Method(preset).settings
        changed = config.tables() | {"model": base["estimator"]["model"]}
        self.settings = base | {"method": label, "estimator": changed}

    def __call__(self, image0: NDArray[Any], image1: NDArray[Any]) -> Estimate:
        """Return the estimate for two frames of one size."""
        result = self._estimator.estimate(image0, image1)
        return Estimate(result.flow, result.occlusion, result.confidence, result.gap)
