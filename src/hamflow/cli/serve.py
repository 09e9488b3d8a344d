"""``hamflow serve``: the local page on which one sees flow, and why it is so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from hamflow._memory import parse_memory
from hamflow.cli._methods import ViewMemory
from hamflow.cli._options import option
from hamflow.viewer.limits import Limits
from hamflow.viewer.server import PORT
from hamflow.viewer.server import serve as serve_page

Given = Annotated[
    tyro.conf.Positional[tuple[Path, ...]],
    tyro.conf.arg(metavar="[PATH ...]"),
]
Truth = Annotated[
    Path | None,
    option("FLOW", "The true flow of the first pair, or a folder of such files in their order."),
]
Preset = Annotated[str, option("PRESET", "What the page proposes; a name or a TOML file.")]
Host = Annotated[
    str,
    option(
        "ADDRESS",
        "The address to listen at. With another one than this machine's own, a token is part of "
        "the address that is printed, and without it nobody gets in.",
    ),
]
Port = Annotated[
    int | None, option("N", f"Where to listen; by default {PORT}, or any free one if it is taken.")
]
Names = Annotated[
    tuple[str, ...],
    option("NAME", "More names by which browsers may call this machine, with another --host."),
]


def serve(
    paths: Given = (),
    *,
    truth: Truth = None,
    preset: Preset = "balanced",
    no_browser: bool = False,
    port: Port = None,
    host: Host = "127.0.0.1",
    name: Names = (),
    max_memory: ViewMemory = None,
) -> None:
    """Open a page in the browser on which one sees what the flow is, and why.

    For example:

        hamflow serve frame1.png frame2.png --truth flow.flo

    The page takes images, videos and results by drag and drop, too. It estimates their flow with
    live progress, shows it in colors, as arrows, with occlusions and confidence, and explains each
    pixel by its costs and by what the joint model made of them. Only this machine can reach the
    page, unless --host says otherwise. What it keeps is in a private temporary folder, which is
    removed in the end.

    Parameters
    ----------
    paths
        Two images or more, in their order; a folder of images; a video (needs the extra 'video');
        saved results (.npz), or a folder of them. Results belong to the images given before them
        whose names they have.
    no_browser
        Only print the address.
    """
    serve_page(
        paths,
        truth=truth,
        preset=preset,
        host=host,
        port=port,
        names=name,
        browser=not no_browser,
        limits=None if max_memory is None else Limits(memory=parse_memory(max_memory)),
    )
