"""``hamflow interpolate``: frames between those of a video."""

from __future__ import annotations

from typing import Annotated

import tyro

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
from hamflow.errors import InputError
from hamflow.motion.interpolation import in_between, spaced
from hamflow.sequence import video
from hamflow.visualize import to_bytes

_FACTOR = tyro.conf.arg(help="How many frames take the place of one.")


def interpolate(
    source: Clip,
    output: FilmOutput,
    *,
    factor: Annotated[int, _FACTOR] = 2,
    slow: bool = False,
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
    """Add frames between those of a video: for slow motion, or for smooth motion.

    IN is a video file (this needs the extra 'video') or a folder of images. What is hidden in one
    of two frames is taken from the other. Frames of IN are kept as they are, and repeated at a cut.

    Parameters
    ----------
    source
        The video file, or the folder of images.
    slow
        Keep the frames per second, so that OUTPUT takes --factor times as long; by default it has
        more frames per second.
    """
    if factor < 2:
        raise InputError(f"--factor must be at least 2, not {factor}.")
    times = spaced(factor)
    check_outputs(source, {"--output": output}, overwrite)
    clip = ClipReader(source, start, stop, every)
    rate = clip.rate(fps, 1 if slow else factor)
    estimator = chosen_estimator(preset, window, scale, model)
    written = 0
    with clip.read() as reader, picture_sink(output, rate) as add:
        items = clip.shown(video(reader, estimator), "interpolating", pairs=True)
        for frame in in_between(items, times):
            add(f"{written:06d}", to_bytes(frame))
            written += 1
    clip.check_used(written)
    before = (written - 1) // factor + 1
    say(f"{count(before, 'frame')} became {written}, {float(rate):g} per second: {output}.")
