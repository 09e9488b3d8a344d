"""Fields of the size of the images, in memory or in files, which are written part by part."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hamflow._room import empty
from hamflow.io.tiff import TILE, new_tiff
from hamflow.pipeline.box import Box

CANVAS_SUFFIXES = (".npy", ".tif", ".tiff")
"""The files that can be written part by part."""


class Canvas(Protocol):
    """A field that is written part by part."""

    @property
    def array(self) -> NDArray[Any]:
        """The whole field; `part_of` reads parts of it."""

    def write(self, box: Box, values: NDArray[Any]) -> None:
        """Set a part."""


class MemoryCanvas:
    """A new field in memory.

    Parameters
    ----------
    shape : tuple of int
        Of the field: height, width, and channels if there are several.
    dtype : type
        Of its numbers.
    """

    def __init__(self, shape: tuple[int, ...], dtype: type[np.generic]) -> None:
        self.array: NDArray[Any] = empty(shape, dtype)

    def write(self, box: Box, values: NDArray[Any]) -> None:
        """Set a part."""
        self.array[box.slices] = values


class NpyCanvas:
    """A new field in a file of NumPy's (``.npy``).

    The file is mapped anew for each part and unmapped at once, so that what is written does not
    stay in the memory of the process.

    Parameters
    ----------
    shape, dtype
        As for `MemoryCanvas`.
    path : Path
        The file to make.
    """

    def __init__(self, shape: tuple[int, ...], dtype: type[np.generic], path: Path) -> None:
        np.lib.format.open_memmap(path, "w+", np.dtype(dtype), shape)
        self._path = path
        self.array: NDArray[Any] = np.load(path, mmap_mode="r")

    def write(self, box: Box, values: NDArray[Any]) -> None:
        """Set a part."""
        mapped: NDArray[Any] = np.load(self._path, mmap_mode="r+")
        mapped[box.slices] = values


class TiffCanvas:
    """A new field of float32 in a tiled TIFF file, which is mapped as `NpyCanvas` does.

    Parameters
    ----------
    shape : (int, int, int)
        Height, width and channels.
    path : Path
        The file to make.
    """

    def __init__(self, shape: tuple[int, ...], path: Path) -> None:
        self._shape, self._path = shape, path
        self._start = new_tiff(path, shape)

    @property
    def array(self) -> NDArray[Any]:
        """The field, in an order of axes that `part_of` knows: rows and columns of tiles first."""
        return self._mapped("r")

    def write(self, box: Box, values: NDArray[Any]) -> None:
        """Set a part."""
        mapped = self._mapped("r+")
        for row, column, here, there in _tiles(box):
            mapped[row, column][there] = values[here]

    def _mapped(self, mode: Any) -> NDArray[Any]:
        rows, columns = (-(-side // TILE) for side in self._shape[:2])
        shape = rows, columns, TILE, TILE, self._shape[2]
        return np.memmap(self._path, "<f4", mode, self._start, shape)


def part_of(array: NDArray[Any], box: Box) -> NDArray[Any]:
    """Return a copy of a part of a field; what is read of a file does not stay in memory."""
    if not isinstance(array, np.memmap):
        return np.array(array[box.slices])
    assert array.filename is not None
    again: NDArray[Any] = np.memmap(array.filename, array.dtype, "r", array.offset, array.shape)
    if array.ndim < 5:
        return np.array(again[box.slices])
    part = np.empty((box.height, box.width, array.shape[-1]), array.dtype)
    for row, column, here, there in _tiles(box):
        part[here] = again[row, column][there]
    return part


def _tiles(box: Box) -> Any:
    """Return row and column of each tile of a file, and the part that it shares with a box."""
    for row in range(box.y // TILE, -(-(box.y + box.height) // TILE)):
        for column in range(box.x // TILE, -(-(box.x + box.width) // TILE)):
            y, x = row * TILE, column * TILE
            top, bottom = max(y, box.y), min(y + TILE, box.y + box.height)
            left, right = max(x, box.x), min(x + TILE, box.x + box.width)
            here = np.s_[top - box.y : bottom - box.y, left - box.x : right - box.x]
            yield row, column, here, np.s_[top - y : bottom - y, left - x : right - x]


def new_canvas(
    shape: tuple[int, ...], dtype: type[np.generic], path: Path, kind: str | os.PathLike[str]
) -> Canvas:
    """Make a file; the suffix of `kind` decides the format, because `path` may be temporary."""
    if PurePath(kind).suffix.lower() == ".npy":
        return NpyCanvas(shape, dtype, path)
    return TiffCanvas(shape, path)
