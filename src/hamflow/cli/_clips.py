"""What the commands share that use the flow of a video: the frames they read, what they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console

from hamflow.cli._console import progress_bar
from hamflow.cli._methods import SearchOptions
from hamflow.cli._options import STDOUT, check_distinct, check_new, option, output_kind
from hamflow.cli._video_frames import RangeOptions
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io import write_image
from hamflow.io._atomic import check_writable, make_folder
from hamflow.io._lock import OURS, locked
from hamflow.io.video import (
    VIDEO_SUFFIXES,
    FrameReader,
    Frames,
    VideoWriter,
    check_video_path,
    open_frames,
)

T = TypeVar("T")
Picture = NDArray[np.uint8]

_PICTURES = f"A video ({', '.join(VIDEO_SUFFIXES)}), or a folder for pictures (.png)."

Source = Annotated[
    tyro.conf.Positional[Path],
    tyro.conf.arg(metavar="IN", help="The video file, or the folder of images."),
]
Pictures = Annotated[Path, option("OUTPUT", _PICTURES, aliases=["-o"])]
MorePictures = Annotated[Path | None, option("OUTPUT")]


@dataclass(frozen=True)
class ClipOptions(RangeOptions):
    """Which frames to use.

    Parameters
    ----------
    fps
        Frames per second of an output video; by default what fits IN, or 25 if it is a folder.
    """

    fps: Annotated[float | None, option("FPS")] = None

    def open(self, source: Path) -> Clip:
        """Open a video or a folder, after a check of these options."""
        self.check(self.fps)
        live = str(source) == STDOUT or str(source).startswith("camera:")
        if live and not source.exists():
            raise InputError(
                f"IN must be a video file or a folder of images, not {source}; only hamflow video "
                "reads a stream or a camera."
            )
        return Clip(open_frames(source), self)


ClipFrames = tyro.conf.OmitArgPrefixes[ClipOptions]
ALL_FRAMES = ClipOptions()


@dataclass(frozen=True)
class Clip:
    """The frames of a video that a command uses."""

    frames: Frames
    options: ClipOptions

    def read(self) -> FrameReader:
        """Read the frames from the first one on."""
        return self.frames.read(self.options.start - 1, self.options.stop, self.options.every)

    @property
    def count(self) -> int | None:
        """How many frames there are, if that is known."""
        return self.options.count(self.frames)

    def rate(self, factor: int = 1) -> Fraction:
        """Return the frames per second of an output video that has `factor` times the frames."""
        fps = self.options.fps
        return self.options.rate(self.frames, factor) if fps is None else Fraction(fps)

    def shown(self, items: Iterable[T], title: str, *, pairs: bool = False) -> Iterator[T]:
        """Go over what belongs to one frame each, or to two, with a progress bar."""
        total = self.count if self.count is None or not pairs else max(0, self.count - 1)
        with progress_bar(Console(stderr=True)) as show:
            for number, item in enumerate(items, 1):
                show(title, number, total)
                yield item


def check_outputs(
    source: Path,
    pictures: Mapping[str, Path | None],
    overwrite: bool,
    *,
    files: Mapping[str, Path | None] | None = None,
) -> None:
    """Raise an error at once if a file cannot be written, or exists and may not be replaced.

    Parameters
    ----------
    source
        What is read.
    pictures
        By option: a video or a folder.
    overwrite
        Whether existing files may be replaced.
    files
        By option: other files.
    """
    outputs = {**(files or {}), **pictures}
    check_distinct({"IN": source}, outputs)
    for name, path in outputs.items():
        if path is None:
            continue
        if name not in pictures:
            check_writable(path)
        elif output_kind(name, path, ("film", "folder")) == "film":
            check_video_path(path)
        if path.is_dir():
            # A run that works there now, or was killed there, is told from results.
            used = any(not file.name.startswith(OURS) for file in path.iterdir())
            if used and not overwrite:
                raise FileError(f"{path}: is not empty; add --overwrite to replace files in it.")
        else:
            check_new([path], overwrite)


def both_ways(search: SearchOptions, preset: str) -> Estimator:
    """Return the estimator that the options ask for, which must compute both directions."""
    estimator = search.estimator(preset)
    if not estimator.config.bidirectional:
        raise InputError(
            f"--preset {preset} computes the flow of only one direction; choose one that computes "
            "both, such as balanced."
        )
    return estimator


@contextmanager
def picture_sink(output: Path, rate: Fraction) -> Iterator[Callable[[str, Picture], None]]:
    """Yield what takes the name and the pixels of each picture of a video or a folder.

    Another run that writes there at the same time is refused.
    """
    if output.suffix.lower() in VIDEO_SUFFIXES:
        with locked(output), VideoWriter(output, rate) as writer:
            yield lambda _, picture: writer.add(picture)
        return
    make_folder(output)
    with locked(output):
        yield lambda name, picture: write_image(output / f"{name}.png", picture)
