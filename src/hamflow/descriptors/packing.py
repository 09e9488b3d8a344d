"""From float descriptors to bits: one 64-bit word per pixel (the quantization of the paper)."""

from __future__ import annotations

import numpy as np

from hamflow._types import Bits, Phi
from hamflow.errors import InputError


def pack_bits(phi: Phi) -> Bits:
    """Quantize descriptors: bit k of a pixel's word says whether its component k is positive.

    Parameters
    ----------
    phi : (H, W, 64) array of float32

    Returns
    -------
    (H, W) array of uint64
    """
    if not isinstance(phi, np.ndarray) or phi.ndim != 3 or phi.shape[2] != 64 or phi.size == 0:
        shape = getattr(phi, "shape", type(phi).__name__)
        raise InputError(f"phi must have the shape (H, W, 64) to be packed into bits, not {shape}.")
    packed = np.packbits(phi > 0, axis=2, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8")[..., 0].astype(np.uint64, copy=False)
