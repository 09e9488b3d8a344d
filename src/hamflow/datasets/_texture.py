"""Procedural textures: color as a smooth function of the place, defined between pixels too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_LATTICE = 64  # the noise repeats after so many cells
_FINEST = 3.0  # pixels per cell: finer detail would not survive bilinear interpolation


class Noise:
    """Value noise in several octaves, in -1..1.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the random values at the lattice points come from.
    cell : float
        Pixels per cell of the coarsest octave; each further one is half as large and weaker.
    roughness : float
        How strong an octave is relative to the one before.
    """

    def __init__(self, rng: np.random.Generator, cell: float, roughness: float = 0.6) -> None:
        octaves = max(1, 1 + int(np.log2(cell / _FINEST)))
        self._values = rng.uniform(-1, 1, (octaves, _LATTICE, _LATTICE))
        self._offsets = rng.uniform(0, _LATTICE, (octaves, 2))
        self._angles = rng.uniform(0, 2 * np.pi, octaves)
        self._cells = cell / 2.0 ** np.arange(octaves)
        weights = roughness ** np.arange(octaves)
        self._weights = weights / np.sqrt(np.sum(weights**2))

    def __call__(self, x: _Floats, y: _Floats) -> _Floats:
        """Evaluate the noise at any places, in pixels."""
        total = np.zeros(np.broadcast(x, y).shape)
        for values, offset, angle, cell, weight in zip(
            self._values, self._offsets, self._angles, self._cells, self._weights, strict=True
        ):
            # Each octave is turned by its own angle, so that the lattices do not show.
            cos, sin = np.cos(angle) / cell, np.sin(angle) / cell
            total += weight * _value_noise(
                values, cos * x - sin * y + offset[0], sin * x + cos * y + offset[1]
            )
        return np.tanh(1.2 * total)


def _value_noise(values: _Floats, x: _Floats, y: _Floats) -> _Floats:
    left, top = np.floor(x).astype(np.intp), np.floor(y).astype(np.intp)
    across, down = _fade(x - left), _fade(y - top)
    right, bottom = (left + 1) % _LATTICE, (top + 1) % _LATTICE
    left, top = left % _LATTICE, top % _LATTICE
    upper = values[top, left] + across * (values[top, right] - values[top, left])
    lower = values[bottom, left] + across * (values[bottom, right] - values[bottom, left])
    return np.asarray(upper + down * (lower - upper))


def _fade(t: _Floats) -> _Floats:
    """Go from 0 to 1 with vanishing first and second derivatives at both ends."""
    return t * t * t * (t * (6 * t - 15) + 10)


@dataclass(frozen=True)
class Texture:
    """Swirling bands of color: noise, displaced by noise, looked up in a palette.

    Attributes
    ----------
    palette : (N, 3) array
        RGB colors in 0..1 that follow each other smoothly.
    bands : Noise
        Where on the palette a place is.
    swirl_x, swirl_y : Noise
        By how much, times `swirl`, a place is displaced before.
    grain : Noise
        Fine changes of brightness.
    swirl : float
        In pixels.
    contrast : float
        Strength of the grain.
    """

    palette: _Floats
    bands: Noise
    swirl_x: Noise
    swirl_y: Noise
    grain: Noise
    swirl: float
    contrast: float

    def __call__(self, x: _Floats, y: _Floats) -> _Floats:
        """Return the N×3 colors in 0..1 at N places."""
        warped_x = x + self.swirl * self.swirl_x(x, y)
        warped_y = y + self.swirl * self.swirl_y(x, y)
        position = 0.5 + 0.5 * self.bands(warped_x, warped_y)
        color = _look_up(self.palette, position)
        return np.asarray(color * (1 + self.contrast * self.grain(x, y))[..., None])


def make_texture(rng: np.random.Generator, palette: Sequence[str], cell: float) -> Texture:
    """Draw a random texture.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    palette : sequence of str
        Colors as hexadecimal RGB, such as ``"ff8800"``.
    cell : float
        Size of the bands in pixels.
    """
    colors = np.array([list(bytes.fromhex(color)) for color in palette]) / 255.0
    return Texture(
        palette=colors,
        bands=Noise(rng, cell),
        swirl_x=Noise(rng, 1.5 * cell, 0.4),
        swirl_y=Noise(rng, 1.5 * cell, 0.4),
        grain=Noise(rng, 12.0, 0.9),
        swirl=0.55 * cell,
        contrast=0.2,
    )


def _look_up(palette: _Floats, position: _Floats) -> _Floats:
    place = np.clip(position, 0, 1) * (len(palette) - 1)
    before = np.minimum(place.astype(np.intp), len(palette) - 2)
    share = _fade(place - before)[..., None]
    return np.asarray(palette[before] * (1 - share) + palette[before + 1] * share)
