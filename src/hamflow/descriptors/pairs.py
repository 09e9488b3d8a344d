"""A hand-crafted descriptor: 64 comparisons of pixel pairs in the neighborhood.

The pairs are drawn once, pseudo-randomly, similar to BRIEF [1]_, but each pair is short compared
with its distance from the center, and there are several scales of distances. Everything is computed
in whole numbers, so every machine gets the same bits.

.. [1] M. Calonder, V. Lepetit, C. Strecha, P. Fua: BRIEF: Binary robust independent elementary
   features. ECCV 2010.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_intensities
from hamflow._types import Bits
from hamflow.descriptors.descriptor import HandCraftedDescriptor
from hamflow.errors import InputError

_BITS = 64
_WORD = 2**64
_MAX_BLUR = 3  # each pass adds 4 bits to values of up to 16 bits, and all must fit into 32
_MAX_SCALE = 64


class _Pair(NamedTuple):
    """Two positions relative to the described pixel; the bit is set if the first is brighter."""

    y0: int
    x0: int
    y1: int
    x1: int


def pair_bits(
    image: ArrayLike, *, seed: int = 0, scales: Sequence[int] = (3, 6, 11), blur: int = 1
) -> NDArray[np.uint64]:
    """Describe every pixel by 64 comparisons of pixel pairs around it.

    Bit k is set if the first pixel of pair k is brighter than the second. In color images the
    pairs alternate between red, green and blue. Beyond the border the image is continued by its
    outermost pixels. Descriptors of two images can be compared if all other arguments are the same;
    rescaling the intensities does not change them, so 8 and 16 bits may be mixed.

    Parameters
    ----------
    image : (H, W) or (H, W, 3) array_like
        uint8, uint16, or floating point from 0 to 1.
    seed : int
        Another seed draws other pairs.
    scales : sequence of int
        The pairs alternate between these distances from the pixel, in pixels: the standard
        deviation of each coordinate is about the scale, and it never exceeds three times the
        scale. The two pixels of a pair are about half as far from each other.
    blur : int
        How often, from 0 to 3 times, the image is smoothed first, by the binomial filter
        (1, 2, 1)/4 in both directions. The standard deviation is the root of blur / 2.

    Returns
    -------
    bits : (H, W) uint64
        Bit k, counted from the least significant one, is comparison k.

    Raises
    ------
    InputError
        If the image or an argument is not as described.

    Examples
    --------
    >>> import numpy as np
    >>> from hamflow.descriptors import pair_bits
    >>> ramp = np.tile(np.arange(64, dtype=np.uint8), (64, 1))
    >>> bits = pair_bits(ramp)
    >>> bits.shape, bits.dtype, bool(bits[32, 31] == bits[30, 32])
    ((64, 64), dtype('uint64'), True)
    """
    planes = [_blurred(plane, blur) for plane in _planes(image)]
    pairs = _draw_pairs(int(seed), _check_scales(scales))
    height, width = planes[0].shape
    margin = max(abs(offset) for pair in pairs for offset in pair)
    planes = [np.pad(plane, margin, "edge") for plane in planes]

    def shifted(plane: NDArray[Any], y: int, x: int) -> NDArray[Any]:
        top, left = margin + y, margin + x
        return plane[top : top + height, left : left + width]

    packed = np.empty((height, width, _BITS // 8), np.uint8)
    brighter = np.empty((height, width), np.bool_)
    for byte in range(_BITS // 8):
        collected = np.zeros((height, width), np.uint8)
        for bit in range(8):
            number = 8 * byte + bit
            plane, pair = planes[number % len(planes)], pairs[number]
            np.greater(
                shifted(plane, pair.y0, pair.x0), shifted(plane, pair.y1, pair.x1), out=brighter
            )
            collected |= brighter.view(np.uint8) << bit
        packed[:, :, byte] = collected
    return packed.view("<u8")[:, :, 0].astype(np.uint64, copy=False)


class PairDescriptor(HandCraftedDescriptor):
    """The descriptor of `pair_bits` with its default settings."""

    name = "pairs"

    def bits(self, image: ArrayLike) -> Bits:
        """Return `hamflow.pair_bits` of the image."""
        return pair_bits(image)


def _planes(image: ArrayLike) -> list[NDArray[np.unsignedinteger[Any]]]:
    """Return the channels as unsigned integers of at most 16 bits."""
    array = as_intensities(image)
    if array.dtype.kind == "f":
        array = np.rint(array.astype(np.float64) * 65535).astype(np.uint16)
    return [array] if array.ndim == 2 else [array[:, :, channel] for channel in range(3)]


def _blurred(
    plane: NDArray[np.unsignedinteger[Any]], passes: int
) -> NDArray[np.unsignedinteger[Any]]:
    """Smooth without dividing: the result is 16 times larger after each pass, and exact."""
    if not 0 <= passes <= _MAX_BLUR:
        raise InputError(f"blur must be from 0 to {_MAX_BLUR}, but is {passes}.")
    bits = 8 * plane.dtype.itemsize + 4 * passes
    plane = plane.astype(np.uint16 if bits <= 16 else np.uint32)
    for _ in range(passes):
        padded = np.pad(plane, 1, "edge")
        rows = padded[:-2] + 2 * padded[1:-1] + padded[2:]
        plane = rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]
    return plane


def _check_scales(scales: Sequence[int]) -> tuple[int, ...]:
    checked = tuple(int(scale) for scale in scales)
    if not checked or checked != tuple(scales) or not all(1 <= s <= _MAX_SCALE for s in checked):
        raise InputError(
            f"scales must be whole numbers from 1 to {_MAX_SCALE}, at least one, but are {scales}."
        )
    return checked


@cache
def _draw_pairs(seed: int, scales: tuple[int, ...]) -> tuple[_Pair, ...]:
    numbers = _random_words(seed)

    def offset(scale: int) -> int:
        # The sum of three uniform numbers from -scale to scale is nearly normal: its standard
        # deviation is the root of scale * (scale + 1).
        return sum(next(numbers) % (2 * scale + 1) - scale for _ in range(3))

    pairs: list[_Pair] = []
    while len(pairs) < _BITS:
        # Three pairs in a row share a scale, so that every channel gets every scale.
        scale = scales[len(pairs) // 3 % len(scales)]
        y, x = offset(scale), offset(scale)
        dy, dx = (offset(max(1, scale // 2)) for _ in range(2))
        if (dy, dx) != (0, 0):
            pairs.append(_Pair(y, x, y + dy, x + dx))
    return tuple(pairs)


def _random_words(seed: int) -> Iterator[int]:
    """Generate 64-bit words by SplitMix64, which gives the same numbers everywhere."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) % _WORD
        word = state
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % _WORD
        yield word ^ (word >> 31)
