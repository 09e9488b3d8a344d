"""The pictures from which the textures of layers are cut."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hamflow.datasets.synthetic.procedural import procedural_picture
from hamflow.errors import FileError, missing_file
from hamflow.io import read_image

_Picture = NDArray[np.uint8]
_PROCEDURAL = 24  # how many procedural textures there are
_SUFFIXES = (".jpg", ".jpeg", ".png")
_LONGEST = 1280  # pixels; larger photographs are downsampled to save memory
_FINEST = 0.8  # least size of a pixel of a picture, in pixels of the frame
_SMALLEST = 16  # pixels of the smallest level of a pyramid


@dataclass(frozen=True, eq=False)
class Texture:
    """One picture in several resolutions, each half of the one before."""

    name: str  # of the file, or "procedural"
    levels: tuple[_Picture, ...]  # (H, W, 3) uint8, from fine to coarse

    @classmethod
    def of(cls, name: str, picture: _Picture) -> Texture:
        """Compute the coarser levels."""
        levels = [picture]
        while min(levels[-1].shape[:2]) >= 2 * _SMALLEST:
            levels.append(np.asarray(Image.fromarray(levels[-1]).reduce(2)))
        return cls(name, tuple(levels))

    def covering(self, size: tuple[int, int]) -> float:
        """Return the smallest scale at which the picture is as large as a rectangle."""
        height, width = self.levels[0].shape[:2]
        return float(max(size[0] / width, size[1] / height))

    def cut(self, size: tuple[int, int], scale: float, where: tuple[float, float]) -> Image.Image:
        """Return a rectangle of the picture, which is reflected at its borders.

        Parameters
        ----------
        size : (int, int)
            Width and height of the rectangle in the frame.
        scale : float
            Size of a pixel of the finest level in the frame. The level is chosen such that its
            pixels are 0.8 to 1.6 pixels large; finer ones would flicker under motion.
        where : (float, float)
            Position in the picture, from 0 to 1.
        """
        scale = max(scale, _FINEST / 2 ** (len(self.levels) - 1))
        level = max(0, int(np.ceil(np.log2(_FINEST / scale))))
        picture = self.levels[level]
        pixel = scale * 2**level
        height, width = picture.shape[:2]
        columns, left = _span(size[0] / pixel, width, where[0])
        rows, top = _span(size[1] / pixel, height, where[1])
        if left + columns <= width and top + rows <= height:
            part = picture[top : top + rows, left : left + columns]
        else:
            part = picture[_reflected(top, rows, height)][:, _reflected(left, columns, width)]
        return Image.fromarray(np.ascontiguousarray(part))


def _span(length: float, available: int, where: float) -> tuple[int, int]:
    """Return the number of pixels to take, and the first one."""
    count = max(2, int(np.ceil(length)))
    room = available - count if available >= count else 2 * available
    return count, int(where * room)


def _reflected(start: int, count: int, period: int) -> NDArray[np.intp]:
    place = np.arange(start, start + count) % (2 * period)
    return np.minimum(place, 2 * period - 1 - place)


@dataclass(frozen=True, eq=False)
class TextureSet:
    """The photographs of the user, of which there may be none, and the procedural textures."""

    photographs: Sequence[Texture]

    def draw(self, rng: np.random.Generator, *, procedural: bool) -> Texture:
        """Choose a photograph, or a procedural texture if there is none or `procedural` is set."""
        if procedural or not self.photographs:
            return procedural_texture(int(rng.integers(_PROCEDURAL)))
        return self.photographs[int(rng.integers(len(self.photographs)))]

    def fingerprint(self) -> str:
        """Return a hash of the photographs."""
        digest = hashlib.blake2b(digest_size=16)
        for texture in self.photographs:
            picture = texture.levels[0]
            digest.update(repr(picture.shape).encode())
            digest.update(np.ascontiguousarray(picture).data)
        return digest.hexdigest()


def load_textures(folder: str | os.PathLike[str] | None = None) -> TextureSet:
    """Read the photographs that scenes are made of.

    Parameters
    ----------
    folder : str or os.PathLike, optional
        All ``.jpg``, ``.jpeg`` and ``.png`` files in it and in the folders below it are read, in
        the order of their names; other files are ignored. Photographs of more than 1280 pixels are
        downsampled; one of 1024 × 768 pixels takes about 3 MB of memory. Without a folder, there
        are only procedural textures.
    """
    if folder is None:
        return TextureSet(())
    root = Path(folder)
    if not root.exists():
        raise missing_file(root, "give a folder with photographs (.jpg or .png).")
    if not root.is_dir():
        raise FileError(f"{root}: is not a folder; give one with photographs (.jpg or .png).")
    paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in _SUFFIXES)
    paths = [path for path in paths if path.is_file()]
    if not paths:
        raise FileError(
            f"{root}: holds no photograph (.jpg or .png); give another folder, or none for "
            "procedural textures."
        )
    photographs = [Texture.of(path.name, _photograph(path)) for path in paths]
    return TextureSet(photographs)


@cache
def procedural_texture(number: int) -> Texture:
    """Return one of the procedural textures, which is drawn on first use."""
    return Texture.of("procedural", procedural_picture(number))


def _photograph(path: Path) -> _Picture:
    pixels = read_image(path)
    picture = pixels if pixels.dtype == np.uint8 else pixels >> 8
    picture = picture.astype(np.uint8, copy=False)
    height, width = picture.shape[:2]
    if min(height, width) < _SMALLEST:
        raise FileError(
            f"{path}: has only {width} × {height} pixels; remove it or use a larger photograph."
        )
    longest = max(height, width)
    if longest <= _LONGEST:
        return picture
    size = (
        max(_SMALLEST, width * _LONGEST // longest),
        max(_SMALLEST, height * _LONGEST // longest),
    )
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.LANCZOS))
