"""``hamflow stabilize``: steady pictures from a shaking camera."""

from __future__ import annotations

from itertools import tee
from typing import Annotated

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
from hamflow.cli._options import Overwrite, option
from hamflow.motion.stabilization import (
    STRENGTH,
    Motion,
    camera_path,
    check_smoothing,
    smoothed,
    steady,
)
from hamflow.sequence import video


def stabilize(
    source: Source,
    output: Pictures,
    *,
    strength: Annotated[float, option("FRAMES")] = STRENGTH,
    crop: Annotated[float | None, option("SHARE")] = None,
    motion: Motion = "homography",
    preset: Preset = "balanced",
    overwrite: Overwrite = False,
    clip: ClipFrames = ALL_FRAMES,
    search: Search = USUAL_SEARCH,
) -> None:
    """Remove the shaking of the camera from a video.

    For example:

        hamflow stabilize in.mp4 -o steady.mp4

    IN is a video file (this needs the extra 'video') or a folder of images; it is read twice. The
    motion of the camera is fitted to the flow, its path is smoothed over time, and the frames are
    warped to the smooth path. After a cut, the path starts anew.

    Parameters
    ----------
    strength
        Over how many frames the path is smoothed: the standard deviation of a Gaussian window.
    crop
        The share of the width and height that is shown, enlarged to the size of IN; 1 shows all,
        with black borders. By default what all frames can show, at least 0.8.
    motion
        What the motion of the camera may be: a homography, or only shift, rotation and zoom.
    """
    check_smoothing(strength, crop)
    check_outputs(source, {"--output": output}, overwrite)
    opened = clip.open(source)
    estimator = both_ways(search, preset)
    with opened.read() as reader:
        items = opened.shown(video(reader, estimator), "camera", pairs=True)
        path = camera_path(items, motion)
    plan = smoothed(path, strength=strength, crop=crop)
    with opened.read() as reader, picture_sink(output, opened.rate()) as add:
        frames, same = tee(opened.shown(reader, "warping"))  # never more than one apart
        for frame, picture in zip(frames, steady((f.image for f in same), plan), strict=True):
            add(frame.name, picture)
    said = f"{count(len(plan.matrices), 'frame')}, {plan.kept:.0%} of width and height kept"
    say(f"{said}: {output}.")
