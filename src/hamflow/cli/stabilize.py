"""``hamflow stabilize``: steady pictures from a shaking camera."""

from __future__ import annotations

from itertools import tee
from typing import Annotated, Literal

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
from hamflow.motion.stabilization import STRENGTH, camera_path, smoothed, steady
from hamflow.sequence import video

_CROP = tyro.conf.arg(
    help="The share of the width and height that is shown, enlarged to the size of IN; 1 shows "
    "all, with black borders. By default what all frames can show, at least 0.8."
)


def stabilize(
    source: Clip,
    output: FilmOutput,
    *,
    strength: float = STRENGTH,
    crop: Annotated[float | None, _CROP] = None,
    motion: Literal["homography", "similarity"] = "homography",
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
    """Remove the shaking of the camera from a video.

    IN is a video file (this needs the extra 'video') or a folder of images; it is read twice. The
    motion of the camera is fitted to the flow, its path is smoothed over time, and the frames are
    warped to the smooth path. After a cut, the path starts anew.

    Parameters
    ----------
    source
        The video file, or the folder of images.
    strength
        Over how many frames the path is smoothed: the standard deviation of a Gaussian window.
    motion
        What the camera's motion may be: a homography, or a shift, rotation and zoom.
    """
    check_outputs(source, {"--output": output}, overwrite)
    clip = ClipReader(source, start, stop, every)
    rate = clip.rate(fps)
    estimator = chosen_estimator(preset, window, scale, model)
    with clip.read() as reader:
        path = camera_path(clip.shown(video(reader, estimator), "camera", pairs=True), motion)
    plan = smoothed(path, strength=strength, crop=crop)
    with clip.read() as reader, picture_sink(output, rate) as add:
        frames, images = tee(clip.shown(reader, "warping"))  # never more than one apart
        for frame, picture in zip(frames, steady((f.image for f in images), plan), strict=True):
            add(frame.name, picture)
    said = f"{count(len(plan.matrices), 'frame')}, {plan.kept:.0%} of width and height kept"
    say(f"{said}: {output}.")
