"""``hamflow pair``: the flow between two images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hamflow import crf
from hamflow.cli._console import progress_bar, say
from hamflow.cli._methods import Model, Preset, Scale, Window
from hamflow.cli._options import FLOW_FORMATS, check_distinct, parse_auto_window
from hamflow.cli._outputs import OUTPUTS, check_directions
from hamflow.config import preset_config
from hamflow.crf.plot import check_plot
from hamflow.estimator import Estimator
from hamflow.evaluation.records import write_json
from hamflow.io import check_flow_path
from hamflow.io._atomic import check_writable
from hamflow.io.images import check_image_path
from hamflow.visualize import typical_length

_FLOW_OUTPUT = tyro.conf.arg(
    aliases=["-o"], metavar="FLOW", help=f"Where to write the flow ({FLOW_FORMATS})."
)


def pair(
    image0: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IMAGE0")],
    image1: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IMAGE1")],
    output: Annotated[Path, _FLOW_OUTPUT],
    *,
    viz: Path | None = None,
    occlusion: Path | None = None,
    confidence: Path | None = None,
    backward: Path | None = None,
    json: Path | None = None,
    plot: Path | None = None,
    preset: Preset = "balanced",
    window: Window = "auto",
    scale: Scale = None,
    model: Model = None,
) -> None:
    """Compute the flow from one image to another.

    Pixels are compared by 64-bit descriptors, and a joint model (a CRF) finds the flow that fits
    all of them. Both directions are matched; where they disagree, the flow is completed from its
    surroundings. Then it is refined to subpixel precision. The command prints the duality gap: the
    energy of the flow is at most that far above the minimum.

    Parameters
    ----------
    image0
        The first image: the flow has a vector for each of its pixels.
    image1
        The second image, of the same size.
    viz
        Where to write a picture of the flow in the Middlebury colors (.png). Full color is the 95th
        percentile of the lengths.
    occlusion
        Where to write a mask (.png), white where a pixel is occluded in the second image.
    confidence
        Where to write the confidence as a picture (.png), from black (0) to white (1).
    backward
        Where to write the flow from the second image to the first, in any flow format.
    json
        Where to write the window, energy, bound, gap and seconds of each stage (.json).
    plot
        Where to draw the energy of the joint model and its bound over time (.png, .svg or .pdf);
        needs the extra 'plot'.
    """
    config = preset_config(preset)
    named = {
        "--output": output,
        "--viz": viz,
        "--occlusion": occlusion,
        "--confidence": confidence,
        "--backward": backward,
    }
    outputs = {option: path for option, path in named.items() if path is not None}
    check_directions(outputs, config, preset)
    for option, path in outputs.items():
        (check_flow_path if OUTPUTS[option].flow else check_image_path)(path)
    if json is not None:
        check_writable(json)
    if plot is not None:
        check_plot(plot)
    inputs: dict[str, Path | None] = {"image0": image0, "image1": image1}
    check_distinct(inputs, {**outputs, "--json": json, "--plot": plot})
    estimator = Estimator(config, window=parse_auto_window(window), scale=scale, model=model)

    frames = estimator.frame(image0, "image0"), estimator.frame(image1, "image1")
    with progress_bar(Console(stderr=True), counted=False) as show:
        result, _ = estimator.between(*frames, progress=lambda stage, share: show(stage, share, 1))
    longest = typical_length(result.flow)
    for option, path in outputs.items():
        OUTPUTS[option].write(path, result, longest)
    if json is not None:
        write_json(json, result.summary())
    if plot is not None:
        crf.plot_convergence(result.history, plot)
    height, width = result.flow.shape[:2]
    gap = "" if result.gap is None else f", duality gap {result.gap:.2%}"
    say(
        f"{width}×{height} pixels, window of {result.window.du}×{result.window.dv} pixels, matched "
        f"at scale 1/{result.scale}, {sum(result.timings.values()):.2f} s{gap}: {output}"
    )
