"""Writing of videos by FFmpeg, which needs the package av (PyAV), of the extra ``video``."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from hamflow._check import as_image
from hamflow.errors import FileAccessError, FileError, InputError
from hamflow.io._atomic import atomic_write, check_writable
from hamflow.io._decoding import av_reason, require_av
from hamflow.io._reading import by_suffix

if TYPE_CHECKING:
    from typing_extensions import Self

_Path = str | os.PathLike[str]

_X264_OR_MPEG4 = ("libx264", "mpeg4")
# Container and encoders (the best first) of each suffix.
_WRITABLE = {
    ".mp4": ("mp4", _X264_OR_MPEG4),
    ".mov": ("mov", _X264_OR_MPEG4),
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


def checked_rate(fps: float | Fraction) -> Fraction:
    """Return a rate in frames per second, or raise an InputError if it is out of range."""
    if not 0.001 <= fps <= MAX_FPS:
        raise InputError(f"fps must be a number from 0.001 to {MAX_FPS}, but is {fps}.")
    return Fraction(fps)


class _Writer(ABC):
    """Encodes images; used in a ``with`` statement."""

    def __init__(self, name: str, fps: float | Fraction) -> None:
        self._name = name
        rate = checked_rate(fps)
        self._rate = rate.limit_denominator(max(1, _MAX_TICKS // math.ceil(rate)))
        self._av = require_av(name)
        self._stack = ExitStack()
        self._container: Any = None
        self._stream: Any = None
        self._shape: tuple[int, ...] | None = None

    def __enter__(self) -> Self:
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
                f"The images of a video must have one size, but {self._name} has "
                f"{self._shape[1]}×{self._shape[0]} and then {pixels.shape[1]}×{pixels.shape[0]} "
                "(width × height)."
            )
        height, width = pixels.shape[:2]
        padded = np.pad(pixels, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        try:
            if self._container is None:
                self._container, codec = self._open()
                self._stream = self._container.add_stream(
                    codec, rate=self._rate, options=_QUALITY.get(codec, {})
                )
                self._stream.width, self._stream.height = padded.shape[1], padded.shape[0]
                self._stream.pix_fmt = "yuv420p"
                self._stream.codec_context.colorspace = _BT601
            frame = self._av.VideoFrame.from_ndarray(np.ascontiguousarray(padded), format="rgb24")
            self._mux(frame)
        except self._av.FFmpegError as error:
            raise self._refused(error) from error

    @abstractmethod
    def _open(self) -> tuple[Any, str]:
        """Return the container to write to, and the name of the encoder."""

    def _mux(self, frame: Any) -> None:
        """Encode and write a frame; None completes the video."""
        self._container.mux(self._stream.encode(frame))
        if frame is None:
            self._container.close()

    def _refused(self, error: Exception) -> Exception:
        if isinstance(error, OSError):
            # `atomic_write` turns it into a FileError.
            return OSError(error.errno, error.strerror)
        return FileError(
            f"{self._name}: cannot be encoded ({av_reason(error)}); use another format or size."
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
            raise InputError(f"There are no images to write to {self._name}.")
        try:
            self._mux(None)
        except self._av.FFmpegError as error:
            raise self._refused(error) from error

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)


class VideoWriter(_Writer):
    """Writes images to a video file, which appears only when it is complete.

    Parameters
    ----------
    path : str or os.PathLike
        Ends in ``.mp4``, ``.mov`` or ``.mkv`` (H.264, or MPEG-4 if this FFmpeg cannot encode
        H.264), ``.avi`` (MPEG-4) or ``.webm`` (VP9). An existing file is replaced.
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
        super().__init__(os.fspath(path), fps)
        self._path = path

    def __enter__(self) -> Self:
        self._temporary = self._stack.enter_context(atomic_write(self._path)).name
        return super().__enter__()

    def _open(self) -> tuple[Any, str]:
        container, codec = _format_of(self._path)
        return self._av.open(f"file:{self._temporary}", "w", format=container), codec


class StreamWriter(_Writer):
    """Writes images to an open binary file, one after another, as YUV4MPEG2.

    FFmpeg and many other programs recognize this format, its size and its rate without being told.

    Parameters
    ----------
    file : binary file
        Such as ``sys.stdout.buffer``, or the input of a process. It is not closed.
    name : str
        What messages call it.
    fps : float or Fraction
        Images per second.

    Raises
    ------
    FileError
        If the package av is missing, or nobody reads the stream any longer.
    InputError
        If `fps` is out of range, the images differ in size, or there is none.

    Examples
    --------
    >>> import io, numpy as np
    >>> from hamflow.io.video import StreamWriter
    >>> file = io.BytesIO()
    >>> with StreamWriter(file, "stream", fps=10) as video:
    ...     video.add(np.zeros((48, 64, 3), np.uint8))
    >>> file.getvalue()[:26]
    b'YUV4MPEG2 W64 H48 F10:1 Ip'
    """

    def __init__(self, file: BinaryIO, name: str, fps: float | Fraction = 25) -> None:
        super().__init__(name, fps)
        self._target = _Target(file)

    def _open(self) -> tuple[Any, str]:
        return self._av.open(self._target, "w", format="yuv4mpegpipe"), "rawvideo"

    def _mux(self, frame: Any) -> None:
        try:
            super()._mux(frame)
        finally:
            self._target.raise_error(self._name)


class _Target:
    """What FFmpeg writes a stream to."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._error: BaseException | None = None

    def write(self, data: bytes) -> int:
        """Write all of the data, unless there was an error."""
        # No exception may pass FFmpeg, where that of Ctrl-C, for example, would get lost.
        try:
            if self._error is None:
                left = memoryview(data)
                while left:  # a file without a buffer may take only a part
                    left = left[self._file.write(left) :]
                self._file.flush()
        except BaseException as error:
            self._error = error
        return len(data)

    def raise_error(self, name: str) -> None:
        """Raise what went wrong in `write`."""
        error = self._error
        if isinstance(error, BrokenPipeError):
            message = f"{name}: the program behind the pipe has ended; look at its messages."
            raise FileAccessError(message, name, error.errno) from error
        if isinstance(error, OSError):
            message = f"{name}: cannot be written ({error.strerror or error}); try again."
            raise FileAccessError(message, name, error.errno) from error
        if error is not None:
            raise error


def check_video_path(path: _Path, *, new_folder: bool = False) -> None:
    """Raise at once the FileError that `VideoWriter` would raise for this path.

    With `new_folder`, something else makes the folder of the video before it is written.
    """
    _format_of(path)
    if not new_folder:
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
