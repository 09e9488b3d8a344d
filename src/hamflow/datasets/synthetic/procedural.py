"""Procedural textures: for scenes without photographs, and for variety among them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

_Plane = NDArray[np.float32]
_Picture = NDArray[np.uint8]
_SIDE = 512


def procedural_picture(number: int, side: int = _SIDE) -> _Picture:
    """Draw a texture by its number: (side, side, 3) uint8. The same number gives the same one."""
    rng = np.random.default_rng([7, number])
    plane = list(_KINDS.values())[number % len(_KINDS)](rng, side)
    colored = _colored(plane, _random_palette(rng))
    # Some variation in large areas of one value.
    light = 1 + rng.uniform(0.05, 0.3) * (_clouds(rng, side, 4, 0.7) - 0.5)
    return np.clip(colored * light[..., None], 0, 255).astype(np.uint8)


def painted_picture(rng: np.random.Generator, kind: str, palette: str, side: int) -> _Picture:
    """Draw a texture with fine grain: (side, side, 3) uint8.

    `kind` is a key of `_KINDS`, and `palette` are the RGB colors of a smooth transition, as in
    ``"000000 ff8800 ffffff"``.
    """
    colors = np.array([list(bytes.fromhex(color)) for color in palette.split()], np.float64)
    colored = _colored(_KINDS[kind](rng, side), colors)
    grain = 0.82 + 0.36 * _clouds(rng, side, max(2, side // 16), 0.8)
    return np.clip(colored * grain[..., None], 0, 255).astype(np.uint8)


def _clouds(rng: np.random.Generator, side: int, cells: int, roughness: float) -> _Plane:
    """Noise from 0 to 1 over several octaves; the coarsest has `cells` cells per side."""
    total, weight = rng.uniform(-1, 1, (cells, cells)).astype(np.float32), 1.0
    while cells < side:
        cells, weight = min(2 * cells, side), weight * roughness
        total = np.array(Image.fromarray(total).resize((cells, cells), Image.Resampling.BICUBIC))
        if cells < side:
            total += rng.uniform(-weight, weight, (cells, cells)).astype(np.float32)
    low, high = np.quantile(total[::4, ::4], [0.01, 0.99])
    return _plane(np.clip((total - low) / (high - low), 0, 1))


def _plane(values: ArrayLike) -> _Plane:
    return np.asarray(values, np.float32)


def _grid(side: int) -> tuple[_Plane, _Plane]:
    line = np.arange(side, dtype=np.float32)
    return line[None, :], line[:, None]


def _cloudy(rng: np.random.Generator, side: int) -> _Plane:
    return _clouds(rng, side, int(rng.integers(2, 6)), rng.uniform(0.5, 0.7))


def _grainy(rng: np.random.Generator, side: int) -> _Plane:
    return _clouds(rng, side, int(rng.integers(24, 64)), rng.uniform(0.7, 1.0))


def _marble(rng: np.random.Generator, side: int) -> _Plane:
    swirl = _clouds(rng, side, int(rng.integers(3, 6)), 0.55)
    x, y = _grid(side)
    angle, turns = rng.uniform(0, np.pi), rng.uniform(2, 8)
    along = (x * np.cos(angle) + y * np.sin(angle)) / side * turns
    return _plane(0.5 + 0.5 * np.sin(2 * np.pi * (along + 2.5 * swirl)))


def _bricks(rng: np.random.Generator, side: int) -> _Plane:
    rows = int(rng.integers(8, 20))
    height, width = side / rows, side / rows * rng.uniform(1.6, 2.6)
    x, y = _grid(side)
    row = np.floor(y / height)
    column = np.floor(x / width + 0.5 * (row % 2))
    shade = rng.uniform(0.35, 0.9, (64, 64)).astype(np.float32)
    in_x, in_y = np.mod(x / width + 0.5 * (row % 2), 1), np.mod(y / height, 1)
    joint = (in_x < 0.05) | (in_y < 0.1)
    stone = shade[row.astype(int) % 64, column.astype(int) % 64]
    return _plane(np.where(joint, 0.1, stone * (0.8 + 0.2 * _grainy(rng, side))))


def _stripes(rng: np.random.Generator, side: int) -> _Plane:
    x, y = _grid(side)
    angle, period = rng.uniform(0, np.pi), rng.uniform(8, 40)
    bend = 0.6 * _clouds(rng, side, 3, 0.4)
    phase = (x * np.cos(angle) + y * np.sin(angle)) / period + bend
    return _plane(np.clip(0.5 + 1.5 * np.sin(2 * np.pi * phase), 0, 1))


def _checks(rng: np.random.Generator, side: int) -> _Plane:
    x, y = _grid(side)
    size = rng.uniform(10, 36)
    odd = (np.floor(x / size) + np.floor(y / size)) % 2
    return _plane(0.15 + 0.6 * odd + 0.25 * _grainy(rng, side))


def _dots(rng: np.random.Generator, side: int) -> _Plane:
    x, y = _grid(side)
    size = rng.uniform(12, 36)
    row = np.floor(y / size)
    across = np.mod(x / size + 0.5 * (row % 2), 1) - 0.5
    down = np.mod(y / size, 1) - 0.5
    distance = np.hypot(across, down) - rng.uniform(0.2, 0.4)
    return _plane(np.clip(0.5 - distance * size / 2, 0, 1))


def _cells(rng: np.random.Generator, side: int) -> _Plane:
    """Pebbles: the distance to the nearest of some points, one in each cell."""
    cells = int(rng.integers(10, 28))
    points = rng.uniform(0, 1, (cells + 2, cells + 2, 2)).astype(np.float32)
    shade = rng.uniform(0.3, 1.0, (cells + 2, cells + 2)).astype(np.float32)
    x, y = _grid(side)
    u, v = x * cells / side + 1, y * cells / side + 1
    column, row = np.floor(u).astype(int), np.floor(v).astype(int)
    first = np.full((side, side), 9, np.float32)
    second, value = first.copy(), first.copy()
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            r, c = np.clip(row + dy, 0, cells + 1), np.clip(column + dx, 0, cells + 1)
            distance = np.hypot(c + points[r, c, 0] - u, r + points[r, c, 1] - v)
            nearer = distance < first
            second = np.where(nearer, first, np.minimum(second, distance))
            value = np.where(nearer, shade[r, c], value)
            first = np.minimum(first, distance)
    return _plane(value * np.clip((second - first) * 6, 0.1, 1))


def _wood(rng: np.random.Generator, side: int) -> _Plane:
    _, y = _grid(side)
    fiber = _clouds(rng, side, 3, 0.5)
    rings = np.mod((y / side + 0.15 * fiber) * rng.uniform(6, 16), 1)
    fine = np.asarray(
        Image.fromarray(_grainy(rng, side)).resize((side, side), 1, (0, 0, side / 16, side))
    )
    return _plane(0.7 * rings + 0.3 * fine)


def _sky(rng: np.random.Generator, side: int) -> _Plane:
    _, y = _grid(side)
    return _plane(0.75 * y / side + 0.25 * _clouds(rng, side, 3, 0.5))


def _scribble(rng: np.random.Generator, side: int) -> _Plane:
    """Contour lines of a landscape."""
    height = _clouds(rng, side, int(rng.integers(3, 6)), 0.45)
    lines = np.abs(np.mod(height * rng.uniform(8, 20), 1) - 0.5) * 2
    return _plane(np.clip(lines * 3 - 0.5, 0, 1))


def _mosaic(rng: np.random.Generator, side: int) -> _Plane:
    """Squares of many sizes, as of a town from above."""
    plane = np.zeros((side, side), np.float32)
    for size in (128, 64, 32, 16, 8):
        keep = rng.uniform(0, 1, (side // size, side // size)) < 0.45
        values = rng.uniform(0, 1, keep.shape).astype(np.float32)
        block = np.ones((size, size), np.float32)
        plane = np.where(np.kron(keep, block) > 0, np.kron(values, block), plane)
    return _plane(plane)


# Their order is that of the numbers of `procedural_picture`.
_KINDS: dict[str, Callable[[np.random.Generator, int], _Plane]] = {
    "clouds": _cloudy,
    "marble": _marble,
    "bricks": _bricks,
    "grain": _grainy,
    "pebbles": _cells,
    "stripes": _stripes,
    "sky": _sky,
    "mosaic": _mosaic,
    "checks": _checks,
    "wood": _wood,
    "dots": _dots,
    "contours": _scribble,
}


def _random_palette(rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw colors that usually go from dark to bright."""
    count = int(rng.integers(3, 6))
    brightness = np.linspace(rng.uniform(10, 70), rng.uniform(150, 250), count)
    tint = rng.uniform(0.5, 1.5, (count, 3))
    palette = np.clip(brightness[:, None] * tint, 0, 255)
    if rng.uniform() < 0.3:
        rng.shuffle(palette)
    return np.asarray(palette)


def _colored(plane: _Plane, palette: NDArray[np.float64]) -> NDArray[np.float32]:
    stops = np.linspace(0, 1, len(palette))
    channels = [np.interp(plane, stops, palette[:, c]) for c in range(3)]
    return np.stack(channels, axis=2).astype(np.float32)
