"""Which frames of a video the commands use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from hamflow.cli._options import Number, option
from hamflow.errors import InputError
from hamflow.io.video import MAX_FPS, Frames, open_frames

_DEFAULT_FPS = Fraction(25)  # for images in a folder
_SIZE = re.compile(r"([0-9]{1,9})[x×]([0-9]{1,9})", re.IGNORECASE)


@dataclass(frozen=True)
class RangeOptions:
    """Which frames to use.

    Parameters
    ----------
    start
        Number of the first frame to use, counted from 1. A video is decoded from its beginning.
    stop
        Number of the last frame to use.
    every
        Use only every N-th frame: compute the flow from frame 1 to 1 + N, then to 1 + 2N, ...
    """

    start: Number = 1
    stop: Annotated[int | None, option("N")] = None
    every: Number = 1

    def check(self, fps: float | None) -> None:
        """Raise an InputError if these options, or a rate, are wrong or leave no two frames."""
        if self.start < 1:
            raise InputError(f"--start must be at least 1, the first frame, not {self.start}.")
        if self.every < 1:
            raise InputError(f"--every must be at least 1, not {self.every}.")
        least = self.start + self.every
        if self.stop is not None and self.stop < least:
            raise InputError(
                f"--stop must be at least {least}, so that two frames remain, not {self.stop}."
            )
        if fps is not None and not 0.001 <= fps <= MAX_FPS:
            raise InputError(f"--fps must be a number from 0.001 to {MAX_FPS}, not {fps}.")

    def count(self, frames: Frames) -> int | None:
        """Return how many frames are used if none is broken; None if that is not known."""
        ends = [end for end in (self.stop, frames.count) if end is not None]
        return len(range(self.start, min(ends) + 1, self.every)) if ends else None

    def rate(self, frames: Frames, factor: int = 1) -> Fraction:
        """Return the frames per second of a video of these frames, or of `factor` times as many."""
        rate = (frames.fps or _DEFAULT_FPS) * factor / self.every
        # A file may claim anything.
        return rate if Fraction(1, 1000) <= rate <= MAX_FPS else _DEFAULT_FPS


@dataclass(frozen=True)
class FrameOptions(RangeOptions):
    """Which frames to use.

    Parameters
    ----------
    fps
        Frames per second of IN, if it does not say it or is wrong. An output video has that rate
        divided by --every, so that it is as long as IN. (default: 25 for images and raw frames)
    size
        Width and height of the frames, such as 640x480, for raw rgb24 frames in a stream.
    on_broken
        What to do with a frame that is damaged or of another size: 'stop', or 'skip' it and the two
        pairs that contain it.
    """

    fps: Annotated[float | None, option("FPS")] = None
    size: Annotated[str | None, option("WxH")] = None
    on_broken: Annotated[Literal["stop", "skip"], option("{stop,skip}")] = "stop"

    def open(self, source: str) -> Frames:
        """Check the options, and open the source."""
        self.check(self.fps)
        if self.size is not None and source != "-":
            raise InputError("--size is for raw frames from a stream (IN is -); leave it out.")
        return open_frames(source, size=self._height_and_width(), fps=self.fps)

    def _height_and_width(self) -> tuple[int, int] | None:
        if self.size is None:
            return None
        found = _SIZE.fullmatch(self.size)
        if found is None:
            raise InputError(
                f"--size must be width and height, such as 640x480, not {self.size!r}."
            )
        return int(found[2]), int(found[1])
