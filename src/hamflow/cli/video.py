"""``hamflow video``: the flow from each frame to the next, of a whole video."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hamflow._resume import LOG
from hamflow.cli._console import continuing, say, terminable
from hamflow.cli._options import check_distinct, parse_auto_window
from hamflow.cli._video_store import (
    Sink,
    Store,
    color_sink,
    confidence_sink,
    flow_sink,
    mask_sink,
)
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io import FLOW_SUFFIXES, read_image
from hamflow.io.video import VIDEO_SUFFIXES, Frames, VideoWriter, check_video_path, open_frames
from hamflow.sequence import video as flow_of_video

_DEFAULT_FPS = 25  # for images in a folder
_MOST_FPS = 1000
_TOLD = 10  # broken frames that are named, of any number
# Names that are not meant to be folders.
_OTHER_FILES = (*FLOW_SUFFIXES, ".gif", ".m4v", ".mov", ".mpg", ".ogv", ".wmv")


@dataclass(frozen=True)
class _Choice:
    """Which frames, counted from 1 as the user does, and what happens to broken ones."""

    start: int
    stop: int | None
    every: int
    skip_broken: bool

    def __post_init__(self) -> None:
        if self.start < 1:
            raise InputError(f"--start must be at least 1, the first frame, not {self.start}.")
        if self.every < 1:
            raise InputError(f"--every must be at least 1, not {self.every}.")
        if self.stop is not None and self.stop < self.start + self.every:
            raise InputError(
                f"--stop must leave at least two frames, that is be {self.start + self.every} or "
                f"more, not {self.stop}."
            )

    def pairs(self, count: int | None) -> int | None:
        """Return how many pairs there are if all goes well."""
        ends = [end for end in (self.stop, count) if end is not None]
        return max(0, len(range(self.start, min(ends) + 1, self.every)) - 1) if ends else None


@dataclass
class _Tally:
    """What came of it."""

    done: int = 0
    known: int = 0
    seconds: float = 0.0
    names: list[str] = field(default_factory=list)
    broken: int = 0
    frames: int = 0


def video(
    source: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IN")],
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    *,
    preset: str = "balanced",
    window: str = "auto",
    scale: int | None = None,
    model: str | None = None,
    suffix: Annotated[str | None, tyro.conf.arg(name="format")] = None,
    max_flow: float | None = None,
    fps: float | None = None,
    start: int = 1,
    stop: int | None = None,
    every: int = 1,
    on_broken: Literal["stop", "skip"] = "stop",
    backward: Path | None = None,
    occlusion: Path | None = None,
    confidence: Path | None = None,
    viz: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Compute the flow from each frame of a video to the next.

    IN is a video file (needs the extra 'video') or a folder of images, in the natural order of
    their names. OUTPUT is a folder, which gets one flow file for each pair, called as its first
    frame is; or a video file (.mp4, .mkv, .avi, .webm), which shows the flow in the Middlebury
    colors, on one scale from beginning to end.

    Ctrl-C (or SIGTERM) ends the work. The log run.jsonl in each folder tells how its files were
    made. Pairs of frames that were changed since then are computed again, and so are files that are
    missing or damaged. Each pair starts from what the one before found; the first pair of a
    continued run, as the first of all, looks everywhere instead, and may differ slightly. The
    pictures of a color video are kept in OUTPUT.parts until it is complete.

    The same command again continues an interrupted run; a folder with other settings or other files
    is refused; --overwrite begins anew.

    Parameters
    ----------
    source
        The video file, or the folder of images.
    output
        The folder for the flow files, or the color video.
    preset
        'fast', 'balanced', 'paper', or a TOML file.
    window
        Displacements to look at: 'auto', D for the square -D/2..D/2-1, or u0,du,v0,dv.
    scale
        Match in frames reduced by this power of two; by default as the preset says.
    model
        Another descriptor than the preset's: a name, a file, or 'pairs'.
    suffix
        Of the flow files: .flo (the default), .png (KITTI), .pfm, .flo5, .npy, .npz.
    max_flow
        For a color video and --viz: the length in pixels that gets full color. By default chosen
        by the first pair, and told at the end.
    fps
        For a color video: pictures per second; by default those of IN, divided by --every, or 25
        if IN is a folder.
    start
        Number of the first frame to use, counted from 1. A video is decoded up to there.
    stop
        Number of the last frame to use.
    every
        Use every N-th frame only: the flow from frame 1 to 1 + N, from there to 1 + 2N, ...
    on_broken
        What to do when a frame is damaged or of another size: 'stop', or 'skip' it and the two
        pairs that it is part of, in a color video as well. There is no flow across the gap.
    backward
        Folder for the flows from the second frame of each pair to the first.
    occlusion
        Folder for masks (.png), white where a pixel of the first frame is hidden in the second.
    confidence
        Folder for pictures of the confidence (.png), from black, 0, to white, 1.
    viz
        Folder for pictures of the flow (.png), with the same colors as a color video.
    overwrite
        Begin anew: replace an existing video, or the files of an earlier run.
    """
    choice = _Choice(start, stop, every, on_broken == "skip")
    film = output.suffix.lower() in VIDEO_SUFFIXES and not output.is_dir()
    _check_options(output, film, viz, suffix=suffix, max_flow=max_flow, fps=fps)
    extras = {
        "--backward": backward,
        "--occlusion": occlusion,
        "--confidence": confidence,
        "--viz": viz,
    }
    parts = output.with_name(f"{output.name}.parts")
    own = {"--output": output, "OUTPUT.parts": parts if film else None}
    check_distinct({"IN": source}, {**own, **extras})
    frames = open_frames(source)
    rate = _rate(fps, frames, every)
    if film:
        check_video_path(output)
        # With parts, this is a run that was allowed to replace it, and was interrupted.
        if output.exists() and not overwrite and not (parts / LOG).exists():
            raise FileError(f"{output}: is there already; add --overwrite to replace it.")
    estimator = Estimator(
        preset,
        window=parse_auto_window(window),
        scale=scale,
        model=model,
    )
    ending = ".flo" if suffix is None else _flow_suffix(suffix)
    main = color_sink(parts) if film else flow_sink(output, ending)
    sinks = [*_extra_sinks(extras, ending, estimator), main]
    again = f"what is done is kept for {output}, and {continuing(overwrite)}"
    opened = Store(sinks, frames, estimator, every, max_flow=max_flow, overwrite=overwrite)
    with opened as store, terminable():
        tally = _run(estimator, frames, choice, store, again=again)
        if film:
            _encode(output, main, tally.names, rate)
            store.remove(main)
    scaled = store.max_flow if film or viz is not None else None
    say(_summary(tally, output, scaled, frames, stop))


def _check_options(
    output: Path,
    film: bool,
    viz: Path | None,
    *,
    suffix: str | None,
    max_flow: float | None,
    fps: float | None,
) -> None:
    if not film and output.suffix.lower() in _OTHER_FILES and not output.is_dir():
        raise InputError(
            f"--output must be a folder, or a video ending in one of {', '.join(VIDEO_SUFFIXES)}, "
            f"not {output}."
        )
    if suffix is not None and film:
        raise InputError("--format is for flow files in a folder, not for a color video.")
    if fps is not None and not film:
        raise InputError("--fps is for a color video; leave it away for a folder.")
    if max_flow is not None and not film and viz is None:
        raise InputError("--max-flow is for a color video and for --viz.")
    if max_flow is not None and not 0 < max_flow < math.inf:
        raise InputError(f"--max-flow must be a positive number of pixels, not {max_flow}.")


def _rate(fps: float | None, frames: Frames, every: int) -> Fraction:
    """Return the pictures per second of a color video."""
    if fps is None:
        rate = (frames.fps or Fraction(_DEFAULT_FPS)) / every
        # What a video announces may be anything.
        return rate if rate <= _MOST_FPS else Fraction(_DEFAULT_FPS)
    if not 0 < fps <= _MOST_FPS:
        raise InputError(f"--fps must be a number above 0, up to {_MOST_FPS}, not {fps}.")
    return Fraction(fps)


def _flow_suffix(text: str) -> str:
    suffix = f".{text.lower().removeprefix('.')}"
    if suffix not in FLOW_SUFFIXES:
        raise InputError(f"--format must be one of {', '.join(FLOW_SUFFIXES)}, not {text!r}.")
    return suffix


def _extra_sinks(
    folders: dict[str, Path | None], suffix: str, estimator: Estimator
) -> Iterator[Sink]:
    for option, folder in folders.items():
        if folder is None:
            continue
        if option == "--viz":
            yield color_sink(folder)
        elif not estimator.config.bidirectional:
            raise InputError(f"{option} needs a preset that computes both directions.")
        elif option == "--backward":
            yield flow_sink(folder, suffix, backward=True)
        else:
            yield mask_sink(folder) if option == "--occlusion" else confidence_sink(folder)


def _run(
    estimator: Estimator, frames: Frames, choice: _Choice, store: Store, *, again: str
) -> _Tally:
    """Compute all pairs that are not there yet."""
    tally = _Tally()
    console = Console(stderr=True, soft_wrap=True, markup=False)

    def broken(error: FileError) -> None:
        if not choice.skip_broken:
            hint = "--on-broken skip goes on behind it"
            raise FileError(f"{str(error).removesuffix('.')} ({hint}).") from error
        tally.broken += 1
        if tally.broken <= _TOLD:
            console.print(f"Skipped: {error}", highlight=False)
        elif tally.broken == _TOLD + 1:
            console.print("Skipped: more frames, which are only counted.", highlight=False)

    reader = frames.read(choice.start - 1, choice.stop, choice.every)
    with reader, _bar(console) as bar:
        task = bar.add_task("flow", total=choice.pairs(frames.count))
        began = time.perf_counter()
        try:
            for name, result in flow_of_video(
                reader, estimator, known=store.known, broken=broken, size=store.size
            ):
                tally.names.append(name)
                if result is None:
                    tally.known += 1
                    # It says nothing of how long the others take.
                    total = bar.tasks[0].total
                    bar.update(task, total=None if total is None else total - 1)
                    began = time.perf_counter()
                    continue
                store.add(name, result)
                del result  # or it is kept while the next one is computed
                tally.done += 1
                tally.seconds += time.perf_counter() - began
                began = time.perf_counter()
                bar.update(task, advance=1, description=name)
        except KeyboardInterrupt:
            bar.stop()
            say(f"Stopped early after {_count(tally.done, 'pair')}; {again}.")
            raise
    tally.frames = reader.index
    if not tally.names:
        why = (
            "has no two good frames that follow each other"
            if tally.broken
            else "has fewer than two frames, or they are not within --start and --stop"
        )
        raise InputError(f"{frames.name} {why}; a flow needs two.")
    return tally


def _encode(output: Path, pictures: Sink, names: list[str], fps: Fraction) -> None:
    """Make the color video of pictures that are all there."""
    console = Console(stderr=True, soft_wrap=True, markup=False)
    with _bar(console) as bar, VideoWriter(output, fps) as writer:
        for name in bar.track(names, len(names), description="video"):
            writer.add(read_image(pictures.path(name)))


def _bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    # Only where someone may be watching. A pair may take long: more than rich's 30 seconds count.
    quiet = not console.is_terminal
    return Progress(
        *columns, console=console, transient=True, disable=quiet, speed_estimate_period=600
    )


def _summary(
    tally: _Tally, output: Path, max_flow: float | None, frames: Frames, stop: int | None
) -> str:
    said = [f"{_count(tally.done, 'pair')} done"]
    if tally.known:
        said.append(f"{tally.known} there already")
    if tally.broken:
        said.append(f"{_count(tally.broken, 'frame')} skipped")
    if tally.done:
        said.append(f"{tally.seconds / tally.done:.2f} s per pair")
    sentence = f"{', '.join(said)}: {output}"
    if max_flow is not None:
        sentence += f"; full color is {max_flow:g} px (--max-flow {max_flow:g})"
    short = frames.count is not None and tally.frames < frames.count
    if short and stop is None and not Path(frames.name).is_dir():
        # FFmpeg ends quietly where a file breaks off.
        sentence += f"; {frames.name} announces {frames.count} frames, but has {tally.frames}"
    return f"{sentence}."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
