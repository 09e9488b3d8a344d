"""The textures of layers: pieces of pictures with other colors and light."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageFilter

from hamflow.datasets.synthetic.config import SyntheticConfig
from hamflow.datasets.synthetic.motion import log_uniform
from hamflow.datasets.synthetic.textures import TextureSet

_CHOOSY = 0.65  # share of layers for which the more detailed of two pieces is taken
_REFLECTED = 0.2  # share of layers whose picture may be continued by reflection
_LARGEST = 1.6  # a photograph is not magnified more than this only to avoid reflections


class Wardrobe:
    """Chooses the textures of a scene, whose colors have something in common."""

    def __init__(
        self, rng: np.random.Generator, config: SyntheticConfig, textures: TextureSet
    ) -> None:
        self._rng = rng
        self._config = config
        self._textures = textures
        dark = rng.uniform() < 0.5 * config.dull_share
        self._gain = rng.uniform(0.35, 0.7) if dark else rng.uniform(0.8, 1.15)
        gray = rng.uniform() < 0.2
        self._saturation = rng.uniform(0.0, 0.5) if gray else rng.uniform(0.7, 1.4)
        self._tint = 1 + rng.normal(0, 0.06, 3)

    def dress(
        self, extent: tuple[float, float], size: tuple[int, int], mask: Image.Image | None
    ) -> Image.Image:
        """Return the RGBA texture of a layer.

        `extent` is its width and height in pixels of the frames, `size` the same in texels, and
        `mask` the coverage of each texel; None if all are covered.
        """
        picture = self._piece((int(np.ceil(extent[0])), int(np.ceil(extent[1]))))
        if self._rng.uniform() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        picture = self._lit(self._recolored(picture), mask)
        dressed = picture.resize(size, Image.Resampling.BICUBIC)
        dressed.putalpha(255 if mask is None else mask)
        return dressed

    def _piece(self, extent: tuple[int, int]) -> Image.Image:
        procedural = self._rng.uniform() < self._config.procedural_share
        # Both are of the same kind: procedural ones have more detail than most photographs.
        count = 2 if self._rng.uniform() < _CHOOSY else 1
        pieces = [self._any_piece(extent, procedural=procedural) for _ in range(count)]
        return max(pieces, key=_detail) if count > 1 else pieces[0]

    def _any_piece(self, extent: tuple[int, int], *, procedural: bool) -> Image.Image:
        rng, config = self._rng, self._config
        texture = self._textures.draw(rng, procedural=procedural)
        # Larger frames show the photographs larger, though not in proportion.
        usual = float(np.sqrt(max(config.height, config.width) / 640))
        scale = usual * log_uniform(rng, 0.3, 1.3)
        if rng.uniform() >= _REFLECTED:
            scale = max(scale, min(texture.covering(extent), _LARGEST))
        return texture.cut(extent, scale, (float(rng.uniform()), float(rng.uniform())))

    def _recolored(self, picture: Image.Image) -> Image.Image:
        rng = self._rng
        gain = self._gain * rng.uniform(0.85, 1.2)
        saturation = self._saturation * rng.uniform(0.7, 1.3)
        hue = rng.normal(0, 0.15) if rng.uniform() < 0.75 else rng.uniform(-np.pi, np.pi)
        contrast, level = rng.uniform(0.9, 1.25), 128.0
        if rng.uniform() < self._config.dull_share:
            contrast, level = rng.uniform(0.15, 0.5), rng.uniform(30, 220)
        matrix = contrast * gain * (_turned_hue(hue, saturation) * self._tint[:, None])
        # Darker than the middle, because photographs are.
        offset = gain * (level - contrast * 118.0)
        rows = [number for row in matrix.tolist() for number in (*row, offset)]
        changed = picture.convert("RGB", tuple(rows))
        return ImageChops.invert(changed) if rng.uniform() < 0.03 else changed

    def _lit(self, picture: Image.Image, mask: Image.Image | None) -> Image.Image:
        """Light a layer unevenly, and make some look round."""
        rng = self._rng
        darkest = 0.55 if rng.uniform() < 0.5 else 0.9
        light = np.asarray(255 * rng.uniform(darkest, 1.0, (4, 4)), np.uint8)
        shade = Image.fromarray(light).resize(picture.size, Image.Resampling.BICUBIC)
        if mask is not None and rng.uniform() < 0.5:
            shade = ImageChops.multiply(shade, rim(mask, picture.size))
        return ImageChops.multiply(picture, Image.merge("RGB", (shade, shade, shade)))


def rim(mask: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Return the brightness of an object with this outline that looks round: darker at its rim."""
    inner = mask.resize(size, Image.Resampling.BOX)
    inner = inner.filter(ImageFilter.BoxBlur(max(1, min(size) // 10)))
    return inner.point(_RIM)


_RIM = [95 + 160 * value // 255 for value in range(256)]  # brightness by coverage


def _detail(picture: Image.Image) -> float:
    """Return the mean difference of neighboring pixels."""
    green = np.asarray(picture)[::3, :, 1].astype(np.int16)
    return float(np.abs(np.diff(green, axis=1)).mean())


def _turned_hue(angle: float, saturation: float) -> NDArray[np.float64]:
    """Return the color matrix that rotates hues around gray and scales the saturation."""
    gray = np.full((3, 3), 1 / 3)
    cross = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
    turned = np.cos(angle) * (np.eye(3) - gray) + np.sin(angle) * cross
    return np.asarray(gray + saturation * turned)
