"""Frames that arrive one by one: from a stream, or from a camera; both need the package av."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any, BinaryIO

from hamflow.errors import FileAccessError, FileError, InputError
from hamflow.io._decoding import CONTAINERS, DecodingPass, av_reason, require_av
from hamflow.io._frames import Frames, Pass, Pixels
from hamflow.io._reading import MAX_PIXELS

# One image after another, without a clock; FFmpeg pretends that there are 25 per second.
_IMAGES = ("bmp_pipe", "jpeg_pipe", "mjpeg", "pgm_pipe", "png_pipe", "ppm_pipe", "webp_pipe")
_STREAMS = ",".join((CONTAINERS, "nut", *_IMAGES))
_RAW = "rawvideo"
_SIZE = "--size WxH, or open_frames(source, size=(height, width)) in Python"
_MOST_BYTES = 8 * MAX_PIXELS  # of one frame
_DIGITS = 6  # of the numbers in names, because nobody knows how many frames will come

STDIN = "stdin"
"""What messages call the standard input."""


class _Live(Frames):
    """Frames that can be read only once."""

    live = True

    def __init__(self, name: str, only: DecodingPass, fps: Fraction | None, clock: bool) -> None:
        super().__init__(fps)
        self.name = name
        self._only: DecodingPass | None = only
        self._clock = clock
        if fps is None and clock:
            self.fps = only.stream.average_rate or None

    def name_of(self, index: int) -> str:
        return f"frame_{index + 1:0{_DIGITS}}"

    def time_of(self, index: int, shown: float | None) -> float | None:
        return super().time_of(index, shown if self._clock else None)

    def identity(self) -> dict[str, str]:
        return {"name": self.name}

    def open_pass(self) -> Pass:
        if self._only is None:
            raise FileError(f"{self.name}: can be read only once; save it to a file first.")
        only, self._only = self._only, None
        return only


class Stream(_Live):
    """The frames in a binary file that is read once from its beginning to its end.

    Parameters
    ----------
    file : binary file
        It has images one after another, a container that FFmpeg recognizes by its beginning, or,
        if `size` is given, nothing but the bytes of RGB pixels.
    name : str
        What messages call it.
    size : (int, int), optional
        Height and width.
    fps : Fraction, optional
        Frames per second.
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        size: tuple[int, int] | None = None,
        fps: Fraction | None = None,
    ) -> None:
        if size is not None and not (min(size) > 0 and size[0] * size[1] <= MAX_PIXELS):
            raise InputError(
                f"{name}: frames cannot have {size[1]} × {size[0]} pixels; give their width and "
                f"height, of at most {MAX_PIXELS} pixels in all."
            )
        av = require_av(name)
        pipe = _Pipe(file, name)
        try:
            if size is None:
                options = {"format_whitelist": _STREAMS, "protocol_whitelist": "none"}
                container = av.open(pipe, options=options, metadata_errors="replace")
            else:
                options = {"video_size": f"{size[1]}x{size[0]}", "pixel_format": "rgb24"}
                container = av.open(pipe, format=_RAW, options=options)
        except (av.FFmpegError, ValueError) as error:
            pipe.raise_error()
            if pipe.total == 0:
                raise FileError(
                    f"{name}: ended without a frame; look at the messages of the program before it."
                ) from error
            raise FileError(
                f"{name}: is not a stream that Hamflow recognizes ({av_reason(error)}); let ffmpeg "
                f"write -f yuv4mpegpipe, or give the size of raw rgb24 frames: {_SIZE}."
            ) from error
        clock = container.format.name not in (*_IMAGES, _RAW)
        super().__init__(name, _StreamPass(name, container, pipe), fps, clock)


class _Pipe:
    """What FFmpeg reads a stream from."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        # If there is a choice, take the bytes that are there instead of waiting for more.
        self._read = getattr(file, "read1", file.read)
        self._name = name
        self.total = 0
        self.taken = 0  # of the bytes, those that have become frames
        self._error: BaseException | None = None

    def read(self, count: int) -> bytes:
        """Return at most so many bytes; none at the end, and after an error."""
        # No exception may pass FFmpeg, where that of Ctrl-C, for example, would get lost.
        try:
            data: bytes = self._read(count)
            if not isinstance(data, bytes):
                raise InputError(f"{self._name}: must be opened in binary mode.")
            self.total += len(data)
            if self.total - self.taken > _MOST_BYTES:
                raise FileError(
                    f"{self._name}: has {_MOST_BYTES} bytes without a frame; check how it is made."
                )
        except BaseException as error:
            self._error = error
            return b""
        return data

    def raise_error(self) -> None:
        """Raise what went wrong in `read`."""
        error, self._error = self._error, None
        if isinstance(error, OSError) and not isinstance(error, FileError):
            message = f"{self._name}: cannot be read ({error.strerror or error}); try again."
            raise FileAccessError(message, self._name, error.errno) from error
        if error is not None:
            raise error


class _StreamPass(DecodingPass):
    def __init__(self, name: str, container: Any, pipe: _Pipe) -> None:
        super().__init__(name, container)
        self._pipe = pipe
        self._whole = container.format.name == "yuv4mpegpipe"
        self._raw = container.format.name == _RAW
        self._end = 0  # of the last packet

    def step(self, read: bool) -> Pixels | None:
        pixels = super().step(read)
        self._pipe.taken = self._pipe.total
        return pixels

    def _damaged(self, why: str) -> FileError:
        if not self._raw:
            return super()._damaged(why)
        return FileError(
            f"{self._name}: frame {self._number} cannot be decoded ({why}); check the size of the "
            f"frames ({_SIZE}), and whether the stream was cut off."
        )

    def _next_packet(self) -> Any:
        try:
            packet = super()._next_packet()
        finally:
            self._pipe.raise_error()
        if packet is not None and packet.size and packet.pos is not None:
            self._end = packet.pos + packet.size
        elif self._whole and self._end < self._pipe.total:
            # FFmpeg says nothing about half a frame at the end of this format.
            self._broke_off = EOFError("its last frame is incomplete")
        return packet


class Camera(_Live):
    """A camera of this computer, by its number."""

    def __init__(self, number: int, fps: Fraction | None = None) -> None:
        name = f"camera:{number}"
        av = require_av(name)
        try:
            device, kind, options = _device(av, number)
            if fps is not None:
                options["framerate"] = str(fps)
            container = av.open(device, format=kind, options=options)
        except (av.FFmpegError, ValueError) as error:
            raise FileError(
                f"{name}: cannot be opened ({av_reason(error)}); connect a camera, end other "
                "programs that use it, or give another number."
            ) from error
        super().__init__(name, DecodingPass(name, container), None, clock=True)


def _device(av: Any, number: int) -> tuple[str, str, dict[str, str]]:
    """Return what FFmpeg calls a camera on this system, the kind of its device, and options."""
    if sys.platform == "darwin":
        return str(number), "avfoundation", {"framerate": "30"}  # its default suits few cameras
    if sys.platform == "win32":
        if not hasattr(av, "enumerate_input_devices"):
            raise ValueError("this version of the package av is too old for it")
        found = av.enumerate_input_devices("dshow")
        cameras = [device.name for device in found if "video" in device.media_types]
        if number >= len(cameras):
            raise ValueError(f"cameras found: {len(cameras)}")
        return f"video={cameras[number]}", "dshow", {}
    return f"/dev/video{number}", "v4l2", {}
