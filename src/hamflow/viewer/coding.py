"""How arrays are written into a page: as small as it goes, and quick to read by a browser.

``page/coding.js`` is the other side.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._types import Volume

_LARGEST = 32767
UNKNOWN = -32768
"""What stands for NaN."""
_FINEST = 2.0**-10  # pixels; finer steps than this are noise
# Finer steps could not be seen in a curve, and 256 of them would take a third more room.
_STEPS = 63


@dataclass
class Blobs:
    """The large parts of a page, each in an element of its own, so that it is read when needed."""

    texts: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, data: bytes) -> int:
        """Keep bytes as they are, and return their number."""
        text = base64.b64encode(data).decode("ascii")
        self.texts.append(text)
        self.size += len(text)
        return len(self.texts) - 1


def packed(array: NDArray[Any]) -> bytes:
    """Return the bytes of an array, little endian, deflated."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return zlib.compress(little.tobytes(), 6)


def packed_differences(values: NDArray[np.int16]) -> bytes:
    """Return 16-bit numbers (H, W) or (H, W, C), deflated.

    As differences to the left neighbor, all low bytes before all high bytes: neighbors are alike,
    so the high bytes are nearly all the same.
    """
    different = values.copy()
    with np.errstate(over="ignore"):
        different[:, 1:] -= values[:, :-1]  # wraps around, and so does the sum
    words = different.reshape(-1).view(np.uint16)
    halves = [part.astype(np.uint8).tobytes() for part in (words & 255, words >> 8)]
    return zlib.compress(b"".join(halves), 6)


def as_steps(values: NDArray[np.floating[Any]]) -> tuple[NDArray[np.int16], float]:
    """Return numbers as multiples of a step, a power of two that is as fine as 16 bits allow."""
    known = np.isfinite(values)
    largest = float(np.abs(values[known]).max(initial=0.0))
    step = _FINEST
    while largest / step > _LARGEST:
        step *= 2
    whole = np.full(values.shape, UNKNOWN, np.int16)
    whole[known] = np.rint(values[known] / step)
    return whole, step


def as_ranges(slack: Volume, unit: float) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return slacks (H, W, D) in 64 steps for each pixel, and their ranges.

    Returns
    -------
    rounded : (H, W, D) uint8
    ranges : (H, W, 2) float32
        Least value and step of each pixel, in bits: the slack is the least value, and so many steps
        more.
    """
    values = slack.astype(np.float32) * np.float32(unit)
    least, most = values.min(axis=2), values.max(axis=2)
    step = (most - least) / np.float32(_STEPS)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(step[..., None] > 0, (values - least[..., None]) / step[..., None], 0)
    return np.rint(shares).astype(np.uint8), np.stack([least, step], axis=2)
