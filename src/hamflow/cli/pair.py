"""``hamflow pair``: two images to a flow file."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console

from hamflow import crf
from hamflow.cli._options import check_distinct, parse_auto_window, stage_progress
from hamflow.config import preset_config
from hamflow.crf.plot import check_plot
from hamflow.errors import InputError
from hamflow.estimator import Estimator
from hamflow.flow import flow_to_color
from hamflow.io import check_flow_path, write_flow, write_image
from hamflow.io._atomic import atomic_write, check_writable
from hamflow.io.images import check_image_path
from hamflow.result import FlowResult
from hamflow.visualize import typical_length


def pair(
    image0: tyro.conf.Positional[Path],
    image1: tyro.conf.Positional[Path],
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    *,
    viz: Path | None = None,
    occlusion: Path | None = None,
    confidence: Path | None = None,
    backward: Path | None = None,
    json: Path | None = None,
    plot: Path | None = None,
    preset: str = "balanced",
    window: str = "auto",
    scale: int | None = None,
    model: str | None = None,
) -> None:
    """Compute the flow from one image to another.

    Pixels are compared by learned 64-bit descriptors, and a joint model (a CRF) finds the flow that
    fits all of them. Both directions are matched; where they disagree, the flow is completed from
    around. The result is refined to subpixel precision. The command prints the duality gap: the
    energy of the joint model is at most that far above its minimum.

    Parameters
    ----------
    image0
        The first image, where the flow lives.
    image1
        The second image, of the same size.
    output
        Where to write the flow: .flo, .png (KITTI's 16 bits, ±512 px), .pfm, .flo5, .npy or .npz.
    viz
        Where to write a picture of the flow in the Middlebury colors (.png), full color at the
        95th percentile of the lengths.
    occlusion
        Where to write which pixels are hidden in the second image: white if they are (.png).
    confidence
        Where to write how far each pixel can be trusted, from black to white (.png).
    backward
        Where to write the flow from the second image to the first, in any format for flow.
    json
        Where to write window, energy, bound, gap, seconds of each stage and more (.json).
    plot
        Where to draw the energy of the joint model and its bound over time (.png, .svg or .pdf);
        needs the extra 'plot'.
    preset
        'fast', 'balanced', 'paper' (exactly the paper: full resolution, whole pixels, no
        refinement), or a TOML file that changes one of them.
    window
        Displacements to look at: 'auto', D for the square -D/2..D/2-1, or u0,du,v0,dv; in pixels.
    scale
        Match in images reduced by this power of two, instead of what the preset says.
    model
        What pixels are compared by, instead of what the preset says: the name of a shipped model,
        a .safetensors file, or 'pairs', the hand-crafted descriptor.
    """
    config = preset_config(preset)
    named = {"--occlusion": occlusion, "--confidence": confidence, "--backward": backward}
    if not config.bidirectional:
        for option, path in named.items():
            if path is not None:
                raise InputError(
                    f"{option} needs both directions, but the preset {preset} computes one; choose "
                    "another, or set bidirectional = true in a TOML file."
                )
    outputs = {"--output": output, "--viz": viz, "--json": json, "--plot": plot, **named}
    _check_outputs(outputs, {"image0": image0, "image1": image1})
    estimator = Estimator(config, window=parse_auto_window(window), scale=scale, model=model)

    frames = estimator.frame(image0, "image0"), estimator.frame(image1, "image1")
    with stage_progress() as progress:
        result, _ = estimator.between(*frames, progress=progress)
    write_flow(output, result.flow)
    _write_pictures(result, viz, occlusion, confidence)
    if backward is not None and result.backward is not None:
        write_flow(backward, result.backward)
    if json is not None:
        with atomic_write(json) as file:
            file.write((json_module.dumps(result.summary(), indent=2) + "\n").encode())
    if plot is not None:
        crf.plot_convergence(result.history, plot)
    height, width = result.flow.shape[:2]
    gap = "" if result.gap is None else f", duality gap {result.gap:.2%}"
    Console(soft_wrap=True, markup=False).print(
        f"{width}×{height} pixels, window of {result.window.du}×{result.window.dv} pixels, matched "
        f"at scale 1/{result.scale}, {sum(result.timings.values()):.2f} s{gap}: {output}",
        highlight=False,
    )


def _check_outputs(outputs: dict[str, Path | None], inputs: dict[str, Path | None]) -> None:
    """Complain before the work, not after it."""
    checks = {
        "--output": check_flow_path,
        "--backward": check_flow_path,
        "--viz": check_image_path,
        "--occlusion": check_image_path,
        "--confidence": check_image_path,
        "--json": check_writable,
        "--plot": check_plot,
    }
    for option, path in outputs.items():
        if path is not None:
            checks[option](path)
    check_distinct(inputs, outputs)


def _write_pictures(
    result: FlowResult, viz: Path | None, occlusion: Path | None, confidence: Path | None
) -> None:
    if viz is not None:
        write_image(viz, flow_to_color(result.flow, max_flow=typical_length(result.flow)))
    if occlusion is not None and result.occlusion is not None:
        write_image(occlusion, result.occlusion.astype(np.uint8) * np.uint8(255))
    if confidence is not None and result.confidence is not None:
        write_image(confidence, np.rint(255 * result.confidence).astype(np.uint8))
