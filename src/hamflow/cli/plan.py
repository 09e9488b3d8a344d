"""``hamflow plan``: what a run will need, before it starts."""

from __future__ import annotations

from typing import Annotated

import tyro

from hamflow._memory import show_memory
from hamflow.cli._console import count, say
from hamflow.cli._methods import MaxMemory, Preset, Scale, Window
from hamflow.cli._options import OptionalFile, parse_auto_window
from hamflow.io._atomic import check_writable
from hamflow.io._text import write_json
from hamflow.pipeline.plan import Plan
from hamflow.pipeline.plan import plan as plan_of


def plan(
    width: Annotated[tyro.conf.Positional[int], tyro.conf.arg(metavar="W")],
    height: Annotated[tyro.conf.Positional[int], tyro.conf.arg(metavar="H")],
    *,
    preset: Preset = "balanced",
    window: Window = "auto",
    scale: Scale = None,
    max_memory: MaxMemory = None,
    files: bool = False,
    json: OptionalFile = None,
) -> None:
    """Say how much memory the flow between two images will need, and how it will be computed.

    For example:

        hamflow plan 3840 2160 --max-memory 1GB

    Nothing is estimated. The numbers are those of the whole process, and usually right to 15 %.
    Without a --window they depend on the motion that is found: the first one is for motion of at
    most a sixteenth of the width and height, and others say how small and how large it can be.

    Parameters
    ----------
    width
        Width of the images in pixels.
    height
        Their height.
    files
        Images and result are .npy or tiled .tif files, of which only parts are in memory.
    json
        Write the plan to this file (.json), too. An existing file is replaced.
    """
    check_writable(json)
    limits = {"scale": scale, "max_memory": max_memory, "files": files}
    found = plan_of(width, height, preset, parse_auto_window(window), **limits)  # type: ignore[arg-type]
    if json is not None:
        write_json(json, found.as_dict())
    found.check()
    for line in _lines(found):
        say(line)


def _lines(plan: Plan) -> list[str]:
    """Return what a plan says, in sentences."""
    window = "found by a search at a coarse scale"
    if plan.window is not None:
        window = f"{plan.window.du}×{plan.window.dv} pixels"
    scales = ", then ".join(f"1/{scale}" for scale in plan.scales)
    way = "the whole images at once"
    if not plan.whole:
        side = round(plan.tile_pixels**0.5)
        way = (
            f"{count(plan.tiles, 'tile')} of at most {plan.tile_pixels / 1e6:.2f} million pixels "
            f"with their surroundings, such as {side}×{side}"
        )
    stages = ", ".join(f"{name} {show_memory(size)}" for name, size in plan.stages.items())
    span = " to ".join(dict.fromkeys(map(show_memory, (plan.at_least, plan.at_most))))
    more = [] if plan.window is not None else [f"For any motion: {span}."]
    if plan.disk:
        more.append(
            f"Labels: in temporary files, {show_memory(plan.disk)} on the disk; they do not fit "
            "into memory."
        )
    if plan.mapped:
        more.append("Result: in temporary files, which are mapped; it does not fit into memory.")
    enough = ", because hard images take more than usual" if plan.smallest > plan.peak else ""
    return [
        f"Memory: {show_memory(plan.peak)} at the peak ({stages}).",
        *more,
        f"At least: {show_memory(plan.smallest)} with --max-memory{enough}.",
        f"Matching: scale {scales}; window {window}.",
        f"Refinement and assessment: {way}.",
    ]
