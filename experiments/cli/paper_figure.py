"""``paper figure``: options and output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from experiments.cli._shared import measure
from experiments.paper.figure import (
    MATCHINGS,
    SHIPPED,
    Matching,
    Region,
    check_pair,
    estimate_panels,
    find_networks,
    prepare_methods,
)
from experiments.paper.figure_layout import draw_figure
from hamflow.cli._options import check_targets
from hamflow.crf.plot import check_plot
from hamflow.datasets import demo_scene
from hamflow.errors import InputError
from hamflow.io import read_flow, read_image


def paper_figure(
    images: Annotated[
        tyro.conf.Positional[tuple[Path, Path] | None], tyro.conf.arg(metavar="FIRST SECOND")
    ] = None,
    *,
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    truth: Path | None = None,
    weights: Path | None = None,
    layers: int = 7,
    ff: str | None = None,
    fq: str | None = None,
    qq: str | None = None,
    models: tuple[Matching, ...] = MATCHINGS,
    region: str | None = None,
    scale: int = 2,
    d: int = 128,
) -> None:
    """Draw the paper's sample figure for a pair: local models above, joint models below.

    There is a column for each of FF, FQ and QQ. The upper row shows the flow of winner takes all,
    the lower row that of the joint model (CRF, 5×8 iterations; on floats for FF, on bits for the
    others). The first column shows the first frame and the true flow (or the second frame). On the
    right, the marked region of each picture is enlarged. All flows share one color scale. Needs the
    extra 'plot'.

    Parameters
    ----------
    images
        The two images, of one size; without them, a rendered scene with its true flow.
    output
        Where to write the figure (.png, .pdf or .svg).
    truth
        File with the true flow; the mean error of each flow is then written above it.
    weights
        Folder of 'python -m experiments paper table1', with the networks ff-7/last.safetensors,
        fq-7/... and qq-7/...; without it and --ff, --fq, --qq, the shipped model is used for all
        columns.
    layers
        Which of the networks in that folder: 5, 7 or 9 layers.
    ff
        Network that was trained with FF (a file, or the name of a shipped model).
    fq
        The same with FQ.
    qq
        The same with QQ.
    models
        Which columns to draw.
    region
        What to enlarge: x,y,w,h in pixels. By default the region with the most motion boundaries.
    scale
        Reduce the frames by this whole factor first; 2 in the paper's Table 1.
    d
        Side of the square window of displacements, in pixels of the reduced frames.
    """
    check_plot(output)
    part = None if region is None else parse_region(region)
    named: dict[Matching, str | None] = {"FF": ff, "FQ": fq, "QQ": qq}
    files = {name: file for name, file in named.items() if file is not None}
    networks = find_networks(models, files, weights, layers=layers)
    check_targets({"--output": output}, files=[*(images or ()), truth, *networks.values()])
    if images is None:
        if truth is not None:
            raise InputError(
                "--truth belongs to two images of your own; give FIRST and SECOND, too."
            )
        scene = demo_scene(height=436, width=768, seed=3)
        image0, image1, true = scene.image0, scene.image1, scene.flow
    else:
        image0, image1 = (read_image(path) for path in images)
        true = None if truth is None else read_flow(truth)
    if part is not None:
        part.check((image0.shape[0], image0.shape[1]))
    check_pair(image0, image1, true, scale=scale)
    # Loaded before the progress bar is shown, so that an error does not interrupt the bar.
    methods = prepare_methods(networks, d=d, scale=scale)
    console = Console(markup=False, soft_wrap=True)
    panels = measure(
        console,
        lambda progress: estimate_panels(image0, image1, methods, truth=true, progress=progress),
    )
    note = _note(networks, d, scale, known=true is not None)
    shown = draw_figure(output, (image0, image1), panels, truth=true, region=part, note=note)
    for panel in panels if true is not None else ():
        console.print(f"{panel.matching}, {panel.kind}: {panel.error:.2f} px", highlight=False)
    console.print(
        f"Wrote {output}; the region {shown.x},{shown.y},{shown.width},{shown.height} is enlarged.",
        highlight=False,
    )


def parse_region(text: str) -> Region:
    """Return the region of ``x,y,w,h``."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 4:
        raise InputError(f"--region must be x,y,w,h, such as 300,120,140,180, not {text!r}.")
    return Region(*numbers)


def _note(networks: Mapping[Matching, str], d: int, scale: int, *, known: bool) -> str:
    """Return the note below the figure."""
    if set(networks.values()) == {SHIPPED}:
        who = f"the shipped model '{SHIPPED}' for all columns"
    else:
        who = "networks " + ", ".join(_short(file) for file in networks.values())
    size = "" if scale == 1 else f", frames at 1/{scale} of their size"
    errors = "; mean errors over all pixels of known flow" if known else ""
    return f"{', '.join(networks)}: {who}. D = {d}{size}{errors}."


def _short(network: str) -> str:
    """Return the name of a network: of its folder, if all files are called last or best."""
    path = Path(network)
    return path.parent.name if path.stem in ("last", "best") and path.parent.name else path.stem
