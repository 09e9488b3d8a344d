"""Frames one at a time, from files, folders, streams and cameras, and writing of videos.

All but folders of images need the package av (PyAV, which brings FFmpeg), of the extra ``video``.
"""

from __future__ import annotations

import math
import os
import re
import sys
from contextlib import ExitStack, suppress
from fractions import Fraction
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from hamflow._check import as_image
from hamflow.errors import FileError, InputError
from hamflow.io._atomic import atomic_write, check_writable
from hamflow.io._decoding import Video, av_reason, require_av
from hamflow.io._frames import Folder, FrameImage, FrameReader, Frames
from hamflow.io._live import STDIN, Camera, Stream
from hamflow.io._reading import by_suffix

__all__ = ["FrameImage", "FrameReader", "Frames", "VideoWriter", "open_frames"]

_Path = str | os.PathLike[str]

_X264_OR_MPEG4 = ("libx264", "mpeg4")
# Container and encoders (the best first) of each suffix.
_WRITABLE = {
    ".mp4": ("mp4", _X264_OR_MPEG4),
    ".mkv": ("matroska", _X264_OR_MPEG4),
    ".avi": ("avi", ("mpeg4",)),
    ".webm": ("webm", ("libvpx-vp9", "libvpx")),
}
VIDEO_SUFFIXES = tuple(_WRITABLE)
"""The suffixes of videos that can be written, which may also be in upper case."""
# Nearly without visible loss.
_QUALITY = {
    "libx264": {"crf": "16"},
    "mpeg4": {"qmin": "2", "qmax": "3"},
    "libvpx-vp9": {"crf": "20", "b": "0", "deadline": "good", "cpu-used": "4"},
    "libvpx": {"crf": "8", "b": "20M", "deadline": "good", "cpu-used": "4"},
}
_BT601 = 6  # FFmpeg's number of the color matrix by which it converts RGB
_MAX_TICKS = 65535  # per second, in MPEG-4
MAX_FPS = 1000
"""The highest rate of a video."""


Source = _Path | int | BinaryIO
"""What `open_frames` opens."""
_CAMERA = re.compile(r"camera:([0-9]{1,4})")


def is_source(source: object) -> TypeGuard[Source]:
    """Return whether this is something for `open_frames`, and not the frames themselves."""
    named = isinstance(source, str | os.PathLike | int)
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
    rate = None if fps is None else _checked_rate(fps)
    if not isinstance(source, str | os.PathLike | int):
        name = getattr(source, "name", None)  # that of a pipe is a number
        return Stream(source, name if isinstance(name, str) else "stream", size, rate)
    if source == "-":
        return Stream(_standard_input(), STDIN, size, rate)
    if size is not None:
        raise InputError(f"size is for a stream of raw frames; leave it out for {source}.")
    if isinstance(source, int):
        return Camera(source, rate)
    if isinstance(source, str) and (named := _CAMERA.fullmatch(source)):
        return Camera(int(named[1]), rate)
    return Folder(source, rate) if os.path.isdir(source) else Video(source, rate)


def _standard_input() -> BinaryIO:
    if sys.stdin is None or sys.stdin.isatty():
        raise FileError(
            f"{STDIN}: nothing is piped into it; write, for example, ffmpeg -i IN -f yuv4mpegpipe "
            "- before the pipe."
        )
    return sys.stdin.buffer


def _checked_rate(fps: float | Fraction) -> Fraction:
    if not 0.001 <= fps <= MAX_FPS:
        raise InputError(f"fps must be a number from 0.001 to {MAX_FPS}, but is {fps}.")
    return Fraction(fps)


class VideoWriter:
    """Writes images to a video file, which appears only when it is complete.

    Parameters
    ----------
    path : str or os.PathLike
        Ends in ``.mp4`` or ``.mkv`` (H.264, or MPEG-4 if this FFmpeg cannot encode H.264),
        ``.avi`` (MPEG-4) or ``.webm`` (VP9). An existing file is replaced.
    fps : float or Fraction
        Images per second.

    Raises
    ------
    FileError
        If the suffix is unknown, the package av is missing, or the file cannot be written.
    InputError
        If `fps` is out of range, the images differ in size, or there is none.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from hamflow.io.video import VideoWriter, open_frames
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with VideoWriter(f"{folder}/gray.mp4", fps=10) as video:
    ...         for brightness in (50, 100, 150):
    ...             video.add(np.full((48, 64, 3), brightness, np.uint8))
    ...     open_frames(f"{folder}/gray.mp4").count
    3
    """

    def __init__(self, path: _Path, fps: float | Fraction = 25) -> None:
        check_video_path(path)
        rate = _checked_rate(fps)
        self._path = path
        self._rate = rate.limit_denominator(max(1, _MAX_TICKS // math.ceil(rate)))
        self._av = require_av(path)
        self._stack = ExitStack()
        self._container: Any = None
        self._stream: Any = None
        self._shape: tuple[int, ...] | None = None

    def __enter__(self) -> Self:
        self._temporary = self._stack.enter_context(atomic_write(self._path)).name
        self._stack.push(self._finish)
        return self

    def add(self, image: ArrayLike) -> None:
        """Append an image, (H, W, 3) of uint8; odd sides are made even by repeating the edge."""
        pixels = as_image(image)
        if pixels.dtype != np.uint8 or pixels.ndim != 3:
            raise InputError("The images of a video must be RGB of type uint8.")
        if self._shape is None:
            self._shape = pixels.shape
        if pixels.shape != self._shape:
            raise InputError(
                f"The images of a video must have one size, but {os.fspath(self._path)} has "
                f"{self._shape[1]}×{self._shape[0]} and then {pixels.shape[1]}×{pixels.shape[0]} "
                "(width × height)."
            )
        height, width = pixels.shape[:2]
        padded = np.pad(pixels, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        try:
            if self._container is None:
                self._open(padded.shape[1], padded.shape[0])
            frame = self._av.VideoFrame.from_ndarray(np.ascontiguousarray(padded), format="rgb24")
            self._container.mux(self._stream.encode(frame))
        except self._av.FFmpegError as error:
            raise self._refused(error) from error

    def _open(self, width: int, height: int) -> None:
        container, codec = _format_of(self._path)
        self._container = self._av.open(f"file:{self._temporary}", "w", format=container)
        self._stream = self._container.add_stream(codec, rate=self._rate, options=_QUALITY[codec])
        self._stream.width, self._stream.height = width, height
        self._stream.pix_fmt = "yuv420p"
        self._stream.codec_context.colorspace = _BT601

    def _refused(self, error: Exception) -> Exception:
        if isinstance(error, OSError):
            # `atomic_write` turns it into a FileError.
            return OSError(error.errno, error.strerror)
        return FileError(
            f"{os.fspath(self._path)}: cannot be encoded ({av_reason(error)}); use another format "
            "or size."
        )

    def _finish(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            with suppress(self._av.FFmpegError):
                if self._container is not None:
                    self._container.close()
            return
        if self._container is None:
            raise InputError(f"There are no images to write to {os.fspath(self._path)}.")
        try:
            self._container.mux(self._stream.encode(None))
            self._container.close()
        except self._av.FFmpegError as error:
            raise self._refused(error) from error

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)


def check_video_path(path: _Path) -> None:
    """Raise at once the FileError that `VideoWriter` would raise for this path."""
    _format_of(path)
    check_writable(path)


def _format_of(path: _Path) -> tuple[str, str]:
    """Return container and encoder."""
    container, codecs = by_suffix(path, _WRITABLE, "a video file")
    av = require_av(path)
    for codec in codecs:
        with suppress(ValueError):  # this FFmpeg does not have it
            av.codec.Codec(codec, "w")
            return container, codec
    raise FileError(
        f"{os.fspath(path)}: this FFmpeg cannot encode {container} files; use another format."
    )
