"""``hamflow synth``: image pairs with exact flow, from one's own photographs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hamflow.cli._console import continuing, terminable
from hamflow.datasets.synthetic import SyntheticConfig, write_sintel
from hamflow.errors import InputError


def synth(
    *,
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    number: Annotated[int, tyro.conf.arg(aliases=["-n"])],
    textures: Path | None = None,
    width: int = 1024,
    height: int = 436,
    max_displacement: float = 250.0,
    seed: int = 0,
    workers: int | None = None,
    clean: bool = False,
    overwrite: bool = False,
) -> None:
    """Render scenes with known flow and occlusions, to train on or to test with.

    Each is made of moving, turning, bending layers that are cut from photographs. The folder has
    the layout of the Sintel benchmark: training/clean holds the frames, training/final the same
    with blur, fog, noise and changes of the light, training/flow, /occlusions and /invalid the
    truth. With a larger -n, the set grows. The log run.jsonl tells how it was made.

    The same command again continues an interrupted run; a folder with other settings or other files
    is refused; --overwrite begins anew.

    Parameters
    ----------
    output
        Folder of the set.
    number
        How many scenes it is to have.
    textures
        Folder with photographs (.jpg or .png, also in folders below it); without it the scenes have
        procedural textures.
    width
        Of the frames, in pixels.
    height
        Of the frames, in pixels.
    max_displacement
        In pixels. Most motions are much smaller, a few reach it.
    seed
        Another number, other scenes.
    workers
        How many processes; by default one for each processor.
    clean
        Write only the frames without effects, not training/final.
    overwrite
        Begin anew: remove the scenes of an earlier set in that folder.
    """
    if workers is None:
        workers = _processors()
    try:
        config = SyntheticConfig(
            height=height, width=width, max_displacement=max_displacement, clean=clean
        )
    except InputError as error:
        raise InputError(f"--{str(error).replace('_', '-', 1)}") from None
    if number < 1:
        raise InputError(f"--number must be at least 1, but is {number}.")

    console = Console(markup=False, soft_wrap=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    start = time.perf_counter()
    complete = 0
    # Only where someone may be watching.
    quiet = not console.is_terminal
    shown = Progress(*columns, console=console, transient=True, disable=quiet)
    with terminable(), shown as bar:
        task = bar.add_task("reading photographs" if textures else "preparing", total=None)

        def show(done: int, total: int) -> None:
            nonlocal complete
            if bar.tasks[0].total is None:
                # What was there before says nothing of how long the rest takes.
                bar.reset(task, completed=done, total=total, description="rendering")
            complete = done
            bar.update(task, completed=done)

        try:
            report = write_sintel(
                output,
                config,
                number,
                folder=textures,
                seed=seed,
                workers=workers,
                overwrite=overwrite,
                callback=show,
            )
        except KeyboardInterrupt:
            console.print(
                f"Stopped early with {complete} of {number} scenes in {output}; "
                f"{continuing(overwrite)}.",
                highlight=False,
            )
            raise
    before = f" ({report.known} were there already)" if report.known else ""
    console.print(
        f"Wrote {report.written} {'scene' if report.written == 1 else 'scenes'} of "
        f"{width}×{height} pixels to {output}{before} in {time.perf_counter() - start:.1f} s.",
        highlight=False,
    )


def _processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
