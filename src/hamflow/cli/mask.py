"""``hamflow mask``: what moves by itself in a video."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import tee
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from hamflow import _types
from hamflow._check import to_rgb
from hamflow.cli._clips import (
    ALL_FRAMES,
    ClipFrames,
    MorePictures,
    Pictures,
    Source,
    both_ways,
    check_outputs,
    picture_sink,
)
from hamflow.cli._console import count, say
from hamflow.cli._methods import USUAL_SEARCH, Preset, Search
from hamflow.cli._options import Overwrite, option
from hamflow.motion.moving import LEAST, check_least, moving_masks
from hamflow.sequence import video

_TINT = np.array([255, 40, 40])


def mask(
    source: Source,
    output: Pictures,
    *,
    overlay: MorePictures = None,
    least: Annotated[float, option("PIXELS")] = LEAST,
    preset: Preset = "balanced",
    overwrite: Overwrite = False,
    clip: ClipFrames = ALL_FRAMES,
    search: Search = USUAL_SEARCH,
) -> None:
    """Find what moves by itself in a video, and not because the camera moves.

    For example:

        hamflow mask in.mp4 -o masks/ --overlay moving.mp4

    IN is a video file (this needs the extra 'video') or a folder of images. OUTPUT gets a mask for
    each frame but the last: white where a pixel moves otherwise than the camera makes it.

    Parameters
    ----------
    overlay
        The frames with what moves tinted red: a video or a folder.
    least
        By how many pixels the motion must differ from the camera's at least.
    """
    check_least(least)
    check_outputs(source, {"--output": output, "--overlay": overlay}, overwrite)
    opened = clip.open(source)
    estimator = both_ways(search, preset)
    shares: list[float] = []
    planes = 0
    with ExitStack() as stack:
        reader = stack.enter_context(opened.read())
        add = stack.enter_context(picture_sink(output, opened.rate()))
        show = overlay and stack.enter_context(picture_sink(overlay, opened.rate()))
        items, same = tee(opened.shown(video(reader, estimator), "masks", pairs=True))
        # The two are never more than one apart.
        for item, found in zip(items, moving_masks(same, least=least), strict=True):
            add(item.name, to_rgb(found.mask))
            if show:
                show(item.name, tinted(item.frame, found.mask))
            shares.append(float(found.mask.mean()))
            planes += found.camera.kind == "homography"
    say(
        f"{count(len(shares), 'mask')}, {np.mean(shares):.1%} of the pixels move by themselves; "
        f"the camera's motion is a homography in {count(planes, 'frame')}, a fundamental matrix in "
        f"{len(shares) - planes}: {output}{f', {overlay}' if overlay else ''}."
    )


def tinted(frame: _types.Pixels, moving: _types.Mask) -> NDArray[np.uint8]:
    """Return a frame in which what moves is red."""
    picture = to_rgb(frame).copy()
    picture[moving] = np.rint(0.45 * picture[moving] + 0.55 * _TINT).astype(np.uint8)
    return picture
