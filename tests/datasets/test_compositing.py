"""The kernels that draw synthetic scenes, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hamflow import _native
from hamflow.datasets.synthetic.layer import FULL

Floats = NDArray[np.float32]
SEEDS = st.integers(0, 2**32 - 1)


def looked_up(words: NDArray[np.uint64], x: Floats, y: Floats) -> NDArray[np.uint16]:
    """Interpolate in 1/256 of a texel."""
    height, width = words.shape
    column = np.clip(x * 256, 0, (width - 1) * 256 - 1).astype(int)
    row = np.clip(y * 256, 0, (height - 1) * 256 - 1).astype(int)
    across, down = column % 256, row % 256
    left, top = column // 256, row // 256
    both = (across * down + 128) // 256
    lanes = words.view(np.uint16).reshape(height, width, 4).astype(int)
    return np.asarray(
        lanes[top, left] * (256 - across - down + both)[:, None]
        + lanes[top, left + 1] * (across - both)[:, None]
        + lanes[top + 1, left] * (down - both)[:, None]
        + lanes[top + 1, left + 1] * both[:, None],
        np.uint16,
    )


def random_words(rng: np.random.Generator, height: int, width: int) -> NDArray[np.uint64]:
    lanes = rng.integers(0, 256, (height, width, 4)).astype(np.uint16)
    return lanes.view(np.uint64)[:, :, 0]


@given(SEEDS)
def test_look_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = random_words(rng, *rng.integers(2, 20, 2))
    x, y = rng.uniform(-5, 25, (2, 50)).astype(np.float32)
    lanes = np.empty((50, 4), np.uint16)
    _native.look_up(words, x, y, lanes)
    assert np.array_equal(lanes, looked_up(words, x, y))
    nowhere = np.full(50, np.nan, np.float32)
    _native.look_up(words, nowhere, nowhere, lanes)
    assert np.array_equal(lanes, looked_up(words, 0 * x, 0 * y))


def plane_texels(
    m: Floats, places: Floats, nowhere: tuple[float, float], solid: bool, at: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Do what the kernel does, with arrays."""
    x, y = at
    inverse_depth = m[2, 0] * x + (m[2, 1] * y + m[2, 2])
    front = inverse_depth > 0
    scale = 1 / np.where(front, inverse_depth, np.float32(1))
    column = (m[0, 0] * x + (m[0, 1] * y + m[0, 2])) * scale
    row = (m[1, 0] * x + (m[1, 1] * y + m[1, 2])) * scale
    across = np.square(m[0, 0] - column * m[2, 0]) + np.square(m[1, 0] - row * m[2, 0])
    down = np.square(m[0, 1] - column * m[2, 1]) + np.square(m[1, 1] - row * m[2, 1])
    texels = np.maximum(across, down) * np.square(scale)
    level = np.clip(np.frexp(texels)[1] >> 1, 0, len(places) - 1)
    factor = np.ldexp(np.float32(1), -level)
    left, top, right, bottom = places[level].T
    u = (column + np.float32(0.5)) * factor - np.float32(0.5)
    v = (row + np.float32(0.5)) * factor - np.float32(0.5)
    width, height = right - left, bottom - top
    inside = front & (u > -0.5) & (u < width + 0.5) & (v > -0.5) & (v < height + 0.5) | solid
    at_x = np.where(inside, np.clip(u, 0, width) + left, np.float32(nowhere[0]))
    at_y = np.where(inside, np.clip(v, 0, height) + top, np.float32(nowhere[1]))
    return at_x, at_y


@given(SEEDS, st.booleans())
def test_plane_texels(seed: int, solid: bool) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(0, 1, (3, 3)).astype(np.float32)
    matrix[:2] *= np.float32(rng.uniform(0.1, 30))
    matrix[2] = rng.uniform(-0.001, 0.02, 3)
    places = np.float32([[0, 0, 63, 31], [64, 0, 95, 15], [64, 16, 79, 23]])
    x, y = rng.uniform(0, 100, (2, 60)).astype(np.float32)
    at_x, at_y = np.empty_like(x), np.empty_like(y)
    _native.plane_texels(matrix, places, (64.0, 25.0), solid, x, y, at_x, at_y)
    expected = plane_texels(matrix, places, (64.0, 25.0), solid, (x, y))
    assert np.array_equal(at_x, expected[0])
    assert np.array_equal(at_y, expected[1])


@given(SEEDS)
def test_pixels_above(seed: int) -> None:
    rng = np.random.default_rng(seed)
    image = rng.uniform(0, 1, rng.integers(1, 12, 2)).astype(np.float32)
    top, bottom = np.sort(rng.integers(0, image.shape[0] + 1, 2))
    left, right = np.sort(rng.integers(0, image.shape[1] + 1, 2))
    size = (bottom - top) * (right - left)
    index, x, y = np.empty(size, np.int64), np.empty(size, np.float32), np.empty(size, np.float32)
    window = (int(left), int(top), int(right), int(bottom))
    found = _native.pixels_above(image, window, 0.4, index, x, y)
    rows, columns = np.nonzero(image[top:bottom, left:right] > np.float32(0.4))
    assert np.array_equal(y[:found], rows + top)
    assert np.array_equal(x[:found], columns + left)
    assert np.array_equal(index[:found], (rows + top) * image.shape[1] + columns + left)


@given(SEEDS, st.sampled_from(["no fog", "fog", "fog with depth"]))
def test_paint(seed: int, kind: str) -> None:
    """Surfaces over each other, from front to back, are what they are from back to front."""
    rng = np.random.default_rng(seed)
    height, width, count = 5, 7, 3
    size = height * width
    index = np.arange(size, dtype=np.int64)
    surfaces = rng.integers(0, FULL + 1, (count, size, 4)).astype(np.uint16)
    surfaces[:, rng.uniform(size=size) < 0.3, 3] = FULL
    surfaces[:, rng.uniform(size=size) < 0.3, 3] = 0
    surfaces[-1, :, 3] = FULL
    color = rng.uniform(0, 255, 3).astype(np.float32)
    shares = rng.uniform(0, 1, (count, size if kind == "fog with depth" else 1)).astype(np.float32)
    light, total = np.ones((height, width), np.float32), np.zeros((height, width, 3), np.float32)
    for lanes, share in zip(surfaces, shares, strict=True):
        fog = None if kind == "no fog" else (1 - share, 256 * share, color)
        _native.paint(index, lanes, fog, light, total)
    expected = np.zeros((size, 3))
    for lanes, share in zip(surfaces[::-1], shares[::-1], strict=True):
        seen = lanes[:, :3].astype(np.float64)
        if kind != "no fog":
            seen = seen * (1 - share[:, None]) + 256 * share[:, None] * color
        cover = lanes[:, 3:] / FULL
        expected = (1 - cover) * expected + cover * seen
    assert np.allclose(total.reshape(-1, 3), expected, rtol=1e-4, atol=2)
    assert np.allclose(light, 0, atol=1e-6)


@given(SEEDS)
def test_halve(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(2, 9, 2)
    fine = random_words(rng, 2 * height + int(rng.integers(2)), 2 * width + int(rng.integers(2)))
    coarse = np.empty((height, width), np.uint64)
    _native.halve(fine, coarse)
    lanes = fine.view(np.uint16).reshape(*fine.shape, 4)[: 2 * height, : 2 * width].astype(int)
    expected = (lanes.reshape(height, 2, width, 2, 4).sum(axis=(1, 3)) + 2) // 4
    assert np.array_equal(coarse.view(np.uint16).reshape(height, width, 4), expected)


def test_wrong_shapes() -> None:
    words, floats = np.zeros((4, 4), np.uint64), np.zeros(3, np.float32)
    lanes, index = np.zeros((3, 4), np.uint16), np.array([0, 1, 9], np.int64)
    light, total = np.ones((2, 2), np.float32), np.zeros((2, 2, 3), np.float32)
    with pytest.raises(ValueError, match="lanes"):
        _native.look_up(words, floats, floats, lanes[:2])
    with pytest.raises(ValueError, match="words"):
        _native.look_up(words[:1], floats, floats, lanes)
    with pytest.raises(ValueError, match="index"):
        _native.paint(index, lanes, None, light, total)
    with pytest.raises(ValueError, match="window"):
        _native.pixels_above(light, (0, 0, 3, 1), 0.5, index, floats, floats)
    with pytest.raises(ValueError, match="half"):
        _native.halve(words, np.zeros((3, 2), np.uint64))
