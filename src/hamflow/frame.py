"""One image, and all that is computed from it alone: once, however many pairs it is part of."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hamflow._check import as_intensities
from hamflow._scale import reduced
from hamflow._types import ImageLike
from hamflow.descriptors import Descriptor
from hamflow.errors import InputError
from hamflow.io import read_image
from hamflow.refinement.variational import features


class Frame:
    """An image at several scales, with its descriptors and features, each made when asked for.

    Parameters
    ----------
    image : array_like, PIL image or path
        (H, W), (H, W, 1), (H, W, 3) or (H, W, 4); uint8, uint16, or floating point in 0..1.
    model : Descriptor
        What describes its pixels.
    name : str
        What error messages call it.
    """

    def __init__(self, image: ImageLike, model: Descriptor, name: str = "image") -> None:
        self.pixels = as_pixels(image, name)
        self._model = model
        self._scaled: dict[int, NDArray[np.float32]] = {1: self.pixels}
        self._bits: dict[int, NDArray[np.uint64]] = {}
        self._features: dict[tuple[int, float], NDArray[np.float32]] = {}

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.pixels.shape[0], self.pixels.shape[1]

    def at(self, factor: int) -> NDArray[np.float32]:
        """Return the image reduced by a whole factor; sides are rounded up."""
        if factor not in self._scaled:
            height, width = self.shape
            # Incomplete boxes are completed by the outermost pixels.
            padding = ((0, -height % factor), (0, -width % factor), (0, 0))
            self._scaled[factor] = reduced(np.pad(self.pixels, padding, mode="edge"), factor)
        return self._scaled[factor]

    def bits(self, factor: int) -> NDArray[np.uint64]:
        """Return the descriptors of the reduced image."""
        if factor not in self._bits:
            self._bits[factor] = self._model.bits(self.at(factor))
        return self._bits[factor]

    def features(self, factor: int, blur: float) -> NDArray[np.float32]:
        """Return what the refinement compares, at the reduced size."""
        if (factor, blur) not in self._features:
            self._features[factor, blur] = features(self.at(factor), blur)
        return self._features[factor, blur]


def as_pixels(image: ImageLike, name: str = "image") -> NDArray[np.float32]:
    """Return any image as (H, W, 3) float32 in 0..1."""
    if isinstance(image, str | os.PathLike):
        array: NDArray[Any] = read_image(image)
    elif isinstance(image, Image.Image) and not image.mode.startswith(("1", "I", "F")):
        array = np.asarray(image.convert("RGB"))  # palettes, CMYK, gray with alpha
    else:
        array = np.asarray(image)
    if array.ndim == 3 and array.shape[2] in (1, 4):
        array = array[:, :, 0] if array.shape[2] == 1 else array[:, :, :3]
    if isinstance(image, Image.Image) and image.mode.startswith("I"):
        # Pillow's modes for 16 bits; int32 holds them, too.
        if array.min() < 0 or array.max() > 65535:
            raise InputError(f"{name} must have values from 0 to 65535.")
        array = array.astype(np.uint16)
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * np.uint8(255)
    array = as_intensities(array.astype(array.dtype.newbyteorder("="), copy=False), name)
    if array.dtype.kind == "u":
        array = array.astype(np.float32) / np.float32(np.iinfo(array.dtype).max)
    color = np.repeat(array[..., None], 3, axis=2) if array.ndim == 2 else array
    return np.ascontiguousarray(color, np.float32)
