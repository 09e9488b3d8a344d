"""``hamflow synth``: rendered image pairs with exactly known flow."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hamflow.cli._console import continuing, count, progress_bar, say
from hamflow.cli._options import OutputFolder
from hamflow.datasets.synthetic import SyntheticConfig, write_sintel
from hamflow.errors import InputError


def synth(
    *,
    output: OutputFolder,
    number: Annotated[int, tyro.conf.arg(aliases=["-n"])],
    textures: Path | None = None,
    width: int = 1024,
    height: int = 436,
    max_displacement: float = 250.0,
    articulated_share: float = 0.0,
    perspective_share: float = 0.0,
    curved_share: float = 0.0,
    max_blur: float = 0.1,
    specular: float = 0.0,
    seed: int = 0,
    workers: int | None = None,
    clean: bool = False,
    overwrite: bool = False,
) -> None:
    """Render scenes with known flow and occlusions, to train on or to test with.

    Each scene consists of layers cut from photographs that move, turn and bend, or (see
    --perspective-share) of ground, walls, boxes and other things before a moving camera. The
    folder has the layout of the Sintel benchmark: training/clean contains the frames,
    training/final the same with blur, fog, noise and changes of light, and training/flow,
    /occlusions and /invalid the truth.

    The same command continues an interrupted run; a folder with other settings or other files is
    refused; --overwrite starts again. A larger -n adds scenes. The log run.jsonl in the folder
    describes how the scenes were made.

    Parameters
    ----------
    output
        Folder for the scenes, new or empty.
    number
        How many scenes the folder shall have.
    textures
        Folder of photographs (.jpg or .png, also in folders inside). By default the textures are
        generated.
    width
        Width of the frames in pixels.
    height
        Height of the frames in pixels.
    max_displacement
        Length of the longest vectors in pixels. Most are much shorter.
    articulated_share
        Share of the layers that are chains of limbs, from 0 to 1.
    perspective_share
        Share of the scenes that are in space, from 0 to 1.
    curved_share
        Share of the things in space that are curved (tubes, balls, hills, cloth), from 0 to 1.
    max_blur
        Length of the longest motion blur, as a share of the shorter side, from 0 to 0.5.
    specular
        Share of the scenes with bright spots that stay with the light, from 0 to 1.
    seed
        Each number gives other scenes.
    workers
        How many processes to use. By default one per processor.
    clean
        Write only the frames without effects, not training/final.
    overwrite
        Start again: remove the scenes that an earlier run wrote to that folder.
    """
    if workers is None:
        workers = _processors()
    try:
        config = SyntheticConfig(
            height=height,
            width=width,
            max_displacement=max_displacement,
            articulated_share=articulated_share,
            perspective_share=perspective_share,
            curved_share=curved_share,
            max_blur=max_blur,
            specular=specular,
            clean=clean,
        )
    except InputError as error:
        raise InputError(f"--{str(error).replace('_', '-', 1)}") from None
    if number < 1:
        raise InputError(f"--number must be at least 1, but is {number}.")

    start = time.perf_counter()
    complete = 0
    try:
        title = "reading photographs" if textures else "preparing"
        with progress_bar(Console(), title) as show:

            def rendered(done: int, total: int) -> None:
                nonlocal complete
                complete = done
                show("rendering", done, total)

            report = write_sintel(
                output,
                config,
                number,
                folder=textures,
                seed=seed,
                workers=workers,
                overwrite=overwrite,
                callback=rendered,
            )
    except KeyboardInterrupt:
        say(
            f"Stopped early with {complete} of {number} scenes in {output}; "
            f"{continuing(overwrite)}."
        )
        raise
    before = f" ({report.known} existed before)" if report.known else ""
    say(
        f"Wrote {count(report.written, 'scene')} of {width}×{height} pixels to {output}{before} in "
        f"{time.perf_counter() - start:.1f} s."
    )


def _processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
