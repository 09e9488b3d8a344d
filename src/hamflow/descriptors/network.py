"""Learned descriptors: a network describes images of any size in tiles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_intensities
from hamflow._types import Bits, Phi
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.packing import pack_bits
from hamflow.descriptors.session import Runner
from hamflow.descriptors.tiles import default_tile_pixels, network_input, plan_tiles
from hamflow.descriptors.weights import Network, Variant
from hamflow.errors import InputError


class NetworkDescriptor:
    """One variant of a network, computed by onnxruntime; see `Descriptor` and `load_model`.

    A coarse network computes the whole image at once, and `tile_pixels` does not matter.
    """

    def __init__(
        self,
        name: str,
        network: Network,
        variant: Variant | None = None,
        threads: int | None = None,
        tile_pixels: int | None = None,
    ) -> None:
        kind = variant or network.usual_variant
        if kind not in network.variants:
            raise InputError(
                f"The model {name!r} has no variant {kind!r}; make it with 'hamflow export --int8'."
            )
        self.name = name
        self.architecture: Architecture = network.architecture
        self.cell = network.architecture.cell
        self.metadata = network.metadata(kind)
        self.fingerprint = f"{Path(name).name} {kind} sha256:{network.digest[:16]}"
        self._tile_pixels = tile_pixels
        self._runner = Runner(name, network.onnx(kind), threads)

    def describe(self, image: ArrayLike) -> Phi:
        """Return the descriptors: (H, W, m) float32 from -1 to 1; see `Descriptor.describe`."""
        array = as_intensities(image)
        phi: Phi = np.empty((*self._grid(array), self.architecture.m), np.float32)
        for rows, columns, part in self._tiles(array):
            phi[rows, columns] = part
        return phi

    def bits(self, image: ArrayLike) -> Bits:
        """Return the packed signs: (H, W) uint64; see `Descriptor.bits`."""
        if self.architecture.m != 64:
            raise InputError(
                f"The model {self.name!r} has descriptors of {self.architecture.m} components, "
                "but bits need 64; use describe."
            )
        array = as_intensities(image)
        bits: Bits = np.empty(self._grid(array), np.uint64)
        # Packed tile by tile: the floats of a whole 4K frame take two gigabytes.
        for rows, columns, part in self._tiles(array):
            bits[rows, columns] = pack_bits(part)
        return bits

    def release(self) -> None:
        """Free the memory that onnxruntime keeps; the next image takes some milliseconds longer."""
        self._runner.release()

    def __repr__(self) -> str:
        return f"<hamflow descriptor {self.name!r}>"

    def _grid(self, array: NDArray[Any]) -> tuple[int, int]:
        """Return height and width of the field of descriptors."""
        cell = self.architecture.cell
        return -(-array.shape[0] // cell), -(-array.shape[1] // cell)

    def _tiles(self, array: NDArray[Any]) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        """Yield the rows, the columns and the descriptors of each tile."""
        height, width = array.shape[:2]
        cell = self.architecture.cell
        if cell > 1:  # sees the whole image, and is small: all at once
            whole = 2 * cell  # it halves the image once more than its cells do
            beyond = [(0, -height % whole), (0, -width % whole), (0, 0)][: array.ndim]
            phi = self._runner.run(network_input(np.pad(array, beyond, mode="edge")))
            inside = tuple(slice(side) for side in self._grid(array))
            yield inside[0], inside[1], phi[0][inside]
            return
        pixels = self._tile_pixels or default_tile_pixels(self.architecture)
        for rows, columns in plan_tiles(height, width, self.architecture, pixels):
            tile = array[rows.low : rows.high, columns.low : columns.high]
            phi = self._runner.run(network_input(tile))
            yield (
                slice(rows.start, rows.stop),
                slice(columns.start, columns.stop),
                phi[0, rows.inner, columns.inner],
            )
