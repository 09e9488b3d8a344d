"""``hamflow interpolate``: frames between those of a video."""

from __future__ import annotations

from hamflow._check import to_rgb
from hamflow.cli._clips import (
    ALL_FRAMES,
    ClipFrames,
    Pictures,
    Source,
    both_ways,
    check_outputs,
    picture_sink,
)
from hamflow.cli._console import count, say
from hamflow.cli._methods import USUAL_SEARCH, Preset, Search
from hamflow.cli._options import Number, Overwrite
from hamflow.errors import InputError
from hamflow.motion.interpolation import in_between, spaced
from hamflow.sequence import video


def interpolate(
    source: Source,
    output: Pictures,
    *,
    factor: Number = 2,
    slow: bool = False,
    preset: Preset = "balanced",
    overwrite: Overwrite = False,
    clip: ClipFrames = ALL_FRAMES,
    search: Search = USUAL_SEARCH,
) -> None:
    """Add frames between those of a video, for smooth or slow motion.

    For example:

        hamflow interpolate in.mp4 -o slow.mp4 --factor 4 --slow

    IN is a video file (this needs the extra 'video') or a folder of images. What is hidden in one
    of two frames is taken from the other. Frames of IN are kept as they are, and repeated at a cut.

    Parameters
    ----------
    factor
        How many frames take the place of one.
    slow
        Keep the frames per second, so that OUTPUT takes --factor times as long; by default it has
        more frames per second.
    """
    if factor < 2:
        raise InputError(f"--factor must be at least 2, not {factor}.")
    times = spaced(factor)
    check_outputs(source, {"--output": output}, overwrite)
    opened = clip.open(source)
    rate = opened.rate(1 if slow else factor)
    estimator = both_ways(search, preset)
    written = 0
    with opened.read() as reader, picture_sink(output, rate) as add:
        items = opened.shown(video(reader, estimator), "interpolating", pairs=True)
        for frame in in_between(items, times):
            add(f"{written:06d}", to_rgb(frame))
            written += 1
    before = (written - 1) // factor + 1
    say(f"{count(before, 'frame')} became {written}, {float(rate):g} per second: {output}.")
