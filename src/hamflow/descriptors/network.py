"""Learned descriptors: a network describes images of any size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_intensities
from hamflow._types import Bits, Image, Phi
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.integer import IntegerNetwork
from hamflow.descriptors.packing import pack_bits
from hamflow.descriptors.session import Runner
from hamflow.descriptors.tiles import default_tile_pixels, network_input, plan_tiles
from hamflow.descriptors.weights import Network, Variant
from hamflow.errors import InputError


class NetworkDescriptor:
    """One variant of a network; see `Descriptor` and `load_model`.

    The native kernels compute the 8-bit variant, onnxruntime the one in floating point: in tiles,
    but the whole image at once for a coarse network.
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
                f"The model {name!r} has no variant {kind!r}; make it with 'hamflow export "
                f"--variant {kind}'."
            )
        self.name = name
        self.architecture: Architecture = network.architecture
        self.cell = network.architecture.cell
        self.metadata = network.metadata(kind)
        self.fingerprint = f"{Path(name).name} {kind} sha256:{network.digest[:16]}"
        self._tile_pixels = tile_pixels
        self._threads = threads
        self._integer = self._runner = None
        if kind == "int8":
            self._integer = IntegerNetwork(network.architecture, network.weights, network.scales)
        else:
            self._runner = Runner(name, network.onnx(), threads)

    def describe(self, image: ArrayLike) -> Phi:
        """Return the descriptors: (H, W, m) float32 from -1 to 1; see `Descriptor.describe`."""
        array = as_intensities(image)
        rows, columns = self._grid(array)
        if self._integer is not None:
            phi = self._integer.describe(self._whole_cells(array), self._threads or 0)
            return phi[:rows, :columns]
        phi = np.empty((rows, columns, self.architecture.m), np.float32)
        for down, across, part in self._tiles(array):
            phi[down, across] = part
        return phi

    def bits(self, image: ArrayLike) -> Bits:
        """Return the packed signs: (H, W) uint64; see `Descriptor.bits`."""
        if self.architecture.m != 64:
            raise InputError(
                f"The model {self.name!r} has descriptors of {self.architecture.m} components, "
                "but bits need 64; use describe."
            )
        array = as_intensities(image)
        rows, columns = self._grid(array)
        if self._integer is not None:
            words = self._integer.bits(self._whole_cells(array), self._threads or 0)
            return np.ascontiguousarray(words[:rows, :columns])
        bits: Bits = np.empty((rows, columns), np.uint64)
        # Packed tile by tile: the floats of a whole 4K frame take two gigabytes.
        for down, across, part in self._tiles(array):
            bits[down, across] = pack_bits(part)
        return bits

    def release(self) -> None:
        """Free the memory that onnxruntime keeps; the next image takes some milliseconds longer."""
        if self._runner is not None:
            self._runner.release()

    def __repr__(self) -> str:
        return f"<hamflow descriptor {self.name!r}>"

    def _grid(self, array: NDArray[Any]) -> tuple[int, int]:
        """Return height and width of the field of descriptors."""
        return -(-array.shape[0] // self.cell), -(-array.shape[1] // self.cell)

    def _whole_cells(self, array: NDArray[Any]) -> Image:
        """Return the image as (H, W, 3) float32 from 0 to 1, for a coarse network continued."""
        scale = np.iinfo(array.dtype).max if array.dtype.kind == "u" else 1
        planes = np.atleast_3d(array).astype(np.float32, copy=False)
        if scale != 1:
            planes = planes / np.float32(scale)
        if planes.shape[2] == 1:
            planes = planes.repeat(3, axis=2)
        if self.cell > 1:
            planes = np.pad(planes, self._beyond(array), mode="edge")
        return np.ascontiguousarray(planes)

    def _beyond(self, array: NDArray[Any]) -> list[tuple[int, int]]:
        """Return by how much a coarse network continues an image: it halves it three times."""
        whole = 2 * self.cell
        return [(0, -side % whole) for side in array.shape[:2]] + [(0, 0)]

    def _tiles(self, array: NDArray[Any]) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        """Yield the rows, the columns and the descriptors of each tile."""
        assert self._runner is not None
        height, width = array.shape[:2]
        if self.cell > 1:  # sees the whole image, and is small: all at once
            beyond = self._beyond(array)[: array.ndim]
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
