"""``hamflow track``: points through a video."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

from hamflow.cli._clips import (
    ALL_FRAMES,
    ClipFrames,
    MorePictures,
    Source,
    both_ways,
    check_outputs,
    picture_sink,
)
from hamflow.cli._console import count, say
from hamflow.cli._methods import USUAL_SEARCH, Preset, Search
from hamflow.cli._options import (
    Number,
    OptionalFile,
    OutputFile,
    Overwrite,
    Pixels,
    claimed,
    option,
)
from hamflow.errors import InputError
from hamflow.io import write_image
from hamflow.io.images import check_image_path
from hamflow.motion.drawing import TRAIL, TrackPainter
from hamflow.motion.tracks import ANCHOR, check_track_path, collect, read_points, tracked
from hamflow.sequence import video

_POINTS = option("FILE", "A table (.csv) with the columns x and y: points of the first frame.")


def track(
    source: Source,
    output: OutputFile,
    *,
    points: Annotated[OptionalFile, _POINTS] = None,
    grid: Pixels = 16,
    picture: OptionalFile = None,
    film: MorePictures = None,
    trail: Number = TRAIL,
    anchor: Number = ANCHOR,
    preset: Preset = "balanced",
    overwrite: Overwrite = False,
    clip: ClipFrames = ALL_FRAMES,
    search: Search = USUAL_SEARCH,
) -> None:
    """Follow points of the first frame through a video, also while they are hidden.

    For example:

        hamflow track in.mp4 -o tracks.csv --film tracks.mp4

    IN is a video file (this needs the extra 'video') or a folder of images. FILE gets a row for
    each point and frame: frame (its number from 0), id, x, y, visible (0 or 1), confidence. Tracks
    end at a cut.

    Parameters
    ----------
    output
        Where to write the tracks: a table (.csv) or arrays (.npz).
    grid
        Without --points: pixels from one point of a grid to the next.
    picture
        A picture (.png) of all tracks on the last frame.
    film
        All frames with the tracks: a video or a folder.
    trail
        How many frames the trails in --film go back.
    anchor
        Every so many frames, look for the points directly from an earlier frame, which costs
        another flow; 0 for never.
    """
    check_track_path(output)
    if picture is not None:
        check_image_path(picture)
    if trail < 0:
        raise InputError(f"--trail must be 0 or a number of frames, not {trail}.")
    files = {"--output": output, "--picture": picture}
    check_outputs(source, {"--film": film}, overwrite, files=files)
    opened = clip.open(source)
    chosen = None if points is None else read_points(points)
    estimator = both_ways(search, preset)
    recent, everything = TrackPainter(trail), TrackPainter(None)
    rows = []
    with ExitStack() as stack:
        stack.enter_context(claimed([output, picture], overwrite))
        reader = stack.enter_context(opened.read())
        add = film and stack.enter_context(picture_sink(film, opened.rate()))
        items = video(reader, estimator)
        states = tracked(items, estimator, chosen, grid=grid, anchor=anchor, every=clip.every)
        for state in opened.shown(states, "tracking"):
            rows.append(state.without_frame())
            if add:
                recent.add(state)
                add(f"{state.index:06d}", recent.draw(state.frame))
            if picture is not None:
                everything.add(state)
                last = state.frame
        tracks = collect(rows)
        tracks.save(output)
        if picture is not None:
            write_image(picture, everything.draw(last))
    written = ", ".join(str(path) for path in (output, picture, film) if path is not None)
    ended = "" if opened.count in (None, len(rows)) else "; they end there at a cut"
    say(
        f"{count(tracks.visible.shape[1], 'point')} through {count(len(rows), 'frame')}, "
        f"{tracks.visible[-1].mean():.0%} visible in the last one: {written}{ended}."
    )
