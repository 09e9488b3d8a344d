"""The solver out of core: its volumes are in temporary files, of which parts are in memory.

Every operation is the native one, part by part: strips of rows, or blocks of columns for passes
along columns. No part depends on another one, so the result has the same bytes. Whole in memory are
only fields of the size of the images, and the costs that a prior gives to the labels of one plane.
"""

from __future__ import annotations

import math
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._room import empty
from hamflow._types import Field, Labels
from hamflow.crf.backend import Backend, Fields, Plane, Unary, add_costs, send_message
from hamflow.errors import file_access
from hamflow.io._atomic import unnamed_file
from hamflow.matching.strips import cut_strip, strips
from hamflow.window import Window

PARTS = 1 << 22, 1 << 24
"""Bytes of a part of a volume that is in memory: an eighth of it, but at least and at most this."""
# Chains that the kernels solve side by side: blocks of columns are multiples of it.
_ABREAST = 32


def part_of(size: int, least: int, most: int) -> int:
    """Return how many bytes of a volume of so many are in memory."""
    return min(max(size // 8, least), most)


class StreamedVolume:
    """A volume (H, W, D) in a file without a name, which begins as zeros.

    Reading and writing leave nothing in the memory of the process, as a mapped file would.
    """

    def __init__(self, shape: tuple[int, int, int], dtype: type[Any]) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.size = math.prod(shape) * self.dtype.itemsize  # bytes
        self._file = unnamed_file(self.size)
        weakref.finalize(self, self._file.close)
        self._pixel = shape[2] * self.dtype.itemsize  # bytes
        self._row = shape[1] * self._pixel

    def rows(self, first: int, last: int) -> NDArray[Any]:
        """Return some rows, as a copy."""
        values = empty((last - first, *self.shape[1:]), self.dtype.type)
        with _told():
            self._transfer(self._file.readinto, first * self._row, _bytes(values))
        return values

    def write_rows(self, first: int, values: NDArray[Any]) -> None:
        """Set the rows from `first` on."""
        with _told():
            self._transfer(self._file.write, first * self._row, _bytes(values))

    def columns(self, first: int, last: int) -> NDArray[Any]:
        """Return some columns, as a copy."""
        values = empty((self.shape[0], last - first, self.shape[2]), self.dtype.type)
        self._transfer_columns(self._file.readinto, first, values)
        return values

    def write_columns(self, first: int, values: NDArray[Any]) -> None:
        """Set the columns from `first` on."""
        self._transfer_columns(self._file.write, first, values)

    def mapped(self) -> NDArray[Any]:
        """Return the volume as an array of which only what is looked at gets into memory."""
        return np.memmap(self._file, self.dtype, "r+", shape=self.shape)

    def _transfer_columns(self, move: Any, first: int, values: NDArray[Any]) -> None:
        piece, flat = values.shape[1] * self._pixel, _bytes(values)
        with _told():
            for row in range(self.shape[0]):
                place = row * self._row + first * self._pixel
                self._transfer(move, place, flat[row * piece : (row + 1) * piece])

    def _transfer(self, move: Any, place: int, memory: memoryview) -> None:
        """Read or write at a place of the file; a system call may do less than it is asked for."""
        self._file.seek(place)
        done = move(memory)
        while done < len(memory):
            count = move(memory[done:])
            if not count:
                raise OSError(f"ends at byte {place + done}")
            done += count


def _told() -> AbstractContextManager[None]:
    """Say in one sentence what is wrong with the disk."""
    return file_access(tempfile.gettempdir(), "cannot use a temporary file")


def _bytes(values: NDArray[Any]) -> memoryview:
    return memoryview(values.reshape(-1).view(np.uint8))  # type: ignore[arg-type]


class StreamedBackend(Backend):
    """The compiled kernels on volumes in temporary files, part by part.

    Parameters
    ----------
    parts : (int, int)
        Bytes of a part of a volume, at least and at most; a row or a column is always in memory.
    """

    def __init__(self, parts: tuple[int, int] = PARTS) -> None:
        self._parts = parts

    def empty(self, shape: tuple[int, int, int], dtype: type[Any]) -> Any:
        """Return a volume of zeros."""
        return StreamedVolume(shape, dtype)

    def zeros(self, shape: tuple[int, int, int], dtype: type[Any]) -> Any:
        """Return a volume of zeros."""
        return StreamedVolume(shape, dtype)

    def copy_from(self, volume: Any, values: NDArray[Any]) -> None:
        """Set a volume to the values of an array."""
        for first, last in self._strips(volume):
            volume.write_rows(first, np.ascontiguousarray(values[first:last]))

    def to_numpy(self, volume: Any) -> NDArray[Any]:
        """Return a volume as an array that is mapped; the file exists for as long as the array."""
        mapped: NDArray[Any] = volume.mapped()
        return mapped

    def message(
        self,
        fields: Fields,
        window: Window,
        cost: Any,
        *,
        to: Plane,
        lam: Any,
        out: Any,
        margin: float = 0.0,
        unary: Unary | None = None,
    ) -> None:
        """Write ``min [c - lam]`` over the sender's labels to `out`."""
        for first, last in self._strips(lam, out):
            sent = lam.rows(first, last)
            if unary is not None:
                add_costs(sent, unary[0].rows(first, last), -unary[2])
            received = empty((last - first, *out.shape[1:]), out.dtype.type)
            strip, reached = cut_strip(fields, window, first, last)
            send_message(strip, reached, cost, to=to, lam=sent, out=received, margin=margin)
            if unary is not None:
                add_costs(received, unary[1].rows(first, last), unary[2])
            out.write_rows(first, received)

    def chain_pass(
        self,
        lam: Any,
        hold: Any,
        slack: Any,
        edges: NDArray[Any],
        shares: NDArray[Any] | None,
        *,
        vertical: bool,
        reverse: bool,
        reach: int,
        fresh: bool,
    ) -> float:
        """Run one pass of the dual solver over all rows or columns; return the bound in units."""
        bound = 0.0  # a sum of whole numbers, in any order
        way: dict[str, Any] = {"vertical": vertical, "reverse": reverse, "reach": reach}
        for first, last in self._blocks(lam) if vertical else self._strips(lam):
            read, write = ("columns", "write_columns") if vertical else ("rows", "write_rows")
            costs = getattr(lam, read)(first, last)
            held = empty(costs.shape, costs.dtype.type)
            if not fresh:
                held = getattr(hold, read)(first, last)
            found = None if slack is None else empty(costs.shape, costs.dtype.type)
            part = edges[:, first:last] if vertical else edges[first:last]
            bound += super().chain_pass(
                costs, held, found, np.ascontiguousarray(part), shares, fresh=fresh, **way
            )
            getattr(hold, write)(first, held)
            if found is not None:  # only then lam is another one
                getattr(slack, write)(first, found)
                getattr(lam, write)(first, costs)
        return bound

    def best_labels(self, slack: Any, first: int) -> Labels:
        """Return the labels of least slack; ties go to the smallest displacement."""
        find, parts = super().best_labels, self._strips(slack)
        return np.concatenate([find(slack.rows(start, end), first) for start, end in parts])

    def margins(self, slack: Any, labels: Labels) -> Field:
        """Return by how much labels that are more than one away from given ones have more slack."""
        find, parts = super().margins, self._strips(slack)
        return np.concatenate(
            [find(slack.rows(start, end), labels[start:end]) for start, end in parts]
        )

    def _strips(self, *volumes: StreamedVolume) -> Iterator[tuple[int, int]]:
        """Return first and last row of strips that are no larger than a part in any volume."""
        size = max(volume.size for volume in volumes)
        height = volumes[0].shape[0]
        return strips(height, part_of(size, *self._parts) * height // size)

    def _blocks(self, volume: StreamedVolume) -> Iterator[tuple[int, int]]:
        """Return first and last column of blocks that are no larger than a part."""
        width = volume.shape[1]
        columns = max(1, part_of(volume.size, *self._parts) * width // volume.size)
        columns = columns // _ABREAST * _ABREAST or columns
        for first in range(0, width, columns):
            yield first, min(first + columns, width)
