"""``hamflow synth``: rendered image pairs with exactly known flow."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Annotated

import tyro
from rich.console import Console

from hamflow._processes import usable_cores
from hamflow.cli._console import continuing, count, progress_bar, say
from hamflow.cli._options import Number, OptionalFolder, OutputFolder, Pixels, Share, Switch, option
from hamflow.datasets.synthetic import SyntheticConfig, write_sintel
from hamflow.errors import InputError


@dataclass(frozen=True)
class SceneOptions:
    """What the scenes are like.

    Parameters
    ----------
    max_displacement
        Length of the longest vectors in pixels. Most are much shorter.
    articulated_share
        Share of the layers that are chains of limbs, from 0 to 1.
    perspective_share
        Share of the scenes that are in space, from 0 to 1.
    curved_share
        Share of the things in space that are curved (tubes, balls, hills, cloth), from 0 to 1.
    specular
        Share of the scenes with bright spots that stay with the light, from 0 to 1.
    max_blur
        Length of the longest motion blur, as a share of the shorter side, from 0 to 0.5.
    clean
        Write only the frames without effects, not training/final.
    """

    max_displacement: Annotated[float, option("PIXELS")] = 250.0
    articulated_share: Share = 0.0
    perspective_share: Share = 0.0
    curved_share: Share = 0.0
    specular: Share = 0.0
    max_blur: Share = 0.1
    clean: Switch = False


_USUAL_SCENES = SceneOptions()


def synth(
    *,
    output: OutputFolder,
    number: Annotated[int, option("N", aliases=["-n"])],
    textures: OptionalFolder = None,
    width: Pixels = 1024,
    height: Pixels = 436,
    seed: Number = 0,
    workers: Annotated[int | None, option("N")] = None,
    overwrite: bool = False,
    scene: tyro.conf.OmitArgPrefixes[SceneOptions] = _USUAL_SCENES,
) -> None:
    """Render scenes with known flow and occlusions, to train on or to test with.

    For example:

        hamflow synth -o scenes -n 100 --textures photographs/

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
        Width of the frames.
    height
        Height of the frames.
    seed
        Each number gives other scenes.
    workers
        How many processes to use. By default one per processor.
    overwrite
        Start again: remove the scenes that an earlier run wrote to that folder.
    """
    try:
        config = SyntheticConfig(height=height, width=width, **asdict(scene))
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
                workers=usable_cores() if workers is None else workers,
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
