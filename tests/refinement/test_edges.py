"""Contrasts of smoothed images, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from _problems import same_everywhere
from hamflow.refinement._edges import gaussian_weights, image_edges, texture


def filtered(image: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    radius = len(weights) // 2
    for axis in (0, 1):
        around = [(radius, radius) if a == axis else (0, 0) for a in range(image.ndim)]
        padded = np.pad(image, around, mode="edge")
        image = sliding_window_view(padded, len(weights), axis) @ weights
    return image


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 9, 1), (7, 1, 2), (20, 33, 3)])
@pytest.mark.parametrize("blur", [0.0, 0.4, 1.0, 3.0])
def test_equals_numpy(shape: tuple[int, int, int], blur: float) -> None:
    image = np.random.default_rng(0).random(shape, np.float32)
    edges = image_edges(image, blur)
    smooth = filtered(image, gaussian_weights(blur))
    for found, axis in zip(edges, (1, 0), strict=True):
        expected = np.zeros(shape[:2])
        inside = expected[:, :-1] if axis else expected[:-1]
        inside[:] = np.abs(np.diff(smooth, axis=axis)).mean(axis=2)
        assert np.allclose(found, expected, rtol=0, atol=1e-6)
    expected = filtered(edges[0] + edges[1], np.full(5, 0.2))
    assert np.allclose(texture(edges), expected, rtol=0, atol=1e-6)


def test_levels_and_threads() -> None:
    image = np.random.default_rng(0).random((50, 40, 3), np.float32)
    assert same_everywhere(lambda: image_edges(image, 1.0))
