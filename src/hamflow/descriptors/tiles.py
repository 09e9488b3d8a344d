"""Tiles of bounded memory for images of any size; the result does not depend on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow.descriptors.architecture import Architecture
from hamflow.errors import InputError

_TILE_BYTES = 2**29  # for four times the widest layer; onnxruntime needs two to seven times
_MOST_COLUMNS = 64  # ways to cut an image that are tried


class Span(NamedTuple):
    """Rows or columns of a tile: `start` to `stop` are kept, and `low` to `high` are read."""

    low: int
    start: int
    stop: int
    high: int

    @property
    def inner(self) -> slice:
        """The part to keep, relative to the part that was read."""
        return slice(self.start - self.low, self.stop - self.low)


def plan_tiles(
    height: int, width: int, architecture: Architecture, tile_pixels: int
) -> list[tuple[Span, Span]]:
    """Cut an image into tiles of about the same size, such that they overlap least.

    Each tile also reads the receptive field around it, so the result does not depend on the tiles.
    """
    margin = architecture.margin
    least = (2 * margin + 1) ** 2
    if tile_pixels < least:
        raise InputError(
            f"tile_pixels must be at least {least} for this network, but is {tile_pixels}."
        )
    best: tuple[int, int, int] | None = None
    count = 0
    while best is None or count < _MOST_COLUMNS:
        count += 1
        core_width = -(-width // count)
        tile_width = min(width, core_width + 2 * margin)
        room = tile_pixels // tile_width
        core_height = height if room >= height else room - 2 * margin
        if core_height < 1:
            continue
        rows = -(-height // core_height)
        core_height = -(-height // rows)
        cost = count * rows * tile_width * min(height, core_height + 2 * margin)
        if best is None or cost < best[0]:
            best = (cost, core_height, core_width)
        if core_width == 1:
            break
    return [
        (rows, columns)
        for rows in _spans(height, best[1], margin)
        for columns in _spans(width, best[2], margin)
    ]


def _spans(size: int, core: int, margin: int) -> list[Span]:
    return [
        Span(
            max(0, start - margin),
            start,
            min(size, start + core),
            min(size, start + core + margin),
        )
        for start in range(0, size, core)
    ]


def network_input(tile: NDArray[Any]) -> NDArray[np.float32]:
    """Return a part of an image as 1×3×H×W from 0 to 1."""
    scale = np.iinfo(tile.dtype).max if tile.dtype.kind == "u" else 1
    planes = np.atleast_3d(tile).transpose(2, 0, 1)
    x = planes.astype(np.float32) / np.float32(scale)
    return np.ascontiguousarray(np.broadcast_to(x, (1, 3, *x.shape[1:])))


def default_tile_pixels(architecture: Architecture) -> int:
    """Return how many pixels onnxruntime can process at a time in less than a gigabyte."""
    inner = max(out for out, _, _ in architecture.convolutions().values())
    least = (2 * architecture.margin + 4) ** 2
    return max(least, _TILE_BYTES // (4 * 4 * max(inner, architecture.m)))
