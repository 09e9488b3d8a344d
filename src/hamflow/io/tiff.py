"""TIFF files that are read and written part by part: images, and flow with two channels.

They need the package tifffile, of the extra ``tiff``. What is written has tiles of 256×256 pixels
(a flow of float32, u and v side by side) without compression: so every part has its place, and can
be written and read without the rest.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._types import Pixels
from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write, reserve
from hamflow.io._flow_format import FlowFormat, known_vectors, vectors_to_write
from hamflow.io._reading import check_size, open_regular, reason, require

TILE = 256
"""Height and width of the tiles that are written, in pixels."""
_LARGEST_SEGMENT = 2**28  # bytes that a tile or strip may announce
_LARGEST_PADDING = 2**24  # pixels of tiles beyond an image, if it is small
_GRAY, _RGB = 1, 2  # photometric interpretations
_NONE, _DEFLATE = (1,), (8, 32946)  # compressions


def require_tifffile(path: str | os.PathLike[str]) -> Any:
    """Return the package tifffile, or raise a FileError that says how to get it."""
    return require(path, "tifffile", "tiff")


class TiffPart:
    """The first image of a TIFF file, of which parts can be read.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    """

    in_file = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        with self._page() as page:
            # Numbers of a damaged file may be anything.
            self.array_shape: tuple[int, ...] = tuple(int(side) for side in page.shape)
            if len(self.array_shape) < 2 or min(self.array_shape) < 1:
                raise FileError(f"{self._path}: has no pixels; the file is damaged, get it again.")
            self.dtype: np.dtype[Any] = np.dtype(page.dtype)
            self.plain = self._is_plain(page)
            self.shape = self.array_shape[0], self.array_shape[1]
            self._check_segments(page)

    def pixels(self, rows: slice, columns: slice) -> NDArray[Any]:
        """Return a part as it is in the file, (H, W, channels)."""
        top, bottom, _ = rows.indices(self.shape[0])
        left, right, _ = columns.indices(self.shape[1])
        with self._page() as page:
            channels = page.samplesperpixel
            part = np.zeros((bottom - top, right - left, channels), self.dtype)
            length, width = self._segment(page)
            across = -(-self.shape[1] // width)
            for row in range(top // length, -(-bottom // length)):
                for column in range(left // width, -(-right // width)):
                    segment = self._decoded(page, row * across + column)
                    y, x = row * length, column * width
                    here = np.s_[
                        max(y, top) - top : min(y + length, bottom) - top,
                        max(x, left) - left : min(x + width, right) - left,
                    ]
                    there = np.s_[
                        max(y, top) - y : min(y + length, bottom) - y,
                        max(x, left) - x : min(x + width, right) - x,
                    ]
                    if segment is not None:  # a segment without bytes is black
                        part[here] = segment[there]
        return part

    def read(self, rows: slice, columns: slice) -> Pixels:
        """Return a part of an image, (H, W, 3)."""
        part = self.pixels(rows, columns)
        return np.repeat(part, 3, axis=2) if part.shape[2] == 1 else part[:, :, :3]

    def _decoded(self, page: Any, index: int) -> NDArray[Any] | None:
        offset, count = page.dataoffsets[index], page.databytecounts[index]
        if count == 0:
            return None
        if count > _LARGEST_SEGMENT:
            raise FileError(f"{self._path}: has a tile of {count} bytes; write it in smaller ones.")
        handle = page.parent.filehandle
        handle.seek(offset)
        data = handle.read(count)
        if page.compression in _DEFLATE:
            # tifffile inflates a tile to whatever it holds.
            most = self._segment_bytes(page)
            if len(zlib.decompressobj().decompress(data, most + 1)) > most:
                raise FileError(f"{self._path}: has a tile that inflates to more than its pixels.")
        segment, _, shape = page.decode(data, index)
        found: NDArray[Any] | None = None if segment is None else segment.reshape(shape)[0]
        return found

    def _check_segments(self, page: Any) -> None:
        """Raise a FileError for tiles that would take more time or memory than the image."""
        if page.compression not in (*_NONE, *_DEFLATE):
            raise FileError(
                f"{self._path}: is compressed by a method that is not read part by part; save it "
                "uncompressed or with deflate."
            )
        if self._segment_bytes(page) > _LARGEST_SEGMENT:
            raise FileError(f"{self._path}: has too large tiles; write it in smaller ones.")
        sides = zip(self.shape, self._segment(page), strict=True)
        padded = math.prod(-(-side // segment) * segment for side, segment in sides)
        if padded > 4 * math.prod(self.shape) + _LARGEST_PADDING:
            raise FileError(
                f"{self._path}: has tiles that are much larger than the image; write it in smaller "
                "ones."
            )

    @staticmethod
    def _segment_bytes(page: Any) -> int:
        samples: int = page.samplesperpixel * np.dtype(page.dtype).itemsize
        return math.prod(TiffPart._segment(page)) * samples

    @staticmethod
    def _segment(page: Any) -> tuple[int, int]:
        """Return height and width of tiles, or of strips."""
        if page.is_tiled:
            return int(page.tilelength), int(page.tilewidth)
        return min(int(page.rowsperstrip), int(page.imagelength)), int(page.imagewidth)

    @staticmethod
    def _is_plain(page: Any) -> bool:
        """Return whether it is gray or RGB as Hamflow takes it, upright and with channels last."""
        orientation = page.tags.get(274)
        return bool(
            page.photometric in (_GRAY, _RGB)
            and page.planarconfig == 1
            and page.imagedepth == 1
            and (orientation is None or orientation.value == 1)
            and page.samplesperpixel in (1, 3, 4)
            and np.dtype(page.dtype) in (np.uint8, np.uint16)
            and page.bitspersample == 8 * np.dtype(page.dtype).itemsize
        )

    @contextmanager
    def _page(self) -> Iterator[Any]:
        tifffile = require_tifffile(self._path)
        with open_regular(self._path):
            pass
        try:
            with tifffile.TiffFile(self._path) as file:
                yield file.pages[0]
        except (FileError, MemoryError):
            raise
        # tifffile raises exceptions of many unrelated kinds for damaged files.
        except Exception as error:
            raise FileError(
                f"{self._path}: cannot be decoded ({reason(error)}); the file is damaged, get it "
                "again."
            ) from error


def open_tiff(path: str | os.PathLike[str]) -> TiffPart | None:
    """Return an image of which parts can be read; None if it has to be read as a whole."""
    try:
        found = TiffPart(path)
    except FileError:
        return None  # the usual reader says what is wrong, or can read it
    return found if found.plain else None


def read_tiff(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read a flow from a ``.tif`` file as `hamflow.read_flow` does."""
    found = TiffPart(path)
    name = os.fspath(path)
    if len(found.array_shape) != 3 or found.array_shape[2] != 2 or found.dtype.kind != "f":
        raise FileError(
            f"{name}: has the shape {found.array_shape} and the type {found.dtype}, but a flow has "
            "(height, width, 2) numbers of floating point; check the file."
        )
    check_size(path, found.shape[1], found.shape[0])
    size = found.shape[0] * found.shape[1] * 2 * found.dtype.itemsize
    if size > 1100 * os.stat(name).st_size:  # more than deflate can compress
        raise FileError(f"{name}: announces more than it can hold; get it again.")
    return known_vectors(found.pixels(slice(None), slice(None)))


def write_tiff(path: str | os.PathLike[str], flow: ArrayLike) -> None:
    """Write a flow as a tiled ``.tif`` file as `hamflow.write_flow` does."""
    data = vectors_to_write(flow, ".tif", np.nan)
    writer_of, big = require_tifffile(path).TiffWriter, _big(data.shape, data.dtype)
    with atomic_write(path) as file, writer_of(file, bigtiff=big) as writer:
        writer.write(data, **_layout(data.shape))


def new_tiff(path: str | os.PathLike[str], shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Make a tiled file without content; return where its first tile begins.

    The tiles follow each other row by row, each with TILE × TILE × channels numbers.
    """
    tifffile = require_tifffile(path)
    with tifffile.TiffWriter(path, bigtiff=_big(shape, dtype)) as writer:
        writer.write(shape=shape, dtype=dtype, **_layout(shape))
    with tifffile.TiffFile(path) as file:
        offsets = file.pages[0].dataoffsets
    size = _tile_bytes(shape, dtype)
    if any(offset != offsets[0] + k * size for k, offset in enumerate(offsets)):
        raise FileError(f"{os.fspath(path)}: this version of tifffile orders tiles otherwise.")
    # The tiles need not be written in order.
    reserve(Path(path), max(os.stat(path).st_size, offsets[0] + len(offsets) * size))
    return int(offsets[0])


def _layout(shape: tuple[int, ...]) -> dict[str, Any]:
    """Return how a field is laid out: tiles, and channels side by side."""
    layout = {"tile": (TILE, TILE), "photometric": "minisblack", "metadata": None}
    if len(shape) == 2:
        return layout
    return {**layout, "planarconfig": "contig", "extrasamples": ("unspecified",)}


def _tile_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return TILE * TILE * math.prod(shape[2:]) * dtype.itemsize


def _big(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Return whether the file may need more than 32 bits for its places."""
    rows, columns = (-(-side // TILE) for side in shape[:2])
    return rows * columns * _tile_bytes(shape, dtype) > 2**31


TIFF = FlowFormat(read_tiff, write_tiff, require_tifffile)
