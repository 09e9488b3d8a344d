"""Binary descriptors: one 64-bit word per pixel, compared by the Hamming distance."""

from __future__ import annotations

from hamflow.descriptors.pairs import pair_bits

__all__ = ["pair_bits"]
