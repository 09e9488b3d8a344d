"""Contrasts of smoothed images, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from _problems import same_bytes, with_threads
from hamflow.refinement._edges import image_edges, texture
from hamflow.refinement._filters import contrasts, filtered, gaussian


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 9, 1), (7, 1, 2), (20, 33, 3)])
@pytest.mark.parametrize("blur", [0.0, 0.4, 1.0, 3.0])
def test_equals_numpy(shape: tuple[int, int, int], blur: float) -> None:
    image = np.random.default_rng(0).random(shape, np.float32)
    edges = image_edges(image, blur)
    for found, expected in zip(edges, contrasts(gaussian(image, blur)), strict=True):
        assert np.allclose(found, expected, rtol=0, atol=1e-6)
    expected = edges[0] + edges[1]
    for axis in (0, 1):
        expected = filtered(expected, (0.2,) * 5, axis)
    assert np.allclose(texture(edges), expected, rtol=0, atol=1e-6)


def test_threads() -> None:
    image = np.random.default_rng(0).random((50, 40, 3), np.float32)
    one = with_threads(1, lambda: image_edges(image, 1.0))
    for count in (2, 5):
        other = with_threads(count, lambda: image_edges(image, 1.0))
        assert all(same_bytes(a, b) for a, b in zip(one, other, strict=True))
