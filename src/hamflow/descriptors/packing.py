"""From float descriptors to bits: words of 64 bits per pixel (the quantization of the paper)."""

from __future__ import annotations

import numpy as np

from hamflow._types import Bits, Phi
from hamflow.errors import InputError


def pack_bits(phi: Phi) -> Bits:
    """Quantize descriptors: bit k of a pixel's word says whether its component k is positive.

    Parameters
    ----------
    phi : (H, W, 64 K) array of float32

    Returns
    -------
    (H, W) array of uint64 for K = 1, else (H, W, K)
        Bit k of word j is the sign of component 64 j + k.
    """
    if not isinstance(phi, np.ndarray) or phi.ndim != 3 or phi.shape[2] % 64 or phi.size == 0:
        shape = getattr(phi, "shape", type(phi).__name__)
        raise InputError(
            f"phi must have the shape (H, W, 64), or a multiple of 64 components, to be packed "
            f"into bits, not {shape}."
        )
    packed = np.packbits(phi > 0, axis=2, bitorder="little")
    words = np.ascontiguousarray(packed).view("<u8").astype(np.uint64, copy=False)
    return words[..., 0] if words.shape[2] == 1 else words
