"""``hamflow pair``: the flow between two images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hamflow import crf
from hamflow.cli._console import count, progress_bar, say
from hamflow.cli._methods import USUAL_SEARCH, Preset, Search
from hamflow.cli._options import (
    FLOW_FORMATS,
    OptionalFile,
    Overwrite,
    check_distinct,
    claimed,
    option,
    parse_region,
)
from hamflow.config import preset_config
from hamflow.crf.plot import check_plot
from hamflow.errors import InputError
from hamflow.estimation import FIELDS
from hamflow.estimator import Estimator
from hamflow.io._atomic import check_writable
from hamflow.io._text import write_json
from hamflow.large import estimate_files, written_in_parts
from hamflow.scale.outputs import OUTPUTS, check_directions

_FLOW_OUTPUT = tyro.conf.arg(
    aliases=["-o"],
    metavar="FLOW",
    help=f"Where to write the flow ({FLOW_FORMATS}); .npz keeps the whole result.",
)


@dataclass(frozen=True)
class ResultOptions:
    """What else to write of the result.

    Parameters
    ----------
    occlusion
        A mask (.png, .tif), white where a pixel is occluded in the second image; or its values
        (.npy).
    confidence
        A picture of the confidence (.png, .tif), from black (0) to white (1); or its values (.npy).
    backward
        The flow from the second image to the first, in any flow format.
    json
        Window, energy, bound, gap, and the seconds of each stage (.json).
    plot
        A plot of the energy of the joint model and its bound over time (.png, .svg or .pdf); needs
        the extra 'plot'.
    """

    occlusion: OptionalFile = None
    confidence: OptionalFile = None
    backward: OptionalFile = None
    json: OptionalFile = None
    plot: OptionalFile = None


Region = Annotated[
    str | None,
    option(
        "X,Y,W,H", "Compute the flow of this part of the first image alone: x, y, width, height."
    ),
]
_NOTHING_ELSE = ResultOptions()
# What of the result options ask for.
_FIELDS = {"--output": "flow", **{f"--{name}": name for name in sorted(FIELDS - {"flow"})}}


def pair(
    image1: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IMAGE1")],
    image2: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IMAGE2")],
    output: Annotated[Path, _FLOW_OUTPUT],
    *,
    viz: OptionalFile = None,
    region: Region = None,
    preset: Preset = "balanced",
    overwrite: Overwrite = False,
    result: tyro.conf.OmitArgPrefixes[ResultOptions] = _NOTHING_ELSE,
    search: Search = USUAL_SEARCH,
) -> None:
    """Compute the flow from one image to another.

    For example:

        hamflow pair frame1.png frame2.png -o flow.flo --viz flow.png

    Pixels are compared by 64-bit descriptors, and a joint model (a CRF) finds the flow that fits
    all of them. Both directions are matched; where they disagree, the flow is completed from its
    surroundings. Then it is refined to subpixel precision. The command prints the duality gap: the
    energy of the flow is at most that far above the minimum.

    Parameters
    ----------
    image1
        The first image: the flow has a vector for each of its pixels.
    image2
        The second image, of the same size.
    viz
        A picture of the flow in the Middlebury colors (.png), with a key. Full color is the 95th
        percentile of the lengths, at least 1 pixel.
    """
    config = preset_config(preset)
    named = {
        "--output": output,
        "--viz": viz,
        "--occlusion": result.occlusion,
        "--confidence": result.confidence,
        "--backward": result.backward,
    }
    outputs = {name: path for name, path in named.items() if path is not None}
    check_directions(outputs, config, preset)
    for name, path in outputs.items():
        OUTPUTS[name].check(path)
    check_writable(result.json)
    if result.plot is not None:
        check_plot(result.plot)
    written = {**outputs, "--json": result.json, "--plot": result.plot}
    check_distinct({"IMAGE1": image1, "IMAGE2": image2}, written)
    with claimed(written.values(), overwrite):
        estimator = search.estimator(config)
        fields = {_FIELDS.get(name, name): path for name, path in outputs.items()}
        if search.max_memory is not None and region is None and result.plot is None:
            if all(written_in_parts(*field) for field in fields.items()):
                _write_in_parts((image1, image2), fields, result.json, estimator)
                return
            _check_fits((image1, image2), fields, estimator)

        part = None if region is None else parse_region(region)
        with progress_bar(Console(stderr=True), counted=False) as show:
            found = estimator.estimate(
                image1, image2, region=part, progress=lambda stage, share: show(stage, share, 1)
            )
        for name, path in outputs.items():
            OUTPUTS[name].write(path, found)
        if result.json is not None:
            write_json(result.json, found.summary())
        if result.plot is not None:
            crf.plot_convergence(found.history, result.plot)
    height, width = found.flow.shape[:2]
    gap = "" if found.gap is None else f", duality gap {found.gap:.2%}"
    names = ", ".join(str(path) for path in written.values() if path is not None)
    say(
        f"Wrote {names}: {width}×{height} pixels, window of {found.window.du}×{found.window.dv} "
        f"pixels, matched at scale 1/{found.scale}, {sum(found.timings.values()):.2f} s{gap}."
    )


def _check_fits(images: tuple[Path, Path], fields: dict[str, Path], estimator: Estimator) -> None:
    """Raise an InputError if a result that is in memory when it is written would not fit."""
    if estimator.plan(estimator.large_frame(images[0]).shape).mapped:
        whole = [str(path) for name, path in fields.items() if not written_in_parts(name, path)]
        raise InputError(
            f"{' and '.join(whole)} cannot be written part by part, and the result does not fit "
            "into --max-memory; name .npy or .tif files, or allow more memory."
        )


def _write_in_parts(
    images: tuple[Path, Path], fields: dict[str, Path], json: Path | None, estimator: Estimator
) -> None:
    """Compute and write tile by tile: neither the images nor the result need fit into memory."""
    with progress_bar(Console(stderr=True), counted=False) as show:
        found = estimate_files(
            *images,
            **fields,
            estimator=estimator,
            progress=lambda stage, share: show(stage, share, 1),
        )
    if json is not None:
        write_json(json, found)
    gap = "" if found["gap"] is None else f", duality gap {found['gap']:.2%}"
    names = ", ".join(str(path) for path in (*fields.values(), json) if path is not None)
    say(
        f"Wrote {names}: {found['width']}×{found['height']} pixels, "
        f"{count(found['tiles'], 'tile')}, "
        f"matched at scale 1/{found['scale']}, {sum(found['seconds'].values()):.2f} s{gap}."
    )
