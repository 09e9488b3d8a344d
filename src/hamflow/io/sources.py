"""Images that are read part by part, because the whole of them may not fit into memory."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hamflow._check import pixel_array
from hamflow._types import ImageLike, Pixels
from hamflow.errors import FileError, InputError
from hamflow.io._reading import open_regular, reason
from hamflow.io.images import as_colors


class ImageSource(Protocol):
    """An image of which parts can be read."""

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""

    @property
    def in_file(self) -> bool:
        """Whether only the parts that are read get into memory."""

    def read(self, rows: slice, columns: slice) -> Pixels:
        """Return a part, (H, W, 3), of uint8 or uint16, or floating point in 0..1."""


class ArraySource:
    """An image in memory.

    Parameters
    ----------
    image : array_like, PIL image or path
        As `hamflow.io.images.as_colors` takes it.
    name : str
        What error messages call it.
    """

    in_file = False

    def __init__(self, image: ImageLike, name: str = "image") -> None:
        plain = isinstance(image, np.ndarray) and image.ndim == 2
        # Gray is repeated in three channels when it is read, not for the whole image.
        self._array: NDArray[Any] = pixel_array(image, name) if plain else as_colors(image, name)
        self._name = name
        self.read(slice(0, 1), slice(0, 1))  # the wrong type is an error at once

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self._array.shape[0], self._array.shape[1]

    def read(self, rows: slice, columns: slice) -> Pixels:
        """Return a part."""
        return as_colors(self._array[rows, columns], self._name)


class NpySource:
    """An image in a file of NumPy's (``.npy``), which is mapped for each part.

    Parameters
    ----------
    path : str or os.PathLike
        The file: an array (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), of uint8 or uint16, or
        floating point in 0..1.
    """

    in_file = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        shape = self._open().shape
        if len(shape) not in (2, 3) or 0 in shape or shape[2:] not in ((), (1,), (3,), (4,)):
            raise FileError(
                f"{self._path}: has the shape {shape}, but an image has (height, width) or "
                "(height, width, 3); bring its axes into this order."
            )
        self.shape = (shape[0], shape[1])
        self.read(slice(0, 1), slice(0, 1))

    def read(self, rows: slice, columns: slice) -> Pixels:
        """Return a part."""
        part = np.array(self._open()[rows, columns])
        try:
            return as_colors(part, self._path)
        except InputError as error:
            raise FileError(f"{self._path}: is not an image: {error}") from error

    def _open(self) -> NDArray[Any]:
        with open_regular(self._path):
            pass
        try:
            array: NDArray[Any] = np.load(self._path, mmap_mode="r", allow_pickle=False)
        # NumPy raises exceptions of many unrelated kinds for damaged files.
        except Exception as error:
            raise FileError(
                f"{self._path}: cannot be mapped as an array ({reason(error)}); save it again with "
                "numpy.save."
            ) from error
        return array


def open_source(image: ImageLike, name: str = "image") -> ImageSource:
    """Return any image as one of which parts can be read.

    Of ``.npy`` files and, if the package tifffile is installed, of ``.tif`` files only the parts
    that are read get into memory.
    """
    if isinstance(image, str | os.PathLike):
        suffix = PurePath(image).suffix.lower()
        if suffix == ".npy":
            return NpySource(image)
        if suffix in (".tif", ".tiff"):
            from hamflow.io.tiff import open_tiff  # noqa: PLC0415  (an extra)

            found = open_tiff(image)
            if found is not None:
                return found
    return ArraySource(image, name)
