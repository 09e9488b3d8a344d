"""One image, and all that is computed from it alone: once, however many pairs it is part of."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from hamflow._scale import reduced
from hamflow._types import Bits, Image, ImageLike
from hamflow.descriptors import Descriptor
from hamflow.descriptors.architecture import CELL
from hamflow.io.images import as_colors

T = TypeVar("T")


class Frame:
    """An image at several scales, with its descriptors; each is computed when first asked for.

    `hamflow.Estimator.frame` makes it. A frame that is part of several pairs (in a video, of two)
    is prepared only once.

    Parameters
    ----------
    image : array_like, PIL image or path
        (H, W), (H, W, 1), (H, W, 3) or (H, W, 4); uint8, uint16, or floating point in 0..1.
    descriptor : Descriptor
        What describes its pixels.
    name : str
        What error messages call it.
    coarse : Descriptor, optional
        What describes its cells of 4×4 pixels.
    """

    def __init__(
        self,
        image: ImageLike,
        descriptor: Descriptor,
        name: str = "image",
        coarse: Descriptor | None = None,
    ) -> None:
        self.pixels = as_pixels(image, name)
        self._descriptor = descriptor
        self._coarse = coarse
        self._kept: dict[Hashable, Any] = {}

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.pixels.shape[0], self.pixels.shape[1]

    def at(self, scale: int) -> Image:
        """Return the image reduced by a whole factor; sides are rounded up."""
        if scale == 1:
            return self.pixels
        return self.kept(("image", scale), lambda: reduced(self.pixels, scale))

    def bits(self, scale: int) -> Bits:
        """Return the descriptors of the reduced image."""
        return self.kept(("bits", scale), lambda: self._descriptor.bits(self.at(scale)))

    def wide_bits(self, scale: int) -> Bits:
        """Return the descriptors of the reduced image, with the coarse ones beside: (H, W, 2)."""
        return np.stack(
            [self.bits(scale), self.kept(("cells", scale), lambda: self._cells(scale))], 2
        )

    def _cells(self, scale: int) -> Bits:
        """Return the coarse descriptor of each pixel of the reduced image."""
        assert self._coarse is not None
        cells = self._coarse.bits(self.at(max(1, scale // CELL)))
        if scale >= CELL:
            return cells
        # Several pixels lie in one cell.
        height, width = self.at(scale).shape[:2]
        times = CELL // scale
        return cells.repeat(times, axis=0).repeat(times, axis=1)[:height, :width]

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returned when it was first called for this key.

        With this, a later stage keeps what it computes from this frame alone.
        """
        if key not in self._kept:
            self._kept[key] = make()
        value: T = self._kept[key]
        return value


def as_pixels(image: ImageLike, name: str = "image") -> Image:
    """Return any image as (H, W, 3) float32 in 0..1."""
    array = as_colors(image, name)
    if array.dtype.kind == "u":
        array = array.astype(np.float32) / np.float32(np.iinfo(array.dtype).max)
    return np.ascontiguousarray(array, np.float32)
