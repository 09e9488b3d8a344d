"""What every descriptor can do, learned or hand-crafted."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from hamflow._types import Bits, Phi
from hamflow.descriptors.architecture import Architecture


@runtime_checkable
class Descriptor(Protocol):
    """Something that describes the pixels of an image, so that they can be compared.

    A class of one's own needs no base class: these attributes and methods are enough. With a line
    in `hamflow.descriptors.model.HAND_CRAFTED` it can be chosen by its name.
    """

    @property
    def name(self) -> str:
        """What it was loaded as."""

    @property
    def architecture(self) -> Architecture | None:
        """The network; None for a hand-crafted descriptor."""

    @property
    def metadata(self) -> dict[str, str]:
        """What its file says about it."""

    @property
    def fingerprint(self) -> str:
        """Name and version, or hash of the file: what tells it from all other descriptors."""

    def describe(self, image: ArrayLike) -> Phi:
        """Return the descriptors: (H, W, m) float32 in -1..1; their signs are the bits.

        Parameters
        ----------
        image : (H, W) or (H, W, 3) array_like
            uint8, uint16, or floating point with values in 0..1; red, green, blue.
        """

    def bits(self, image: ArrayLike) -> Bits:
        """Return the signs of the descriptors, packed: (H, W) uint64.

        Bit k, counted from the least significant one, is set where component k is positive.

        Parameters
        ----------
        image : (H, W) or (H, W, 3) array_like
            As for `describe`.
        """
