"""What ``hamflow video`` writes: files in folders, videos, and a stream of pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from hamflow._resume import LOG
from hamflow.cli._options import (
    FORMAT,
    STDOUT,
    check_distinct,
    check_new,
    flow_suffix,
    option,
    output_kind,
)
from hamflow.config import EstimatorConfig
from hamflow.errors import InputError
from hamflow.io import write_image
from hamflow.io.video import StreamWriter, check_video_path
from hamflow.scale.outputs import OUTPUTS, Output, check_directions
from hamflow.sequence import VideoItem
from hamflow.visualize import Style, render

# What each option can name.
_TAKES = {
    "--output": ("folder", "film", "stdout"),
    "--video": ("film", "stdout"),
    "--viz": ("folder",),
    "--occlusion": ("folder", "film"),
    "--confidence": ("folder", "film"),
    "--backward": ("folder",),
}
_Folder = Annotated[str | None, option("FOLDER")]
_FolderOrFilm = Annotated[str | None, option("FOLDER|FILE")]
_NO_KEY = option("", "Leave out the key to colors or arrows in the lower right corner.")
_FORMAT = option("SUFFIX", f"{FORMAT} (default: .flo)", name="format")


@dataclass(frozen=True)
class PictureOptions:
    """How videos and pictures show the flow.

    Parameters
    ----------
    style
        color: the colors of the Middlebury wheel; overlay: these over the frame; arrows: on the
        frame; side-by-side: frame, colors, occlusion and confidence.
    max_flow
        The length in pixels that gets full color, and of the longest arrows. By default it follows
        the motion slowly, so that colors do not flicker.
    """

    style: Annotated[Style, option("STYLE")] = "color"
    max_flow: Annotated[float | None, option("PIXELS")] = None
    key: Annotated[bool, _NO_KEY] = True

    def check(self, shown: bool) -> None:
        """Raise an InputError if an option is wrong, or nothing is to be shown."""
        if self.max_flow is not None and not 0 < self.max_flow < inf:
            raise InputError(
                f"--max-flow must be a positive number of pixels, not {self.max_flow}."
            )
        if not shown and self != PictureOptions():
            options = {
                "--style": self.style != "color",
                "--max-flow": self.max_flow is not None,
                "--no-key": not self.key,
            }
            option = next(name for name, given in options.items() if given)
            raise InputError(f"{option} is for an output video and for --viz; leave it out.")


@dataclass(frozen=True)
class MoreOutputs:
    """What else to write. A picture of each pair can also be a frame of a video.

    Parameters
    ----------
    video
        A video of the flow, if OUTPUT is a folder; - is the standard output.
    occlusion
        Masks, white where a pixel is occluded in the second frame: a folder of .png files, or a
        video.
    confidence
        Pictures of the confidence, from black (0) to white (1): a folder of .png files, or a video.
    viz
        Folder for pictures of the flow (.png), the same as in a video.
    backward
        Folder for the flow from the second frame of each pair to the first.
    suffix
        Format of the flow files.
    """

    video: Annotated[str | None, option("FILE")] = None
    occlusion: _FolderOrFilm = None
    confidence: _FolderOrFilm = None
    viz: _Folder = None
    backward: _Folder = None
    suffix: Annotated[str | None, _FORMAT] = None


@dataclass(frozen=True)
class Sink:
    """A folder with one file for each pair, and a log."""

    folder: Path
    suffix: str  # of the files, which have the names of the first frames of the pairs
    write: Callable[[Path, VideoItem, float], None]  # the last is the length in full color
    film: Path | None  # the video that the files become in the end
    flow: bool = False  # whether they are flow files; otherwise pictures
    colors: bool = False  # whether they depend on the length in full color, and on the style

    def path(self, name: str) -> Path:
        """Return the path of the file of a pair."""
        return self.folder / f"{name}{self.suffix}"


class Outputs:
    """All outputs of a run.

    Parameters
    ----------
    output : str or None
        The main output: a folder for flow files, a video, or ``-``.
    more : MoreOutputs
        The others.
    pictures : PictureOptions
        How to show the flow.

    Attributes
    ----------
    main : str
        What messages call the outputs: the first one.
    all : str
        All of them.
    sinks : list of Sink
        The folders, that of the main output last.
    piped : bool
        Whether pictures are written to the standard output.
    shown : bool
        Whether something shows the flow in colors or arrows.
    """

    def __init__(self, output: str | None, more: MoreOutputs, pictures: PictureOptions) -> None:
        self.pictures = pictures
        given = {
            "--output": output,
            "--video": more.video,
            "--viz": more.viz,
            "--occlusion": more.occlusion,
            "--confidence": more.confidence,
            "--backward": more.backward,
        }
        self._paths = {option: path for option, path in given.items() if path is not None}
        if not self._paths:
            raise InputError("No output is given; name a folder or a video with --output.")
        first = next(iter(self._paths.values()))
        self.main = "stdout" if first == STDOUT else first
        self.all = ", ".join("stdout" if path == STDOUT else path for path in self._paths.values())
        kinds = {
            option: output_kind(option, path, _TAKES[option])
            for option, path in self._paths.items()
        }
        pictured = {"--video", "--viz"} & {*kinds}
        if kinds.get("--output", "folder") != "folder":
            if "--video" in kinds:
                raise InputError("--output is a video already; leave --video out.")
            pictured.add("--output")
        self.piped = "stdout" in kinds.values()
        self.shown = bool(pictured)
        pictures.check(self.shown)
        if more.suffix is not None and not {"--output", "--backward"} & {*kinds} - pictured:
            raise InputError("--format is for flow files in a folder; leave it out.")
        flow_format = ".flo" if more.suffix is None else flow_suffix("--format", more.suffix)
        self.sinks: list[Sink] = []
        for name, path in reversed(self._paths.items()):
            film = Path(path) if kinds[name] == "film" else None
            folder = Path(path) if film is None else film.with_name(f"{film.name}.parts")
            if name in pictured:
                sink = Sink(folder, ".png", self._write_picture, film, colors=True)
            else:
                what = OUTPUTS[name]
                suffix = flow_format if what.flow else ".png"
                sink = Sink(folder, suffix, _writing(what), film, flow=what.flow)
            if kinds[name] != "stdout":
                self.sinks.append(sink)

    def check(self, source: str, config: EstimatorConfig, preset: str, overwrite: bool) -> None:
        """Raise an error if an output cannot be written, or would replace something."""
        check_directions((o for o in self._paths if o in OUTPUTS), config, preset)
        inputs = {"IN": None if source == STDOUT else Path(source)}
        written: dict[str, Path | None] = {
            option: Path(path) for option, path in self._paths.items() if path != STDOUT
        }
        films = [(sink.film, sink.folder) for sink in self.sinks if sink.film is not None]
        check_distinct(inputs, {**written, **{str(parts): parts for _, parts in films}})
        folders = [sink.folder for sink in self.sinks if sink.film is None]
        made = {parent.resolve() for folder in folders for parent in folder.parents}
        for film, parts in films:
            there = film.parent.resolve()
            check_video_path(film, new_folder=there in made and not there.exists())
            # If there are parts, an interrupted run was already allowed to replace the video.
            check_new([film], overwrite or (parts / LOG).exists())
        if self.piped and sys.stdout.isatty():
            raise InputError(
                "The standard output is a terminal, which cannot show a video; pipe it to another "
                "program, for example by | ffplay -."
            )

    def picture(self, item: VideoItem, scale: float) -> NDArray[np.uint8]:
        """Return the picture of a pair; `scale` is the length in full color."""
        style, key = self.pictures.style, self.pictures.key
        return render(item.frame, item.result, style, scale, key=key)

    def _write_picture(self, path: Path, item: VideoItem, scale: float) -> None:
        write_image(path, self.picture(item, scale))

    def stream(self, rate: Fraction) -> StreamWriter:
        """Return the writer of pictures to the standard output."""
        # Without its buffer, which could not be emptied if the other program ends first.
        file = getattr(sys.stdout.buffer, "raw", sys.stdout.buffer)
        return StreamWriter(file, "stdout", rate)


def _writing(output: Output) -> Callable[[Path, VideoItem, float], None]:
    return lambda path, item, _: output.write(path, item.result)
