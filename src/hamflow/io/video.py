"""Frames one at a time, from files, folders, streams and cameras, and writing of videos.

All but folders of images need the package av (PyAV, which brings FFmpeg), of the extra ``video``.
"""

from __future__ import annotations

import os
import re
import sys
from fractions import Fraction
from numbers import Integral
from typing import BinaryIO, TypeGuard

from hamflow.errors import FileError, InputError
from hamflow.io._decoding import Video
from hamflow.io._encoding import (
    MAX_FPS,
    VIDEO_SUFFIXES,
    StreamWriter,
    VideoWriter,
    check_video_path,
    checked_rate,
)
from hamflow.io._frames import Folder, FrameImage, FrameReader, Frames
from hamflow.io._live import STDIN, Camera, Stream

__all__ = [
    "MAX_FPS",
    "VIDEO_SUFFIXES",
    "FrameImage",
    "FrameReader",
    "Frames",
    "StreamWriter",
    "VideoWriter",
    "check_video_path",
    "is_source",
    "open_frames",
]

_Path = str | os.PathLike[str]

Source = _Path | int | BinaryIO
"""What `open_frames` opens."""
_CAMERA = re.compile(r"camera:([0-9]{1,4})")


def is_source(source: object) -> TypeGuard[Source]:
    """Return whether this is something for `open_frames`, and not the frames themselves."""
    named = isinstance(source, str | os.PathLike | Integral) and not isinstance(source, bool)
    return named or (callable(getattr(source, "read", None)) and not isinstance(source, Frames))


def open_frames(
    source: Source, *, size: tuple[int, int] | None = None, fps: float | Fraction | None = None
) -> Frames:
    """Open a video file, a folder of images, a stream or a camera, to read its frames one by one.

    Parameters
    ----------
    source : str, os.PathLike, int or binary file
        - A video file in any of the usual formats.
        - A folder: its images in the natural order of their names, frame2 before frame10. Hidden
          files, other files and folders in it are ignored.
        - ``"-"``, the standard input, or an open binary file, such as the output of a process: PNG,
          PPM, JPEG or other images one after another, YUV4MPEG2, or another container that can be
          read from its beginning to its end.
        - The number of a camera, or ``"camera:0"`` and so on.

        All but folders need the extra ``video``. Files with such names are ``"./-"`` and
        ``"./camera:0"``.
    size : (int, int), optional
        Height and width of the frames of a stream that has nothing but their pixels, 3 bytes each
        (FFmpeg's ``-f rawvideo -pix_fmt rgb24``).
    fps : float or Fraction, optional
        Frames per second, if the source does not say it or is wrong; a camera is asked for it.

    Returns
    -------
    frames : Frames
        With `name`, `count`, `fps`; iteration gives (position, name, image, time) and keeps no
        frame. The frames of a folder are named after their files, without the suffix; others are
        called ``frame_0001`` and so on. Videos of more than 8 bits give uint16, others uint8. The
        rotation in their metadata is applied in steps of 90 degrees; mirroring is ignored.

    Raises
    ------
    FileError
        If the file does not exist or is not a video, or the folder has no images or two frames of
        the same name. Damaged frames are found during iteration; see `FrameReader`. A truncated
        video may end early.
    InputError
        If `size` or `fps` is out of range, or `size` is given for something other than a stream.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from hamflow import write_image
    >>> from hamflow.io.video import open_frames
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in (1, 2, 10):
    ...         write_image(f"{folder}/frame{number}.png", np.zeros((4, 6, 3), np.uint8))
    ...     [(frame.name, frame.time) for frame in open_frames(folder, fps=10)]
    [('frame1', 0.0), ('frame2', 0.1), ('frame10', 0.2)]
    """
    rate = None if fps is None else checked_rate(fps)
    if not isinstance(source, str | os.PathLike | int | Integral):
        name = getattr(source, "name", None)  # that of a pipe is a number
        return Stream(source, name if isinstance(name, str) else "stream", size, rate)
    if source == "-":
        return Stream(_standard_input(), STDIN, size, rate)
    if size is not None:
        raise InputError(f"size is for a stream of raw frames; leave it out for {source}.")
    if isinstance(source, int | Integral):
        return Camera(int(source), rate)
    if isinstance(source, str) and (named := _CAMERA.fullmatch(source)):
        return Camera(int(named[1]), rate)
    if isinstance(source, str) and source.isdecimal() and not os.path.exists(source):
        raise FileError(f"{source}: does not exist; a camera is called camera:{source}.")
    return Folder(source, rate) if os.path.isdir(source) else Video(source, rate)


def _standard_input() -> BinaryIO:
    if sys.stdin is None or sys.stdin.isatty():
        raise FileError(
            f"{STDIN}: nothing is piped into it; write, for example, ffmpeg -i IN -f yuv4mpegpipe "
            "- before the pipe."
        )
    return sys.stdin.buffer
