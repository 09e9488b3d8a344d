"""One image, and all that is computed from it alone: once, however many pairs it is part of."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from hamflow._room import empty
from hamflow._scale import reduced
from hamflow._types import Bits, Image, ImageLike
from hamflow.descriptors import Descriptor
from hamflow.descriptors.architecture import CELL
from hamflow.errors import InputError
from hamflow.io.images import as_colors
from hamflow.io.sources import ImageSource
from hamflow.pipeline.box import Box, cover

T = TypeVar("T")

# Pixels of the images that are read at a time to reduce them, and pixels of a reduced image that
# are described at a time with the margin that descriptors look at.
_READ, DESCRIBED, _MARGIN = 2**21, 2**19, 64


class Levels:
    """An image, or a part of one, at several scales.

    Parameters
    ----------
    pixels : (H, W, 3) array of float32
        From 0 to 1.
    """

    def __init__(self, pixels: Image) -> None:
        self.pixels = pixels
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

    def part(self, box: Box, scale: int = 1) -> Levels:
        """Return a part of the reduced image, given in its pixels."""
        return Levels(np.ascontiguousarray(self.at(scale)[box.slices]))

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returned when it was first called for this key.

        With this, a later stage keeps what it computes from this frame alone.
        """
        if key not in self._kept:
            self._kept[key] = make()
        value: T = self._kept[key]
        return value


class Frame(Levels):
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
        super().__init__(as_pixels(image, name))
        self._descriptor = descriptor
        self._coarse = coarse

    def described_by(self, descriptor: Descriptor, coarse: Descriptor | None) -> bool:
        """Return whether it has the bits of these descriptors; of `coarse` only if there is one.

        Two presets may have loaded the same descriptor, so not the objects are compared.
        """
        pairs = [(self._descriptor, descriptor), (self._coarse, coarse)]
        return all(
            wanted is None or (own is not None and own.fingerprint == wanted.fingerprint)
            for own, wanted in pairs
        )

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


class LargeFrame(Frame):
    """A frame whose image is read part by part, and is in memory only at reduced scales.

    Parameters
    ----------
    source : ImageSource
        The image.
    descriptor : Descriptor
        What describes its pixels.
    coarse : Descriptor, optional
        What describes its cells of 4×4 pixels.
    """

    def __init__(
        self, source: ImageSource, descriptor: Descriptor, coarse: Descriptor | None = None
    ) -> None:
        self.source = source
        self._descriptor = descriptor
        self._coarse = coarse
        self._kept: dict[Hashable, Any] = {}

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.source.shape

    def at(self, scale: int) -> Image:
        """Return the image reduced by a whole factor; sides are rounded up."""
        shape = [-(-side // scale) for side in self.shape]
        return self.kept(("image", scale), lambda: self._reduced(Box.of_shape(shape), scale))

    def bits(self, scale: int) -> Bits:
        """Return the descriptors of the reduced image."""
        return self.kept(("bits", scale), lambda: self._described(self.at(scale)))

    def part(self, box: Box, scale: int = 1) -> Levels:
        """Return a part of the reduced image, given in its pixels."""
        return Levels(self._reduced(box, scale))

    def _cells(self, scale: int) -> Bits:
        """Return the coarse descriptor of each pixel of the reduced image."""
        cells = super()._cells(scale)
        # Nothing else needs the image that large, which may be its full size.
        self._kept.pop(("image", max(1, scale // CELL)), None)
        return cells

    def _reduced(self, box: Box, scale: int) -> Image:
        """Return a part of the image reduced by a whole factor, computed in still smaller parts."""
        if scale == 1:
            return as_pixels(self.source.read(*box.slices))
        found: Image = empty((box.height, box.width, 3), np.float32)
        for inner in cover((box.height, box.width), max(1, _READ // scale**2), 0, 1):
            here = inner._replace(x=box.x + inner.x, y=box.y + inner.y)
            pixels = as_pixels(self.source.read(*here.enlarged(scale, self.shape).slices))
            found[inner.slices] = reduced(pixels, scale)
        return found

    def _described(self, image: Image) -> Bits:
        """Return the descriptors of an image, computed part by part."""
        bits = np.empty(image.shape[:2], np.uint64)
        for box in cover(bits.shape, DESCRIBED, _MARGIN, 1):
            outer = box.grown((_MARGIN, _MARGIN), (_MARGIN, _MARGIN), 1, bits.shape)
            part = self._descriptor.bits(np.ascontiguousarray(image[outer.slices]))
            bits[box.slices] = part[box.inside(outer).slices]
        return bits


def as_pixels(image: ImageLike, name: str = "image") -> Image:
    """Return any image as (H, W, 3) float32 in 0..1."""
    array = as_colors(image, name)
    if array.dtype.kind == "u":
        most = np.float32(np.iinfo(array.dtype).max)
        pixels: Image = empty(array.shape, np.float32)
        return np.divide(array, most, out=pixels, dtype=np.float32)
    return np.ascontiguousarray(array, np.float32)


def check_frames(frame0: Frame, frame1: Frame) -> None:
    """Raise an InputError unless two frames are prepared and of one size."""
    for name, frame in (("frame0", frame0), ("frame1", frame1)):
        if not isinstance(frame, Frame):
            raise InputError(
                f"{name} must be a Frame, which Estimator.frame(image) makes, but is of type "
                f"{type(frame).__name__}; for two images call Estimator.estimate."
            )
    if frame0.shape != frame1.shape:
        sizes = [f"{shape[1]}×{shape[0]}" for shape in (frame0.shape, frame1.shape)]
        raise InputError(
            f"The two images must have one size, but are {sizes[0]} and {sizes[1]} "
            "(width × height); crop or resize one of them."
        )


def check_described(
    frame0: Frame, frame1: Frame, descriptor: Descriptor, coarse: Descriptor | None
) -> None:
    """Raise an InputError unless two frames have the descriptors that are to be compared."""
    for name, frame in (("frame0", frame0), ("frame1", frame1)):
        if not frame.described_by(descriptor, coarse):
            raise InputError(
                f"{name} was prepared by an estimator of another preset or other settings; make it "
                "with this estimator's frame(image)."
            )
