"""Frames one at a time, from a video file or a folder of images, and writing of videos.

Video files need the package av (PyAV, which brings FFmpeg), of the extra ``video``.
"""

from __future__ import annotations

import math
import os
from contextlib import ExitStack, suppress
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hamflow._check import as_image
from hamflow.errors import FileError, InputError
from hamflow.io._atomic import atomic_write, check_writable
from hamflow.io._decoding import Video, av_reason, require_av
from hamflow.io._frames import Folder, FrameImage, FrameReader, Frames
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


def open_frames(path: _Path) -> Frames:
    """Open a video file, or a folder of images, to read its frames one at a time.

    Parameters
    ----------
    path : str or os.PathLike
        A video file in any of the usual formats (needs the extra ``video``), or a folder: its
        images in the natural order of their names, frame2 before frame10. Hidden files, other
        files and folders in it are ignored.

    Returns
    -------
    frames : Frames
        With `name`, `count`, `fps`; iteration gives (index, name, image) and keeps no frame. The
        frames of a folder are named after their files, without the suffix; those of a video are
        called ``frame_0001`` and so on. Videos of more than 8 bits give uint16, others uint8. The
        rotation in their metadata is applied in steps of 90 degrees; mirroring is ignored.

    Raises
    ------
    FileError
        If the file does not exist or is not a video, or the folder has no images or two frames of
        the same name. Damaged frames are found during iteration; see `FrameReader`. A truncated
        video may end early.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from hamflow import write_image
    >>> from hamflow.io.video import open_frames
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in (1, 2, 10):
    ...         write_image(f"{folder}/frame{number}.png", np.zeros((4, 6, 3), np.uint8))
    ...     [name for index, name, image in open_frames(folder)]
    ['frame1', 'frame2', 'frame10']
    """
    return Folder(path) if os.path.isdir(path) else Video(path)


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
        if not 0.001 <= fps <= 1000:
            raise InputError(f"fps must be a number from 0.001 to 1000, but is {fps}.")
        self._path = path
        rate = Fraction(fps)
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
