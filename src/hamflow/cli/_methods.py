"""The options with which commands choose a method: preset, method, descriptor."""

from __future__ import annotations

from typing import Annotated

import tyro

from hamflow.config import PRESETS
from hamflow.errors import InputError
from hamflow.evaluation.methods import JOINT, LOCAL

_PRESETS = f"One of {', '.join(PRESETS)}, or a TOML file that changes one of them."

Preset = Annotated[str, tyro.conf.arg(metavar="PRESET", help=_PRESETS)]
PresetOrMethod = Annotated[
    str | None, tyro.conf.arg(metavar="PRESET", help=f"{_PRESETS} (default: balanced)")
]
Window = Annotated[
    str,
    tyro.conf.arg(
        help="Displacements to search, in pixels: 'auto', D for the square -D/2..D/2-1, or "
        "u0,du,v0,dv.",
    ),
]
Scale = Annotated[
    int | None,
    tyro.conf.arg(help="Match in images reduced by this power of two, instead of the preset's."),
]
Model = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="MODEL",
        help="Another descriptor: a .safetensors file, or the name of a learned or hand-crafted "
        "descriptor that comes with Hamflow.",
    ),
]
MethodName = Annotated[
    str | None,
    tyro.conf.arg(
        metavar="METHOD",
        help=f"Instead of a preset: {', '.join(LOCAL)} (local model), {', '.join(JOINT)} (joint "
        "model), or a method of OpenCV such as opencv-dis (needs the extra 'peers').",
    ),
]


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
                f"There is no preset {preset!r}; choose one of {', '.join(PRESETS)}, name a .toml "
                "file, or give another method with --method."
            )
        return preset
    if method is not None and (method in PRESETS or not method):
        raise InputError(f"There is no method {method!r}; presets are given with --preset.")
    return "balanced" if method is None else method
