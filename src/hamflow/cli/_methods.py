"""The options with which commands choose a method: preset, method, descriptor, search."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import tyro

from hamflow.cli._options import option, parse_auto_window
from hamflow.config import PRESETS, EstimatorConfig
from hamflow.errors import InputError
from hamflow.estimator import Estimator
from hamflow.evaluation.methods import JOINT, LOCAL

PRESET_NAMES = ", ".join(reversed(PRESETS))
"""The names of all presets for help texts, the most accurate first."""

_PRESETS = f"One of {PRESET_NAMES}, or a TOML file that changes one of them."

Preset = Annotated[str, option("PRESET", _PRESETS)]
PresetOrMethod = Annotated[str | None, option("PRESET", f"{_PRESETS} (default: balanced)")]
Window = Annotated[
    str,
    option(
        "WINDOW",
        "Displacements to search, in pixels: auto finds them; D is the square from -D/2 to D/2-1; "
        "u0,du,v0,dv is the rectangle from (u0, v0) with du × dv displacements.",
    ),
]
Scale = Annotated[
    int | None,
    option("N", "Match in images reduced by this power of two; by default the preset's."),
]
Model = Annotated[
    str | None,
    option(
        "MODEL",
        "Another descriptor than the preset's: a .safetensors file, or the name of a learned or "
        "hand-crafted descriptor that comes with Hamflow.",
    ),
]
MaxMemory = Annotated[
    str | None,
    option(
        "SIZE",
        "What the process may take, such as 600MB or 4GB: larger images are computed tile by tile. "
        "See hamflow plan.",
    ),
]
ViewMemory = Annotated[
    str | None,
    option(
        "SIZE",
        "What an estimation may take, such as 600MB or 4GB: larger images are computed tile by "
        "tile. Pixels are not explained then.",
    ),
]
MethodName = Annotated[
    str | None,
    option(
        "METHOD",
        f"Instead of a preset: {', '.join(LOCAL)} (local model), {', '.join(JOINT)} (joint model), "
        "or a method of OpenCV such as opencv-dis (needs the extra 'peers').",
    ),
]


@dataclass(frozen=True)
class SearchOptions:
    """How to search for matches; the preset has good values."""

    window: Window = "auto"
    scale: Scale = None
    model: Model = None
    max_memory: MaxMemory = None

    def estimator(self, preset: str | EstimatorConfig) -> Estimator:
        """Return the estimator with the settings of a preset, changed by these options."""
        return Estimator(preset, **self.settings())

    def settings(self) -> dict[str, Any]:
        """Return the options as `hamflow.Estimator` and `hamflow.batch` take them."""
        return {**asdict(self), "window": parse_auto_window(self.window)}


Search = tyro.conf.OmitArgPrefixes[SearchOptions]
USUAL_SEARCH = SearchOptions()


def chosen_method(preset: str | None, method: str | None) -> str:
    """Return the name that ``--preset`` or ``--method`` gives; balanced if neither is given.

    Raises
    ------
    InputError
        If both are given, or one of them is empty or a name for the other.
    """
    if preset is not None and method is not None:
        raise InputError("--preset and --method exclude each other; give one.")
    if preset is not None:
        if preset not in PRESETS and not preset.endswith(".toml"):
            raise InputError(
                f"There is no preset {preset!r}; choose one of {PRESET_NAMES}, name a .toml "
                "file, or give another method with --method."
            )
        return preset
    if method is not None and (method in PRESETS or not method):
        raise InputError(f"There is no method {method!r}; presets are given with --preset.")
    return "balanced" if method is None else method
