"""Images that flow can be estimated of: a pair, or the frames of a folder or a video."""

from __future__ import annotations

import io
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hamflow._check import to_bytes
from hamflow._types import Pixels
from hamflow.errors import FileError
from hamflow.io import read_flow
from hamflow.io.images import announced_size, read_image
from hamflow.viewer.refusals import Refusal

Kind = Literal["pair", "sequence", "result"]
_DECODED = ".npy"  # a frame of a video, as it was decoded


def new_id() -> str:
    """Return an id that cannot be guessed."""
    return secrets.token_urlsafe(12)


@dataclass(eq=False)
class Source:
    """Some frames, and what is known about them.

    Attributes
    ----------
    kind : {"pair", "sequence", "result"}
        Two images, more, or a result without images.
    name : str
        What people call it.
    shared : bool
        Whether all browsers see it, because it was given on the command line.
    frames : list of Path
        Where each frame is. It grows while a video is decoded.
    names : list of str
        What the frames are called.
    times : list of float, or None
        When each frame is shown, in seconds.
    size : (int, int)
        Width and height; 0 as long as they are not known.
    truths : dict of int to Path
        Files of the true flow, by the number of the first frame.
    folder : Path, or None
        What has to be removed with it.
    loading : bool
        Whether more frames are to come.
    note : str, or None
        What people should know, such as why frames are missing.
    result : str, or None
        Id of the result that it came with.
    """

    kind: Kind
    name: str
    shared: bool = False
    frames: list[Path] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    times: list[float] | None = None
    size: tuple[int, int] = (0, 0)
    truths: dict[int, Path] = field(default_factory=dict)
    folder: Path | None = None
    loading: bool = False
    note: str | None = None
    result: str | None = None
    id: str = field(default_factory=new_id)
    _truth: tuple[int, NDArray[np.float32]] | None = field(default=None, repr=False)

    def describe(self) -> dict[str, Any]:
        """Return what the page gets to know."""
        return {
            "id": self.id,
            "kind": self.kind,
            "name": self.name,
            "width": self.size[0],
            "height": self.size[1],
            "frames": len(self.frames),
            "names": list(self.names),
            "times": None if self.times is None else list(self.times),
            "truth": bool(self.truths),
            "result": self.result,
            "loading": self.loading,
            "note": self.note,
            "shared": self.shared,
        }

    def path(self, number: int) -> Path:
        """Return where a frame is."""
        if not 0 <= number < len(self.frames):
            raise Refusal(404, f"{self.name} has no frame {number}; it has {len(self.frames)}.")
        return self.frames[number]

    def file_names(self) -> dict[Path, str]:
        """Return what people call the files that belong to it."""
        found = dict(zip(self.frames, self.names, strict=False))
        return found | {path: f"truth of frame {k}" for k, path in self.truths.items()}

    def frame(self, number: int) -> Pixels:
        """Return the pixels of a frame."""
        with refused_files(self.file_names()):
            return read_frame(self.path(number))

    def truth(self, index: int) -> NDArray[np.float32] | None:
        """Return the true flow from a frame to the next, if there is one."""
        path = self.truths.get(index)
        if path is None:
            return None
        # The one that was asked for last is kept, because whoever points at pixels asks again.
        kept = self._truth
        if kept is None or kept[0] != index:
            with refused_files(self.file_names()):
                kept = self._truth = (index, read_flow(path))
        return kept[1]


def read_frame(path: Path) -> Pixels:
    """Read an image, or a frame of a video that was decoded before."""
    if path.suffix == _DECODED:
        pixels: Pixels = np.load(path, mmap_mode="r", allow_pickle=False)
        return pixels
    return read_image(path)


def write_frame(folder: Path, number: int, pixels: Pixels) -> Path:
    """Keep a decoded frame of a video for `read_frame`."""
    path = folder / f"{number:06d}{_DECODED}"
    np.save(path, pixels, allow_pickle=False)
    return path


def check_pixels(path: Path, name: str, most: int, size: tuple[int, int] | None = None) -> None:
    """Raise a Refusal if an image, or what has this width and height, has too many pixels."""
    width, height = announced_size(path) if size is None else size
    if width * height > most:
        raise Refusal(
            413,
            f"{name}: has {width}×{height} pixels, but at most {most / 1e6:g} million are "
            "taken; use a smaller image.",
        )


@contextmanager
def refused_files(names: Mapping[Path, str]) -> Iterator[None]:
    """Turn errors about files in the block into refusals that call the files by these names.

    A browser need not know in which folder the server keeps them.
    """
    try:
        yield
    except FileError as error:
        raise Refusal(415, with_names(str(error), names)) from error


def with_names(sentence: str, names: Mapping[Path, str]) -> str:
    """Return a message of a `FileError` with names that people know in place of paths."""
    for path, name in names.items():
        sentence = sentence.replace(str(path), name)
    first, separator, rest = sentence.partition(": ")
    return f"{os.path.basename(first)}{separator}{rest}"


def as_png(pixels: NDArray[Any], width: int | None = None) -> bytes:
    """Return an image as an 8-bit PNG file, reduced to a width if it is wider."""
    picture = Image.fromarray(np.ascontiguousarray(to_bytes(pixels)))
    if width is not None and width < picture.width:
        height = max(1, round(picture.height * width / picture.width))
        picture = picture.resize((width, height), Image.Resampling.BOX, reducing_gap=2)
    encoded = io.BytesIO()
    picture.save(encoded, "PNG", compress_level=1)
    return encoded.getvalue()


class ByteCache:
    """The last answers, up to some number of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> bytes | None:
        """Return what was kept for a key."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: Hashable, value: bytes) -> None:
        """Keep an answer; older ones make room for it."""
        with self._lock:
            self._size += len(value) - len(self._kept.pop(key, b""))
            self._kept[key] = value
            while self._size > self._limit:
                self._size -= len(self._kept.popitem(last=False)[1])
