"""``hamflow pair``: two images to a flow file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console

from hamflow.cli._options import parse_window
from hamflow.errors import InputError
from hamflow.flow import flow_to_color
from hamflow.io import check_flow_path, read_image, write_flow, write_image
from hamflow.io.images import check_image_path
from hamflow.matching import local_flow


def pair(
    image0: tyro.conf.Positional[Path],
    image1: tyro.conf.Positional[Path],
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    viz: Path | None = None,
    window: str = "128",
) -> None:
    """Compute the flow from one image to another.

    The local model: each pixel is matched on its own by the hand-crafted 64-bit descriptor, and
    the winner takes all. Whole pixels, no smoothing.

    Parameters
    ----------
    image0
        The first image, where the flow lives.
    image1
        The second image, of the same size.
    output
        Where to write the flow: .flo, or .png in KITTI's 16-bit encoding (±512 px).
    viz
        Where to write a picture of the flow in the Middlebury colours (.png), full colour at the
        95th percentile of the lengths.
    window
        Displacements to look at: D for the square -D/2..D/2-1, or u0,du,v0,dv.
    """
    win = parse_window(window)
    check_flow_path(output)
    if viz is not None:
        check_image_path(viz)
        if viz.resolve() == output.resolve():
            raise InputError(f"--viz and --output are the same file, {viz}; name two.")
    first, second = read_image(image0), read_image(image1)
    start = time.perf_counter()
    flow = local_flow(first, second, win)
    seconds = time.perf_counter() - start
    write_flow(output, flow)
    if viz is not None:
        # Single pixels that matched far away would set the scale and wash all others out.
        longest = float(np.percentile(np.linalg.norm(flow, axis=2), 95))
        write_image(viz, flow_to_color(flow, max_flow=max(1.0, longest)))
    height, width = flow.shape[:2]
    Console(soft_wrap=True, markup=False).print(
        f"{width}×{height} pixels, {win.du}×{win.dv} displacements, {seconds:.2f} s: {output}",
        highlight=False,
    )
