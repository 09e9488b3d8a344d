"""What the commands share that use the flow of a video: the frames they read, what they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console

from hamflow.cli._console import progress_bar
from hamflow.cli._options import check_distinct, parse_auto_window
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io import write_image
from hamflow.io._atomic import check_writable, make_folder
from hamflow.io.video import VIDEO_SUFFIXES, FrameReader, Frames, VideoWriter, check_video_path
from hamflow.io.video import open_frames as open_source

T = TypeVar("T")
Picture = NDArray[np.uint8]

_DEFAULT_FPS = 25  # for images in a folder
_MAX_FPS = 1000

Clip = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IN")]
FilmOutput = Annotated[
    Path,
    tyro.conf.arg(
        aliases=["-o"],
        metavar="OUTPUT",
        help=f"A video ({', '.join(VIDEO_SUFFIXES)}), or a folder for pictures (.png).",
    ),
]
Start = Annotated[int, tyro.conf.arg(help="Number of the first frame to use, counted from 1.")]
Stop = Annotated[int | None, tyro.conf.arg(help="Number of the last frame to use.")]
Every = Annotated[int, tyro.conf.arg(help="Use only every N-th frame.")]
Fps = Annotated[
    float | None,
    tyro.conf.arg(help="Frames per second of an output video, instead of those that fit IN."),
]
Overwrite = Annotated[bool, tyro.conf.arg(help="Replace files that exist.")]


class ClipReader:
    """The frames of a video that a command uses.

    Parameters
    ----------
    source : Path
        A video or a folder of images.
    start, stop, every : int
        Which frames, counted from 1.
    """

    def __init__(self, source: Path, start: int, stop: int | None, every: int) -> None:
        if start < 1:
            raise InputError(f"--start must be at least 1, the first frame, not {start}.")
        if every < 1:
            raise InputError(f"--every must be at least 1, not {every}.")
        if stop is not None and stop < start + every:
            raise InputError(
                f"--stop must be at least {start + every}, so that two frames remain, not {stop}."
            )
        self._choice = (start - 1, stop, every)
        self.frames: Frames = open_source(source)

    def read(self) -> FrameReader:
        """Read the frames from the first one on."""
        return self.frames.read(*self._choice)

    @property
    def count(self) -> int | None:
        """How many frames there are, if that is known."""
        first, stop, every = self._choice
        ends = [end for end in (stop, self.frames.count) if end is not None]
        return len(range(first, min(ends), every)) if ends else None

    def rate(self, fps: float | None, factor: int = 1) -> Fraction:
        """Return the frames per second of an output video that has `factor` times the frames."""
        if fps is None:
            rate = (self.frames.fps or Fraction(_DEFAULT_FPS)) * factor / self._choice[2]
            # The file may claim anything.
            return rate if rate <= _MAX_FPS else Fraction(_DEFAULT_FPS)
        if not 0 < fps <= _MAX_FPS:
            raise InputError(f"--fps must be a number above 0, up to {_MAX_FPS}, not {fps}.")
        return Fraction(fps)

    def shown(self, items: Iterable[T], title: str, *, pairs: bool = False) -> Iterator[T]:
        """Go over what belongs to one frame each, or to two, with a progress bar."""
        total = self.count if self.count is None or not pairs else max(0, self.count - 1)
        with progress_bar(Console(stderr=True)) as show:
            for number, item in enumerate(items, 1):
                show(title, number, total)
                yield item

    def check_used(self, number: int) -> None:
        """Raise an InputError if too few frames were there for anything to be computed."""
        if number == 0:
            raise InputError(
                f"{self.frames.name} has fewer than two frames between --start and --stop; a flow "
                "needs two."
            )


def check_outputs(source: Path, outputs: dict[str, Path | None], overwrite: bool) -> None:
    """Raise an error at once if a file cannot be written or exists and may not be replaced."""
    check_distinct({"IN": source}, outputs)
    for path in outputs.values():
        if path is None:
            continue
        if path.suffix.lower() in VIDEO_SUFFIXES:
            check_video_path(path)
        elif path.suffix:
            check_writable(path)
        if path.is_dir():
            if path.suffix == "" and any(path.iterdir()) and not overwrite:
                raise FileError(f"{path}: is not empty; add --overwrite to replace files in it.")
        elif path.exists() and not overwrite:
            raise FileError(f"{path}: already exists; add --overwrite to replace it.")


def chosen_estimator(preset: str, window: str, scale: int | None, model: str | None) -> Estimator:
    """Return the estimator that the options ask for, which must compute both directions."""
    estimator = Estimator(preset, window=parse_auto_window(window), scale=scale, model=model)
    if not estimator.config.bidirectional:
        raise InputError(
            f"--preset {preset} computes the flow of only one direction; choose one that computes "
            "both, such as balanced."
        )
    return estimator


@contextmanager
def picture_sink(output: Path, rate: Fraction) -> Iterator[Callable[[str, Picture], None]]:
    """Yield what takes the name and the pixels of each picture of a video or a folder."""
    if output.suffix.lower() in VIDEO_SUFFIXES:
        with VideoWriter(output, rate) as writer:
            yield lambda _, picture: writer.add(picture)
        return
    make_folder(output)
    yield lambda name, picture: write_image(output / f"{name}.png", picture)
