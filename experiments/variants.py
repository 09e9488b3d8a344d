"""Presets without some of their steps, in the form that `hamflow.evaluation` measures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from hamflow.config import preset_config
from hamflow.estimator import Estimator
from hamflow.evaluation import Estimate, Method
from hamflow.refinement import (
    AffineCompletion,
    LabelingCompletion,
    NoCompletion,
    Upsampling,
    VariationalRefinement,
)

_UNCOMPLETED: dict[str, Any] = {"completion": NoCompletion()}
_UPSAMPLED: dict[str, Any] = {"refinement": Upsampling()}
_WHOLE: dict[str, Any] = _UNCOMPLETED | {"refinement": Upsampling(smooth=False)}

UNREFINED: dict[str, Any] = {"bidirectional": False, **_WHOLE}
"""Only the joint model: one direction, no completion, no subpixel refinement."""

ABLATION: dict[str, dict[str, Any]] = {
    "all steps": {},
    "without the coarse network": {"coarse_model": ""},
    "without a prior": {"prior": 0.0},
    "one scale of matching": {"levels": 1},
    "without the forward-backward check": {"bidirectional": False},
    "completion by labeling": {"completion": LabelingCompletion()},
    "affine completion": {"completion": AffineCompletion()},
    "without completion": _UNCOMPLETED,
    "variational refinement without guards": {"refinement": VariationalRefinement()},
    "without refinement": _UPSAMPLED,
    "whole pixels of the matching scale": _WHOLE,
}
"""The settings that each row of the ablation changes."""


class Variant:
    """A preset with changed settings, used like a `hamflow.evaluation.Method`.

    Parameters
    ----------
    preset : str
        The name of a preset, or a TOML file that changes one.
    label : str
        Its name in tables; it can be part of a file name.
    changes : mapping
        The settings of `hamflow.EstimatorConfig` to change.
    """

    def __init__(self, preset: str, label: str, changes: dict[str, Any]) -> None:
        self.label = label
        config = replace(preset_config(preset), **changes)
        self._estimator = Estimator(config)
        base = Method(preset).settings
        changed = config.tables() | self._estimator.fingerprints
        self.settings = base | {"method": label, "estimator": changed}

    def __call__(self, image0: NDArray[Any], image1: NDArray[Any]) -> Estimate:
        """Return the estimate for two frames of one size."""
        result = self._estimator.estimate(image0, image1)
        return Estimate(result.flow, result.occlusion, result.confidence, result.gap)
