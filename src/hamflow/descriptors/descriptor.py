"""The protocol of all descriptors, and the base class of hand-crafted ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from hamflow._types import Bits, Phi
from hamflow.descriptors.architecture import Architecture


@runtime_checkable
class Descriptor(Protocol):
    """Describes every pixel of an image, so that pixels of two images can be compared."""

    @property
    def name(self) -> str:
        """The name or file that it was loaded by."""

    @property
    def architecture(self) -> Architecture | None:
        """The network; None for a hand-crafted descriptor."""

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of its file."""

    @property
    def fingerprint(self) -> str:
        """Name and version, or hash of the file: different for every other descriptor."""

    def describe(self, image: ArrayLike) -> Phi:
        """Return the descriptors: (H, W, m) float32 from -1 to 1; their signs are the bits.

        H and W are those of the image; those of its grid of 4×4 cells for the coarse network.

        Parameters
        ----------
        image : (H, W) or (H, W, 3) array_like
            uint8, uint16, or floating point from 0 to 1; red, green, blue.
        """

    def bits(self, image: ArrayLike) -> Bits:
        """Return the signs of the descriptors, packed: (H, W) uint64, or (H, W, 2) for 128 bits.

        Bit k, counted from the least significant one, is set where component k is positive; a
        second word has the components from 64 on.
        """


class HandCraftedDescriptor(ABC):
    """Base of descriptors that need no file. A subclass has a name, a version and `bits`.

    With a line in `hamflow.descriptors.model.HAND_CRAFTED` it can be chosen by its name. Increase
    the version when the bits change: then results of the old bits are not taken for new ones.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    architecture = None

    @property
    def metadata(self) -> dict[str, str]:
        """Empty, because there is no file."""
        return {}

    @property
    def fingerprint(self) -> str:
        """Name and version."""
        return f"{self.name} version {self.version}"

    @abstractmethod
    def bits(self, image: ArrayLike) -> Bits:
        """Return 64 bits for each pixel, (H, W) uint64; see `Descriptor.bits`."""

    def describe(self, image: ArrayLike) -> Phi:
        """Return the bits as +1 and -1: (H, W, 64) float32."""
        octets = self.bits(image)[..., None].astype("<u8").view(np.uint8)
        signs = np.unpackbits(octets, axis=2, bitorder="little").astype(np.float32)
        return 2 * signs - 1

    def __repr__(self) -> str:
        return f"<hamflow descriptor {self.name!r}>"
