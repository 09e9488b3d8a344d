"""``hamflow track``: points through a video."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import tyro

from hamflow.cli._clips import (
    Clip,
    ClipReader,
    Every,
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
from hamflow.cli._options import OutputFile
from hamflow.errors import InputError
from hamflow.io import write_image
from hamflow.io.images import check_image_path
from hamflow.motion.drawing import TRAIL, TrackPainter
from hamflow.motion.tracks import (
    ANCHOR,
    TrackedFrame,
    check_track_path,
    collect,
    read_points,
    tracked,
)
from hamflow.sequence import video

_FOLDER = tyro.conf.arg(metavar="OUTPUT")


def track(
    source: Clip,
    output: OutputFile,
    *,
    points: Path | None = None,
    grid: int = 16,
    anchor: int = ANCHOR,
    picture: Path | None = None,
    film: Annotated[Path | None, _FOLDER] = None,
    trail: int = TRAIL,
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
    """Follow points of the first frame through a video, also while they are hidden.

    IN is a video file (this needs the extra 'video') or a folder of images. FILE gets a row for
    each point and frame: frame (its number from 0), id, x, y, visible (0 or 1), confidence. Tracks
    end at a cut.

    Parameters
    ----------
    source
        The video file, or the folder of images.
    output
        Where to write the tracks: a table (.csv) or arrays (.npz).
    points
        A table (.csv) with the columns x and y: points of the first frame. By default a grid.
    grid
        Pixels from one point of the grid to the next.
    anchor
        Every so many frames, look for the points directly from an earlier frame, which costs
        another flow; 0 for never.
    picture
        Where to write a picture (.png, ...) of all tracks on the last frame.
    film
        Where to write pictures of all frames with the tracks: a video or a folder.
    trail
        How many frames the trails in --film go back.
    """
    check_track_path(output)
    if picture is not None:
        check_image_path(picture)
    if trail < 0:
        raise InputError(f"--trail must be 0 or a number of frames, not {trail}.")
    check_outputs(source, {"--output": output, "--picture": picture, "--film": film}, overwrite)
    clip = ClipReader(source, start, stop, every)
    rate = clip.rate(fps)
    chosen = None if points is None else read_points(points)
    estimator = chosen_estimator(preset, window, scale, model)
    recent, everything = TrackPainter(trail), TrackPainter(None)
    rows: list[TrackedFrame] = []
    with ExitStack() as stack:
        reader = stack.enter_context(clip.read())
        add = None if film is None else stack.enter_context(picture_sink(film, rate))
        items = video(reader, estimator)
        for state in clip.shown(
            tracked(items, estimator, chosen, grid=grid, anchor=anchor), "tracking"
        ):
            rows.append(state.without_frame())
            if add is not None:
                recent.add(state)
                add(f"{state.index:06d}", recent.draw(state.frame))
            if picture is not None:
                everything.add(state)
                last = state.frame
    tracks = collect(rows)
    tracks.save(output)
    if picture is not None:
        write_image(picture, everything.draw(last))
    ended = "" if clip.count in (None, len(rows)) else "; the tracks end at a cut"
    say(
        f"{count(tracks.visible.shape[1], 'point')} through {count(len(rows), 'frame')}, "
        f"{tracks.visible[-1].mean():.0%} visible in the last one: {output}{ended}."
    )
