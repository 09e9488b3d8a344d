"""Which frames ``hamflow video`` uses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from hamflow.cli._options import Number, check_frame_range, option
from hamflow.errors import InputError
from hamflow.io.video import MAX_FPS, Frames, open_frames

_DEFAULT_FPS = Fraction(25)  # for images in a folder
_SIZE = re.compile(r"([0-9]{1,9})[x×]([0-9]{1,9})", re.IGNORECASE)


@dataclass(frozen=True)
class FrameOptions:
    """Which frames to use.

    Parameters
    ----------
    start
        Number of the first frame to use, counted from 1. A video is decoded from its beginning.
    stop
        Number of the last frame to use.
    every
        Use only every N-th frame: compute the flow from frame 1 to 1 + N, then to 1 + 2N, ...
    fps
        Frames per second of IN, if it does not say it or is wrong. An output video has that rate
        divided by --every, so that it is as long as IN. (default: 25 for images and raw frames)
    size
        Width and height of the frames, such as 640x480, for raw rgb24 frames in a stream.
    on_broken
        What to do with a frame that is damaged or of another size: 'stop', or 'skip' it and the two
        pairs that contain it.
    """

    start: Number = 1
    stop: Annotated[int | None, option("N")] = None
    every: Number = 1
    fps: Annotated[float | None, option("FPS")] = None
    size: Annotated[str | None, option("WxH")] = None
    on_broken: Annotated[Literal["stop", "skip"], option("{stop,skip}")] = "stop"

    def open(self, source: str) -> Frames:
        """Check the options, and open the source."""
        check_frame_range(self.start, self.stop, self.every)
        if self.fps is not None and not 0.001 <= self.fps <= MAX_FPS:
            raise InputError(f"--fps must be a number from 0.001 to {MAX_FPS}, not {self.fps}.")
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

    def pairs(self, count: int | None) -> int | None:
        """Return how many pairs there are if no frame is broken; None if that is not known."""
        ends = [end for end in (self.stop, count) if end is not None]
        return max(0, len(range(self.start, min(ends) + 1, self.every)) - 1) if ends else None

    def rate(self, frames: Frames) -> Fraction:
        """Return the frames per second of an output video."""
        rate = (frames.fps or _DEFAULT_FPS) / self.every
        # A file may claim anything.
        return rate if Fraction(1, 1000) <= rate <= MAX_FPS else _DEFAULT_FPS
