"""Decoding of video files by FFmpeg, which needs the package av (PyAV), of the extra ``video``.

FFmpeg can do far more than decode a file: follow playlists, open URLs, read devices. None of this
is allowed here: only the local file is opened, and only as one of the containers listed below.
"""

from __future__ import annotations

import heapq
import math
import os
from collections import deque
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

from hamflow.errors import FileError
from hamflow.io._frames import Frames, Pass, Pixels
from hamflow.io._identity import file_digest
from hamflow.io._reading import MAX_PIXELS, check_size, open_regular, reason, require

CONTAINERS = (
    "asf,avi,flv,gif,h264,hevc,ivf,m4v,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mpeg,mpegts,mxf,ogg,"
    "yuv4mpegpipe"
)
"""The containers that are read, by FFmpeg's names."""


def require_av(path: str | os.PathLike[str]) -> Any:
    """Return the package av, or raise a FileError that says how to get it."""
    return require(path, "av", "video")


class Video(Frames):
    """The first video stream of a file."""

    def __init__(self, path: str | os.PathLike[str], fps: Fraction | None = None) -> None:
        super().__init__(fps)
        self.name = os.fspath(path)
        first = self.open_pass()
        # A forged number could have a list of frames fill the memory; a frame takes some bytes.
        announced, most = first.stream.frames, os.path.getsize(self.name)
        self.count = announced if 0 < announced <= most else None
        self.fps = fps or first.stream.average_rate or None
        first.close()
        # Names with leading zeros sort in order, also if the number of frames is not known.
        self._digits = max(4, len(str(self.count or 999_999)))

    def name_of(self, index: int) -> str:
        return f"frame_{index + 1:0{self._digits}}"

    def identity(self) -> dict[str, str]:
        return {"name": os.path.basename(self.name), "sha256": file_digest(self.name)}

    def open_pass(self) -> DecodingPass:
        with open_regular(self.name):
            pass  # raises a FileError if something is wrong with the path
        av = require_av(self.name)
        try:
            # By its name, not as the open file: an exception in a callback of FFmpeg, such as that
            # of Ctrl-C, would get lost. After "file:", a colon in the name has no special meaning.
            container = av.open(
                f"file:{self.name}",
                options={"protocol_whitelist": "file", "format_whitelist": CONTAINERS},
                metadata_errors="replace",
            )
        except (av.FFmpegError, ValueError) as error:
            raise FileError(
                f"{self.name}: is not a video that Hamflow reads, or is damaged "
                f"({av_reason(error)}); convert it to .mp4, or its frames to images in a folder."
            ) from error
        return DecodingPass(self.name, container)


class DecodingPass(Pass):
    """Decodes the first video stream of what FFmpeg has opened."""

    def __init__(self, name: str, container: Any) -> None:
        self._av = require_av(name)
        self._name = name
        self._container = container
        if not container.streams.video:
            container.close()
            raise FileError(f"{name}: has no video stream; give a file that has one.")
        self.stream = container.streams.video[0]
        if self.stream.codec_context is None:
            container.close()
            raise FileError(
                f"{name}: is encoded in a way that FFmpeg does not know; convert it to .mp4, or "
                "its frames to images in a folder."
            )
        self.stream.codec_context.options = {"max_pixels": str(MAX_PIXELS)}
        self._packets = container.demux(self.stream)
        self._decoded: deque[Any] = deque()
        # Times of the frames whose packets could not be decoded, the earliest first.
        self._lost: list[float] = []
        self._number = 0
        self._ended = False
        self._broke_off: Exception | None = None
        start, base = self.stream.start_time, self.stream.time_base
        self._start = None if start is None or base is None else float(start * base)

    def step(self, read: bool) -> Pixels | None:
        frame = self._next_frame()
        if not read:
            return None
        check_size(self._name, frame.width, frame.height)
        try:
            deep = any(component.bits > 8 for component in frame.format.components)
            pixels = frame.to_ndarray(format="rgb48le" if deep else "rgb24")
        except (self._av.FFmpegError, ValueError) as error:
            raise self._damaged(av_reason(error)) from error
        upright: Pixels = np.ascontiguousarray(np.rot90(pixels, round(frame.rotation / 90)))
        return upright

    def _next_frame(self) -> Any:
        while not self._decoded and not self._ended:
            self._decode()
        self._number += 1
        # Packets are stored in another order than frames are shown: a lost frame is reported when
        # it would be shown.
        if self._lost:
            shown = self._decoded[0].pts if self._decoded else None
            if shown is None or self._lost[0] < shown:
                heapq.heappop(self._lost)
                raise self._damaged("its data are damaged")
        if self._decoded:
            frame = self._decoded.popleft()
            if frame.is_corrupt:
                raise self._damaged("its data are incomplete")
            self.time = self._seconds(frame)
            return frame
        if self._broke_off is not None:
            error, self._broke_off = self._broke_off, None
            raise self._damaged(f"the file is truncated: {av_reason(error)}") from error
        raise StopIteration

    def _seconds(self, frame: Any) -> float | None:
        """Return when a frame is shown; many files and cameras do not begin at 0."""
        if frame.time is None:
            return None
        if self._start is None:
            self._start = frame.time
        return float(frame.time - self._start)

    def _decode(self) -> None:
        try:
            packet = self._next_packet()
            if packet is None:
                self._ended = True
                return
        except self._av.FFmpegError as error:
            # The decoder may still hold earlier frames.
            self._broke_off, self._ended = error, True
            with suppress(self._av.FFmpegError):
                self._decoded.extend(self.stream.codec_context.decode(None))
            return
        try:
            self._decoded.extend(packet.decode())
        except self._av.FFmpegError:
            heapq.heappush(self._lost, -math.inf if packet.pts is None else packet.pts)

    def _next_packet(self) -> Any:
        """Return the next packet, or None at the end."""
        return next(self._packets, None)

    def _damaged(self, why: str) -> FileError:
        return FileError(
            f"{self._name}: frame {self._number} cannot be decoded ({why}); get the video again, "
            "or skip that frame."
        )

    def close(self) -> None:
        self._decoded.clear()
        self._ended = True
        self._container.close()


def av_reason(error: Exception) -> str:
    """Return the message of an FFmpeg error, without its number and the name of the function."""
    return getattr(error, "strerror", None) or reason(error)
