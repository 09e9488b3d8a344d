"""Fields of the size of the images, in memory or in files, which are written part by part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._room import empty
from hamflow.pipeline.box import Box


class Canvas:
    """A new field in memory, or in a file of NumPy's (``.npy``).

    A file is mapped anew for each part and unmapped at once, so that what is written does not stay
    in the memory of the process.

    Parameters
    ----------
    shape : tuple of int
        Of the field: height, width, and channels if there are several.
    dtype : type
        Of its numbers.
    path : Path, optional
        The file to make; without it the field is in memory.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: type[np.generic], path: Path | None = None
    ) -> None:
        if path is None:
            self.array: NDArray[Any] = empty(shape, dtype)
        else:
            np.lib.format.open_memmap(path, "w+", np.dtype(dtype), shape)
            self.array = np.load(path, mmap_mode="r")

    def write(self, box: Box, values: NDArray[Any]) -> None:
        """Set a part."""
        _mapped(self.array, "r+")[box.slices] = values


def part_of(array: NDArray[Any], box: Box) -> NDArray[Any]:
    """Return a copy of a part of a field; what is read of a file does not stay in memory."""
    return np.array(_mapped(array, "r")[box.slices])


def _mapped(array: NDArray[Any], mode: str) -> NDArray[Any]:
    if not isinstance(array, np.memmap):
        return array
    again: NDArray[Any] = np.load(array.filename, mmap_mode=mode)  # type: ignore[arg-type]
    return again
