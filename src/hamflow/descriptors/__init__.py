"""Descriptors: one 64-bit word per pixel, hand-crafted or learned, compared by Hamming distance."""

from hamflow.descriptors.descriptor import Descriptor
from hamflow.descriptors.model import load_model
from hamflow.descriptors.packing import pack_bits
from hamflow.descriptors.pairs import PairDescriptor, pair_bits

__all__ = ["Descriptor", "PairDescriptor", "load_model", "pack_bits", "pair_bits"]
