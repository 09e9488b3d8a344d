"""``hamflow pair``: two images to a flow file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hamflow import crf
from hamflow.cli._options import parse_window
from hamflow.crf.plot import check_plot
from hamflow.descriptors import load_model
from hamflow.errors import InputError
from hamflow.flow import flow_to_color
from hamflow.io import check_flow_path, read_image, write_flow, write_image
from hamflow.io.images import check_image_path
from hamflow.matching import local_flow
from hamflow.matching._arrays import Describe
from hamflow.window import Window


def pair(
    image0: tyro.conf.Positional[Path],
    image1: tyro.conf.Positional[Path],
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    *,
    viz: Path | None = None,
    plot: Path | None = None,
    window: str = "128",
    model: Literal["joint", "local"] = "joint",
    descriptor: str = "pairs",
    crf_file: Path | None = None,
    crf_config: Annotated[crf.CrfConfig, tyro.conf.arg(name="crf")] = crf.CrfConfig(),  # noqa: B008
) -> None:
    """Compute the flow from one image to another, in whole pixels.

    Pixels are compared by 64-bit descriptors, learned or hand-crafted. The joint model (a CRF)
    then finds the flow that fits all of them and is smooth where the image is, and says how far
    from the best one it can be at most: the duality gap.

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
    plot
        Where to draw the energy and its bound over time (.png, .svg or .pdf); needs the extra
        'plot'.
    window
        Displacements to look at: D for the square -D/2..D/2-1, or u0,du,v0,dv.
    model
        'joint', or 'local': each pixel on its own, the winner takes all; quicker and much worse.
    descriptor
        What the pixels are compared by: the name of a shipped model, a file (.onnx, .safetensors),
        or 'pairs', the hand-crafted descriptor.
    crf_file
        Parameters of the joint model in a TOML file, as 'hamflow fit-crf' writes them; they come
        before those given as options.
    crf_config
        Parameters of the joint model.
    """
    win = parse_window(window)
    config = crf_config if crf_file is None else crf_config.updated(crf_file)
    _check_outputs(output, viz, plot, model)
    describe = load_model(descriptor).bits
    first, second = read_image(image0), read_image(image1)
    console = Console(soft_wrap=True, markup=False)
    start = time.perf_counter()
    if model == "local":
        flow, said = local_flow(first, second, win, describe=describe), ""
        history: tuple[crf.CrfStep, ...] = ()
    else:
        result = _solve(first, second, win, config, describe)
        flow, history = result.flow, result.history
        said = f", duality gap {result.gap:.2%} after {len(history)} iterations"
    seconds = time.perf_counter() - start
    write_flow(output, flow)
    if viz is not None:
        # Single pixels that matched far away would set the scale and wash all others out.
        longest = float(np.percentile(np.linalg.norm(flow, axis=2), 95))
        write_image(viz, flow_to_color(flow, max_flow=max(1.0, longest)))
    if plot is not None:
        crf.plot_convergence(history, plot)
    height, width = flow.shape[:2]
    console.print(
        f"{width}×{height} pixels, {win.du}×{win.dv} displacements, {seconds:.2f} s{said}: "
        f"{output}",
        highlight=False,
    )


def _check_outputs(output: Path, viz: Path | None, plot: Path | None, model: str) -> None:
    """Complain before the work, not after it."""
    check_flow_path(output)
    if viz is not None:
        check_image_path(viz)
    if plot is not None:
        if model == "local":
            raise InputError("--plot shows the joint model; leave --model local away.")
        check_plot(plot)
    named = {"--output": output, "--viz": viz, "--plot": plot}
    seen: dict[Path, str] = {}
    for option, path in named.items():
        if path is None:
            continue
        if path.resolve() in seen:
            raise InputError(
                f"{option} and {seen[path.resolve()]} are the same file, {path}; name two."
            )
        seen[path.resolve()] = option


def _solve(
    first: NDArray[np.generic],
    second: NDArray[np.generic],
    win: Window,
    config: crf.CrfConfig,
    describe: Describe,
) -> crf.CrfResult:
    if first.shape[:2] != second.shape[:2]:
        sizes = ["×".join(str(n) for n in image.shape[1::-1]) for image in (first, second)]
        raise InputError(
            f"The two images must have one size, but are {sizes[0]} and {sizes[1]} "
            "(width × height)."
        )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[gap]}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("descriptors", total=config.outer, gap="")
        bits0, bits1 = describe(first), describe(second)
        bar.update(task, description="joint model")

        def progress(step: crf.CrfStep) -> None:
            bar.update(task, completed=step.iteration, gap=f"gap {step.gap:.2%}")

        return crf.solve(
            bits0=bits0, bits1=bits1, image=first, window=win, config=config, callback=progress
        )
