"""Fields of the size of the images, in memory or in files, which are written part by part."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hamflow._check import to_bytes
from hamflow._room import empty
from hamflow.io._atomic import atomic_write, reserve, temporary_file
from hamflow.io.flo import new_flo
from hamflow.io.tiff import TILE, new_tiff
from hamflow.pipeline.box import Box

FLOW_SUFFIXES = (".npy", ".tif", ".tiff", ".flo")
"""The flow files that can be written part by part."""
MASK_SUFFIXES = (".npy", ".tif", ".tiff")
"""The same for occlusion and confidence."""
IN_MEMORY = 2**27
"""Bytes of a field on the way to a file that is in memory, at most."""

DType = type[np.generic]


class Canvas(Protocol):
    """A field that is written part by part."""

    @property
    def array(self) -> NDArray[Any]:
        """The whole field; `part_of` reads parts of it."""

    def write(self, box: Box, values: NDArray[Any]) -> None:
        """Set a part."""


NewCanvas = Callable[[str, tuple[int, ...], DType], Canvas]
"""Makes a field, given its name in the result, shape and type; it is "" for one on the way."""


class MemoryCanvas:
    """A new field in memory.

    Parameters
    ----------
    name : str
        What it is of the result.
    shape : tuple of int
        Of the field: height, width, and channels if there are several.
    dtype : type
        Of its numbers.
    """

    def __init__(self, name: str, shape: tuple[int, ...], dtype: DType) -> None:
        self.array: NDArray[Any] = empty(shape, dtype)

    def write(self, box: Box, values: NDArray[Any]) -> None:
        """Set a part."""
        self.array[box.slices] = values


class MappedCanvas:
    """A field in a file, row by row behind a header.

    The file is mapped anew for each part and unmapped at once, so that what is written does not
    stay in the memory of the process.

    Parameters
    ----------
    path : Path
        The file, with its header.
    start : int
        Bytes of the header.
    shape, dtype
        As for `MemoryCanvas`.
    """

    def __init__(self, path: Path, start: int, shape: tuple[int, ...], dtype: DType) -> None:
        reserve(path, start + math.prod(shape) * np.dtype(dtype).itemsize)
        self._where: dict[str, Any] = {"filename": path, "offset": start, "shape": shape}
        self._where |= {"dtype": dtype, "mode": "r+"}
        self.array: NDArray[Any] = np.memmap(**self._where)

    def write(self, box: Box, values: NDArray[Any]) -> None:
        """Set a part."""
        np.memmap(**self._where)[box.slices] = values


class TiffCanvas:
    """A new field in a tiled TIFF file, which is mapped as `MappedCanvas` does.

    A flow is written as float32. A mask or a confidence becomes a picture of 8 bits, as
    `hamflow.write_image` makes it.

    Parameters
    ----------
    path : Path
        The file to make.
    shape : tuple of int
        Height, width, and channels if there are several.
    """

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self._picture = len(shape) == 2
        self._dtype = np.dtype(np.uint8 if self._picture else "<f4")
        rows, columns = (-(-side // TILE) for side in shape[:2])
        self._layout = rows, columns, TILE, TILE, *shape[2:]
        self._path, self._start = path, new_tiff(path, shape, self._dtype)

    @property
    def array(self) -> NDArray[Any]:
        """The field, in an order of axes that `part_of` knows: rows and columns of tiles first."""
        return np.memmap(self._path, self._dtype, "r+", self._start, self._layout)

    def write(self, box: Box, values: NDArray[Any]) -> None:
        """Set a part."""
        mapped, values = self.array, to_bytes(values) if self._picture else values
        for row, column, here, there in _tiles(box):
            mapped[row, column][there] = values[here]


def part_of(array: NDArray[Any], box: Box) -> NDArray[Any]:
    """Return a copy of a part of a field; what is read of a file does not stay in memory."""
    if not isinstance(array, np.memmap):
        return np.array(array[box.slices])
    assert array.filename is not None
    again: NDArray[Any] = np.memmap(array.filename, array.dtype, "r", array.offset, array.shape)
    if array.ndim < 4:
        return np.array(again[box.slices])
    part = np.empty((box.height, box.width, *array.shape[4:]), array.dtype)
    for row, column, here, there in _tiles(box):
        part[here] = again[row, column][there]
    return part


def _tiles(box: Box) -> Iterator[tuple[int, int, Any, Any]]:
    """Return row and column of each tile of a file, and the part that it shares with a box."""
    for row in range(box.y // TILE, -(-(box.y + box.height) // TILE)):
        for column in range(box.x // TILE, -(-(box.x + box.width) // TILE)):
            y, x = row * TILE, column * TILE
            top, bottom = max(y, box.y), min(y + TILE, box.y + box.height)
            left, right = max(x, box.x), min(x + TILE, box.x + box.width)
            here = np.s_[top - box.y : bottom - box.y, left - box.x : right - box.x]
            yield row, column, here, np.s_[top - y : bottom - y, left - x : right - x]


class FileCanvases:
    """Makes fields in files: a `NewCanvas`, and a context in which the files exist.

    Parameters
    ----------
    paths : mapping of str to path
        Where fields of the result go, by their names. A file gets its name when `close` is called;
        if the context is left before, it is removed. Fields that are not named go to temporary
        files, or stay in memory if they are small.
    folder : path
        Where temporary files are. They are removed in the end; what is still mapped then stays
        readable for as long as it is.
    """

    def __init__(
        self, paths: Mapping[str, str | os.PathLike[str]], folder: str | os.PathLike[str]
    ) -> None:
        self._paths, self._folder = dict(paths), folder
        self._stack = ExitStack()
        self._temporary: dict[str, Path] = {}

    def __enter__(self) -> FileCanvases:
        with ExitStack() as stack:
            for name, path in self._paths.items():
                self._temporary[name] = Path(stack.enter_context(atomic_write(path)).name)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def close(self) -> None:
        """Give the files their names; they are complete."""
        self._stack.close()

    def __call__(self, name: str, shape: tuple[int, ...], dtype: DType) -> Canvas:
        """Return a new field."""
        if name in self._paths:
            return self._named(name, shape, dtype)
        if not name and math.prod(shape) * np.dtype(dtype).itemsize <= IN_MEMORY:
            return MemoryCanvas(name, shape, dtype)
        return MappedCanvas(
            self._stack.enter_context(temporary_file(self._folder)), 0, shape, dtype
        )

    def _named(self, name: str, shape: tuple[int, ...], dtype: DType) -> Canvas:
        """Return a new field in a file of which the suffix decides the format."""
        path, suffix = self._temporary[name], PurePath(self._paths[name]).suffix.lower()
        if suffix == ".npy":
            np.lib.format.open_memmap(path, "w+", np.dtype(dtype), shape)
            return MappedCanvas(path, np.load(path, mmap_mode="r").offset, shape, dtype)
        if suffix == ".flo":
            return MappedCanvas(path, new_flo(path, shape), shape, dtype)
        return TiffCanvas(path, shape)
