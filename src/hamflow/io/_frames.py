"""Frames one at a time: what all sources have in common, and folders of images."""

from __future__ import annotations

import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow.errors import FileError, InputError, file_access
from hamflow.io._identity import file_digest
from hamflow.io.images import read_image

if TYPE_CHECKING:
    from typing_extensions import Self

Pixels = NDArray[np.uint8] | NDArray[np.uint16]

IMAGE_SUFFIXES = (
    *(".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp"),
)
"""The suffixes of frames in a folder, which may also be written in upper case."""


class FrameImage(NamedTuple):
    """One frame: its number from 0, its name, its pixels, and when it is shown."""

    position: int  # not "index", which is a method of tuples
    name: str
    image: NDArray[Any]  # (H, W, 3); files give uint8 or uint16
    time: float | None  # seconds from the beginning; None if that is not known


class Pass(ABC):
    """One pass over all frames.

    Attributes
    ----------
    time : float or None
        When the frame that `step` reached last is shown, in seconds, as far as the source knows.
    """

    time: float | None = None

    @abstractmethod
    def step(self, read: bool) -> Pixels | None:
        """Go to the next frame; return its pixels if `read` is set.

        Raises StopIteration at the end, and a FileError for a damaged frame; the next call then
        continues after it.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class FrameReader(Iterator[FrameImage]):
    """Iterates over selected frames without keeping any of them; made by `Frames.read`.

    A damaged frame raises a FileError when it is reached, and the next ``next`` continues after it.
    Frames that are not selected are skipped, damaged or not.

    Attributes
    ----------
    index : int
        The number of the frame at which the reader is; after the last one, how many there are.
    """

    def __init__(self, frames: Frames, start: int, stop: int | None, step: int) -> None:
        if start < 0 or step < 1:
            raise InputError("start must be 0 or more and step 1 or more.")
        self.frames = frames
        self.index = 0
        self._target = start
        self._stop = math.inf if stop is None else stop
        self._step = step
        self._pass = frames.open_pass()

    @property
    def upcoming(self) -> str | None:
        """The name of the next frame; None if it is known that there is none."""
        return self.frames.name_of(self._target) if self._target < self._stop else None

    def __next__(self) -> FrameImage:
        index, image = self._advance(read=True)
        assert image is not None
        name = self.frames.name_of(index)
        assert name is not None
        return FrameImage(index, name, image, self.frames.time_of(index, self._pass.time))

    def skip(self) -> None:
        """Skip the next selected frame without converting it; raises StopIteration at the end.

        In a video, a damaged frame raises a FileError; images in a folder are not opened.
        """
        self._advance(read=False)

    def _advance(self, read: bool) -> tuple[int, Pixels | None]:
        if self._target >= self._stop:
            self.close()
            raise StopIteration
        while self.index < self._target:
            with suppress(FileError):
                self._step_over(read=False)
        self._target += self._step
        index = self.index
        return index, self._step_over(read)

    def _step_over(self, read: bool) -> Pixels | None:
        try:
            image = self._pass.step(read)
        except StopIteration:
            self.close()
            raise
        except FileError:
            self.index += 1
            raise
        self.index += 1
        return image

    def close(self) -> None:
        """Close the file; also done at the end of the frames."""
        self._pass.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Frames(ABC):
    """Frames in their order; made by `open_frames`.

    Each iteration starts from the first frame. The frames of a `live` source can be read only once.

    Attributes
    ----------
    name : str
        The path, or what messages call the source.
    count : int or None
        How many frames there are, if that is known; a video may announce a wrong number.
    fps : Fraction or None
        Frames per second; None where neither the source nor the user says it.
    live : bool
        Whether the frames come from a camera or a stream.
    """

    name: str
    count: int | None = None
    fps: Fraction | None = None
    live: bool = False

    def __init__(self, fps: Fraction | None = None) -> None:
        self._given_fps = fps
        self.fps = fps

    def time_of(self, index: int, shown: float | None) -> float | None:
        """Return the time of a frame in seconds; `shown` is what the source says about it."""
        return shown if self._given_fps is None else float(index / self._given_fps)

    def read(self, start: int = 0, stop: int | None = None, step: int = 1) -> FrameReader:
        """Return an iterator over the frames `start`, `start` + `step`, ... before `stop`."""
        return FrameReader(self, start, stop, step)

    def __iter__(self) -> FrameReader:
        return self.read()

    @abstractmethod
    def name_of(self, index: int) -> str | None:
        """Return the name of a frame; None if it is known that there is no such frame."""

    @abstractmethod
    def identity(self) -> dict[str, str]:
        """Return what tells this input from any other, ready for JSON."""

    def pair_digest(self, name: str, step: int) -> str | None:
        """Return a hash of two frames: the named one, and the one `step` frames later.

        None if `identity` covers the content of the frames already.
        """
        return None

    @abstractmethod
    def open_pass(self) -> Pass:
        """Start a pass at the first frame."""


class Folder(Frames):
    """The images of a folder, in the natural order of their names."""

    def __init__(self, path: str | os.PathLike[str], fps: Fraction | None = None) -> None:
        super().__init__(fps)
        self.name = os.fspath(path)
        with file_access(path, "cannot be listed"), os.scandir(path) as entries:
            found = [entry.name for entry in entries if entry.is_file()]
        names = (n for n in found if PurePath(n).suffix.lower() in IMAGE_SUFFIXES)
        self._files = sorted((n for n in names if not n.startswith(".")), key=natural_key)
        if not self._files:
            raise FileError(
                f"{self.name}: holds no images; give a folder of files that end in one of "
                f"{', '.join(IMAGE_SUFFIXES)}."
            )
        self._positions: dict[str, int] = {}
        for position, file in enumerate(self._files):
            other = self._positions.setdefault(PurePath(file).stem, position)
            if other != position:
                raise FileError(
                    f"{self.name}: {self._files[other]} and {file} would be frames of the same "
                    "name; remove or rename one of them."
                )
        self.count = len(self._files)
        # Each frame is the second of a pair, and then the first of the next one.
        self._digest = lru_cache(maxsize=2)(file_digest)

    def name_of(self, index: int) -> str | None:
        return PurePath(self._files[index]).stem if index < len(self._files) else None

    def identity(self) -> dict[str, str]:
        # Not the files: damaged ones may be repaired and new ones added later.
        return {"folder": Path(self.name).resolve().name}

    def pair_digest(self, name: str, step: int) -> str | None:
        first = self._positions[name]
        pair = self._files[first : first + step + 1 : step]
        try:
            return " ".join(self._digest(os.path.join(self.name, file)) for file in pair)
        except FileError:
            return ""  # reading the frame raises the error

    def paths(self) -> list[str]:
        """Return the paths of all frames."""
        return [os.path.join(self.name, file) for file in self._files]

    def open_pass(self) -> Pass:
        return FolderPass(self.paths())


class FolderPass(Pass):
    """Reads one file after another."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = iter(enumerate(paths, 1))

    def step(self, read: bool) -> Pixels | None:
        number, path = next(self._paths)
        if not read:
            return None
        try:
            return read_image(path)
        except FileError as error:
            sentence = str(error).removeprefix(f"{path}: ")
            raise type(error)(f"{path}: frame {number}: {sentence}") from error

    def close(self) -> None:
        """Nothing stays open."""


def natural_key(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Return a key that sorts names by the values of the numbers in them: frame2, frame10."""
    parts = re.split(r"([0-9]+)", name)
    key = [(0, int(p), "") if k % 2 else (1, 0, p.casefold()) for k, p in enumerate(parts)]
    return key, name
