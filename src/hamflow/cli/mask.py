"""``hamflow mask``: what moves by itself in a video."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import tee
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from numpy.typing import NDArray

from hamflow._types import Mask, Pixels
from hamflow.cli._clips import (
    Clip,
    ClipReader,
    Every,
    FilmOutput,
    Fps,
    Overwrite,
    Start,
    Stop,
    check_outputs,
    chosen_estimator,
    picture_sink,
)
from hamflow.cli._console import count, say
from hamflow.cli._methods import Model, Preset, Scale, Window
from hamflow.cli._outputs import gray
from hamflow.motion.moving import LEAST, moving_masks
from hamflow.sequence import video
from hamflow.visualize import to_bytes

_TINT = np.array([255, 40, 40])
_OVERLAY = tyro.conf.arg(
    metavar="OUTPUT", help="A video or a folder for the frames, with what moves tinted red."
)


def mask(
    source: Clip,
    output: FilmOutput,
    *,
    least: float = LEAST,
    overlay: Annotated[Path | None, _OVERLAY] = None,
    fps: Fps = None,
    preset: Preset = "balanced",
    window: Window = "auto",
    scale: Scale = None,
    model: Model = None,
    start: Start = 1,
    stop: Stop = None,
    every: Every = 1,
    overwrite: Overwrite = False,
) -> None:
    """Find what moves by itself in a video, and not because the camera moves.

    IN is a video file (this needs the extra 'video') or a folder of images. OUTPUT gets a mask for
    each frame but the last: white where a pixel moves otherwise than the camera makes it.

    Parameters
    ----------
    source
        The video file, or the folder of images.
    least
        By how many pixels the motion must differ from the camera's at least.
    """
    check_outputs(source, {"--output": output, "--overlay": overlay}, overwrite)
    clip = ClipReader(source, start, stop, every)
    rate = clip.rate(fps)
    estimator = chosen_estimator(preset, window, scale, model)
    done, kinds, moving = 0, {"homography": 0, "fundamental": 0}, 0.0
    with ExitStack() as stack:
        reader = stack.enter_context(clip.read())
        add = stack.enter_context(picture_sink(output, rate))
        show = None if overlay is None else stack.enter_context(picture_sink(overlay, rate))
        shown = clip.shown(video(reader, estimator), "masks", pairs=True)
        items, same = tee(shown)  # never more than one apart
        for item, found in zip(items, moving_masks(same, least=least), strict=True):
            add(item.name, np.repeat(gray(found.mask)[..., None], 3, axis=2))
            if show is not None:
                show(item.name, tinted(item.frame, found.mask))
            done += 1
            kinds[found.camera.kind] += 1
            moving += float(found.mask.mean())
    clip.check_used(done)
    say(
        f"{count(done, 'mask')}, {moving / done:.1%} of the pixels move by themselves; the motion of "
        f"the camera is a homography in {kinds['homography']} frames and a fundamental matrix in "
        f"{kinds['fundamental']}: {output}."
    )


def tinted(frame: Pixels, mask: Mask) -> NDArray[np.uint8]:
    """Return a frame in which the pixels of a mask are red."""
    picture = to_bytes(frame).copy()
    picture[mask] = np.rint(0.45 * picture[mask] + 0.55 * _TINT).astype(np.uint8)
    return picture
