"""Descriptors: one 64-bit word per pixel, hand-crafted or learned, compared by Hamming distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hamflow.descriptors.pairs import pair_bits

if TYPE_CHECKING:
    from hamflow.descriptors.model import Model, load_model

__all__ = ["Model", "load_model", "pair_bits"]


def __getattr__(name: str) -> Any:
    # On first use: packing the bits is the matching's, which itself needs this package.
    if name in ("Model", "load_model"):
        from hamflow.descriptors import model  # noqa: PLC0415

        globals()[name] = getattr(model, name)
        return globals()[name]
    raise AttributeError(f"module 'hamflow.descriptors' has no attribute {name!r}")
