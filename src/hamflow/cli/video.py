"""``hamflow video``: the flow from each frame of a video to the next."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from hamflow._resume import LOG
from hamflow.cli._console import continuing, count, progress_bar, say
from hamflow.cli._methods import Model, Preset, Scale, Window
from hamflow.cli._options import FLOW_FORMATS, check_distinct, flow_suffix, parse_auto_window
from hamflow.cli._video_store import Sink, Store
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io import READABLE_SUFFIXES, read_image
from hamflow.io.video import VIDEO_SUFFIXES, Frames, VideoWriter, check_video_path, open_frames
from hamflow.scale.outputs import OUTPUTS, check_directions
from hamflow.sequence import VideoItem
from hamflow.sequence import video as flow_of_video

_DEFAULT_FPS = 25  # for images in a folder
_MAX_FPS = 1000
_MAX_REPORTED = 10  # broken frames that are named
# A name with such a suffix is probably not meant to be a folder.
_OTHER_FILES = (*READABLE_SUFFIXES, ".gif", ".m4v", ".mov", ".mpg", ".ogv", ".wmv")
_FORMAT = tyro.conf.arg(
    name="format", help=f"Format of the flow files: one of {FLOW_FORMATS}. (default: .flo)"
)
_OUTPUT = tyro.conf.arg(
    aliases=["-o"],
    metavar="OUTPUT",
    help=f"The folder for the flow files, or the video ({', '.join(VIDEO_SUFFIXES)}).",
)


@dataclass(frozen=True)
class _Choice:
    """Which frames to use, counted from 1, and whether to skip broken ones."""

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
                f"--stop must be at least {self.start + self.every}, so that two frames remain, "
                f"not {self.stop}."
            )

    def pairs(self, count: int | None) -> int | None:
        """Return how many pairs there are if no frame is broken; None if that is not known."""
        ends = [end for end in (self.stop, count) if end is not None]
        return max(0, len(range(self.start, min(ends) + 1, self.every)) - 1) if ends else None


@dataclass
class _Tally:
    """What a run has done so far."""

    done: int = 0
    known: int = 0
    seconds: float = 0.0
    names: list[str] = field(default_factory=list)
    broken: int = 0
    frames: int = 0


def video(
    source: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IN")],
    output: Annotated[Path, _OUTPUT],
    *,
    preset: Preset = "balanced",
    window: Window = "auto",
    scale: Scale = None,
    model: Model = None,
    suffix: Annotated[str | None, _FORMAT] = None,
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

    IN is a video file (this needs the extra 'video') or a folder of images, which are sorted by
    name, with numbers in numerical order. OUTPUT is a folder, which gets one flow file per pair,
    with the name of its first frame; or a video file, which shows the flow in the Middlebury
    colors, with the same scale in all frames.

    The same command continues an interrupted run; a folder with other settings or other files is
    refused; --overwrite starts again. A continued run computes files again that are missing or
    damaged, or whose frames have changed. The search for a pair normally starts from the pair
    before; the first pair of a continued run searches everywhere, so its flow may differ slightly.
    The log run.jsonl in each folder describes how its files were made. The pictures for an output
    video are kept in OUTPUT.parts until the video is complete.

    Parameters
    ----------
    source
        The video file, or the folder of images.
    max_flow
        For an output video and --viz: the length in pixels that gets full color. By default it
        suits the first pair and is printed at the end.
    fps
        For an output video: frames per second. By default that of IN divided by --every, or 25 if
        IN is a folder.
    start
        Number of the first frame to use, counted from 1. A video is decoded from its beginning.
    stop
        Number of the last frame to use.
    every
        Use only every N-th frame: compute the flow from frame 1 to 1 + N, then to 1 + 2N, ...
    on_broken
        What to do with a frame that is damaged or of another size: 'stop', or 'skip' it and the two
        pairs that contain it.
    backward
        Folder for the flow from the second frame of each pair to the first.
    occlusion
        Folder for masks (.png), white where a pixel is occluded in the second frame.
    confidence
        Folder for pictures of the confidence (.png), from black (0) to white (1).
    viz
        Folder for pictures of the flow (.png), in the same colors as an output video.
    overwrite
        Start again: replace an existing video, or the files of an earlier run.
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
        # If there are parts, an interrupted run was already allowed to replace the video.
        if output.exists() and not overwrite and not (parts / LOG).exists():
            raise FileError(f"{output}: already exists; add --overwrite to replace it.")
    estimator = Estimator(preset, window=parse_auto_window(window), scale=scale, model=model)
    folders = {option: folder for option, folder in extras.items() if folder is not None}
    check_directions(folders, estimator.config, preset)
    flow_format = ".flo" if suffix is None else flow_suffix("--format", suffix)

    def sink(option: str, folder: Path) -> Sink:
        kind = OUTPUTS[option]
        return Sink(folder, flow_format if kind.flow else ".png", kind)

    main = sink("--viz", parts) if film else sink("--output", output)
    sinks = [*(sink(option, folder) for option, folder in folders.items()), main]
    again = f"finished work is kept for {output}, and {continuing(overwrite)}"
    with Store(sinks, frames, estimator, every, max_flow=max_flow, overwrite=overwrite) as store:
        tally = _run(estimator, frames, choice, store, again=again)
        if film:
            with progress_bar(Console(stderr=True)) as show, VideoWriter(output, rate) as writer:
                for number, name in enumerate(tally.names):
                    show("encoding", number, len(tally.names))
                    writer.add(read_image(main.path(name)))
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
        raise InputError("--format is for flow files in a folder; leave it out for a video.")
    if fps is not None and not film:
        raise InputError("--fps is for an output video; leave it out for a folder.")
    if max_flow is not None and not film and viz is None:
        raise InputError("--max-flow is for an output video and for --viz; leave it out.")
    if max_flow is not None and not 0 < max_flow < math.inf:
        raise InputError(f"--max-flow must be a positive number of pixels, not {max_flow}.")


def _rate(fps: float | None, frames: Frames, every: int) -> Fraction:
    """Return the frames per second of the output video."""
    if fps is None:
        rate = (frames.fps or Fraction(_DEFAULT_FPS)) / every
        # The file may claim anything.
        return rate if rate <= _MAX_FPS else Fraction(_DEFAULT_FPS)
    if not 0 < fps <= _MAX_FPS:
        raise InputError(f"--fps must be a number above 0, up to {_MAX_FPS}, not {fps}.")
    return Fraction(fps)


def _run(
    estimator: Estimator, frames: Frames, choice: _Choice, store: Store, *, again: str
) -> _Tally:
    """Compute all pairs whose files are not complete yet."""
    tally = _Tally()
    console = Console(stderr=True, soft_wrap=True, markup=False)

    def broken(error: FileError) -> None:
        if not choice.skip_broken:
            hint = "--on-broken skip continues after it"
            raise FileError(f"{str(error).removesuffix('.')} ({hint}).") from error
        tally.broken += 1
        if tally.broken <= _MAX_REPORTED:
            console.print(f"Skipped: {error}", highlight=False)
        elif tally.broken == _MAX_REPORTED + 1:
            console.print("Skipped: more frames, which are only counted.", highlight=False)

    total = choice.pairs(frames.count)
    reader = frames.read(choice.start - 1, choice.stop, choice.every)
    try:
        with reader, progress_bar(console) as show:
            began = time.perf_counter()
            for item in flow_of_video(
                reader, estimator, known=store.known, broken=broken, size=store.size
            ):
                tally.names.append(item.name)
                if isinstance(item, VideoItem):
                    store.add(item.name, item.result)
                    tally.done += 1
                    tally.seconds += time.perf_counter() - began
                else:
                    tally.known += 1
                began = time.perf_counter()
                show(item.name, tally.done, None if total is None else total - tally.known)
                del item  # otherwise it takes memory while the next one is computed
    except KeyboardInterrupt:
        say(f"Stopped early after {count(tally.done, 'pair')}; {again}.")
        raise
    tally.frames = reader.index
    if not tally.names:
        why = (
            "has no two intact frames that follow each other"
            if tally.broken
            else "has fewer than two frames between --start and --stop"
        )
        raise InputError(f"{frames.name} {why}; a flow needs two.")
    return tally


def _summary(
    tally: _Tally, output: Path, max_flow: float | None, frames: Frames, stop: int | None
) -> str:
    said = [f"{count(tally.done, 'pair')} done"]
    if tally.known:
        said.append(f"{tally.known} done before")
    if tally.broken:
        said.append(f"{count(tally.broken, 'frame')} skipped")
    if tally.done:
        said.append(f"{tally.seconds / tally.done:.2f} s per pair")
    sentence = f"{', '.join(said)}: {output}"
    if max_flow is not None:
        sentence += f"; full color is {max_flow:g} px (--max-flow {max_flow:g})"
    short = frames.count is not None and tally.frames < frames.count
    if short and stop is None and not Path(frames.name).is_dir():
        # FFmpeg reports no error where a truncated file ends.
        sentence += f"; {frames.name} claims {frames.count} frames, but has {tally.frames}"
    return f"{sentence}."
