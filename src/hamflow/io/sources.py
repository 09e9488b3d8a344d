"""Images that are read part by part, because the whole of them may not fit into memory."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hamflow._check import pixel_array
from hamflow._types import ImageLike, Pixels
from hamflow.io.images import as_colors


class ImageSource(Protocol):
    """An image of which parts can be read."""

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""

    @property
    def stored(self) -> int:
        """How many bytes of memory it takes as long as it exists."""

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

    @property
    def stored(self) -> int:
        """How many bytes of memory it takes."""
        return self._array.nbytes

    def read(self, rows: slice, columns: slice) -> Pixels:
        """Return a part."""
        return as_colors(self._array[rows, columns], self._name)


def open_source(image: ImageLike, name: str = "image") -> ImageSource:
    """Return any image as one of which parts can be read."""
    return ArraySource(image, name)
