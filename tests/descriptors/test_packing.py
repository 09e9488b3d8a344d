"""Float descriptors become bits."""

from __future__ import annotations

import numpy as np
import pytest

from _problems import random_phi
from hamflow import InputError
from hamflow.descriptors import pack_bits


def test_pack_bits() -> None:
    phi = random_phi(np.random.default_rng(0), 3, 5, 64)
    packed = pack_bits(phi)
    assert packed.dtype == np.uint64
    assert packed.shape == (3, 5)
    assert packed.flags.c_contiguous
    for k in range(64):
        assert (((packed >> np.uint64(k)) & np.uint64(1)) == (phi[..., k] > 0)).all()


def test_several_words() -> None:
    phi = random_phi(np.random.default_rng(0), 3, 5, 128)
    packed = pack_bits(phi)
    assert packed.shape == (3, 5, 2)
    assert packed.flags.c_contiguous
    for word in range(2):
        assert (packed[..., word] == pack_bits(phi[..., 64 * word : 64 * word + 64])).all()


def test_zero_is_not_positive() -> None:
    phi = np.zeros((1, 1, 64), np.float32)
    phi[..., 1] = -0.0
    phi[..., 3] = np.finfo(np.float32).smallest_subnormal
    assert pack_bits(phi).tolist() == [[8]]


@pytest.mark.parametrize(
    "shape", [(3, 64), (3, 4, 63), (3, 4, 65), (3, 4, 0), (0, 4, 64), (2, 3, 4, 64)]
)
def test_pack_bits_needs_64(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"phi must have the shape \(H, W, 64\)"):
        pack_bits(np.zeros(shape, np.float32))
