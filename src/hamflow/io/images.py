"""Reading and writing of images."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, UnidentifiedImageError

from hamflow._check import as_image, as_intensities, pixel_array, to_bytes
from hamflow._types import ImageLike, Pixels
from hamflow.errors import FileError, InputError
from hamflow.io._atomic import atomic_write, check_writable
from hamflow.io._png16 import check_pixels, is_png16, read_png16
from hamflow.io._reading import MAX_PIXELS, by_suffix, check_size, open_regular

_Pixels = NDArray[np.uint8] | NDArray[np.uint16]

# Listed one by one: some of Pillow's other readers start programs or open more files.
_READABLE = ("BMP", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_WRITABLE = {
    ".bmp": "BMP",
    ".jpeg": "JPEG",
    ".jpg": "JPEG",
    ".png": "PNG",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".webp": "WEBP",
}
_SIXTEEN_BITS = ("PNG", "PPM")  # formats whose gray of 16 bits Pillow may give as 32
_EXIF_ORIENTATION = 0x0112
# How to turn the stored image upright, by the value of the EXIF tag.
_UPRIGHT: dict[int, Callable[[NDArray[Any]], NDArray[Any]]] = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: a[::-1].swapaxes(0, 1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: a[:, ::-1].swapaxes(0, 1),
}


def read_image(path: str | os.PathLike[str]) -> _Pixels:
    """Read an image as RGB.

    Gray is repeated in all three channels, palettes are resolved, alpha is dropped, and the
    image is rotated as its EXIF orientation says. PNG files with 16 bits per channel and gray
    images of 16 bits in any format keep them; 16-bit color in other formats is reduced to 8.

    Parameters
    ----------
    path : str or os.PathLike
        A BMP, JPEG, PNG, PPM/PGM, TIFF or WebP file.

    Returns
    -------
    image : (H, W, 3) uint8 or uint16
        Red, green and blue.

    Raises
    ------
    FileError
        If the file is missing, damaged, too large, or no image in one of these formats.
    """
    name = os.fspath(path)
    with open_regular(path) as file, _image_errors(name):
        header = file.read(25)
        file.seek(0)
        if is_png16(header):
            samples, exif_block = read_png16(name, file)
            # Two channels are gray and alpha, four are color and alpha.
            pixels: _Pixels = samples[:, :, : 1 if samples.shape[2] < 3 else 3]
            orientation = _orientation(lambda: _parse_exif(exif_block))
        else:
            bounded = cast(BinaryIO, _Bounded(file))
            with _without_bomb_warning(), Image.open(bounded, formats=_READABLE) as picture:
                check_size(name, *picture.size)
                picture.load()
                if picture.format == "PNG" and _may_lack_rows(picture):
                    check_pixels(name, file)
                pixels = _pixels(name, picture)
                orientation = _orientation(picture.getexif)
    upright = _UPRIGHT.get(orientation, _UPRIGHT[1])(pixels)
    return np.ascontiguousarray(upright) if upright.shape[2] == 3 else np.repeat(upright, 3, axis=2)


def announced_size(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Return the width and height that the header of an image announces; nothing is decoded.

    They are those of the stored image, which its EXIF orientation may turn.

    Raises
    ------
    FileError
        If the file is missing, too large, or no image that `read_image` reads.
    """
    name = os.fspath(path)
    with (
        open_regular(path) as file,
        _image_errors(name),
        _without_bomb_warning(),
        Image.open(cast(BinaryIO, _Bounded(file)), formats=_READABLE) as picture,
    ):
        width, height = picture.size
        check_size(name, width, height)
    return width, height


@contextmanager
def _image_errors(name: str) -> Iterator[None]:
    """Turn whatever an image in the block leads to into a FileError of one sentence."""
    try:
        yield
    except (FileError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise FileError(
            f"{name}: its header announces more than the {MAX_PIXELS} pixels that Hamflow "
            "reads; use a smaller image."
        ) from error
    except UnidentifiedImageError as error:
        raise FileError(
            f"{name}: is not an image that Hamflow reads; convert it to one of: "
            f"{', '.join(_READABLE)}."
        ) from error
    # Pillow raises exceptions of many unrelated kinds for damaged files.
    except Exception as error:
        raise FileError(
            f"{name}: cannot be decoded ({error}); the image is damaged, get it again."
        ) from error


def as_colors(image: ImageLike, name: str = "image") -> Pixels:
    """Return any image as (H, W, 3), of uint8 or uint16, or floating point in 0..1.

    It may be an array, a tensor on the CPU, a PIL image or the path of a file. If it is none of
    them, the InputError calls it `name`.
    """
    if isinstance(image, str | os.PathLike):
        array: NDArray[Any] = read_image(image)
    elif isinstance(image, Image.Image):
        array = _of_picture(image, name)
    else:
        array = pixel_array(image, name)
    if array.ndim == 3 and array.shape[2] in (1, 4):
        array = array[:, :, 0] if array.shape[2] == 1 else array[:, :, :3]
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * np.uint8(255)
    array = as_intensities(array.astype(array.dtype.newbyteorder("="), copy=False), name)
    return np.repeat(array[..., None], 3, axis=2) if array.ndim == 2 else array


def _of_picture(picture: Image.Image, name: str) -> NDArray[Any]:
    """Return the pixels of a PIL image, turned upright as `read_image` does."""
    picture.load()  # which turns a TIFF image itself, so its orientation is asked for afterwards
    orientation = _orientation(picture.getexif)
    if not picture.mode.startswith(("1", "I", "F")):
        array = np.asarray(picture.convert("RGB"))  # palettes, CMYK, gray with alpha
    elif picture.mode == "I" and picture.format not in _SIXTEEN_BITS:
        raise InputError(
            f"{name} is a PIL image of 32 bits, which does not say which value is white; convert "
            "it to the mode L or I;16."
        )
    else:
        array = pixel_array(picture, name)
        if picture.mode == "I":
            array = array.astype(np.uint16)
    return _UPRIGHT.get(orientation, _UPRIGHT[1])(array)


class _Bounded:
    """An open file that is never asked for more than it has.

    Python makes room for as many bytes as it is asked for, and Pillow asks for as many as a part of
    a file announces, which may be four gigabytes.
    """

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._size = os.fstat(file.fileno()).st_size

    def read(self, count: int = -1) -> bytes:
        left = max(0, self._size - self._file.tell())
        return self._file.read(left if count < 0 else min(count, left))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def _without_bomb_warning() -> Iterator[None]:
    """Silence Pillow's warning about large images: `check_size` has a limit of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        yield


def _may_lack_rows(picture: Image.Image) -> bool:
    """Return whether the rows that Pillow found in a PNG file may be too few.

    It leaves the others at 0, so any other number in the last row tells that all are there; but the
    rows of an interlaced image do not come in their order.
    """
    width, height = picture.size
    last = picture.crop((0, height - 1, width, height))
    return bool(picture.info.get("interlace")) or not np.asarray(last).any()


def _pixels(name: str, picture: Image.Image) -> _Pixels:
    """Return H×W×1 uint16 for gray of more than 8 bits, else H×W×3 uint8."""
    if picture.mode == "F":
        raise FileError(
            f"{name}: holds floating-point pixels; convert it to an image of 8 or 16 bits."
        )
    if not picture.mode.startswith("I"):
        return np.array(picture.convert("RGB"))
    if picture.mode == "I" and picture.format not in _SIXTEEN_BITS:
        raise FileError(
            f"{name}: holds pixels of 32 bits and does not say which value is white; convert it to "
            "8 or 16 bits."
        )
    return np.asarray(picture).astype(np.uint16)[:, :, None]


def _parse_exif(block: bytes) -> Image.Exif:
    exif = Image.Exif()
    exif.load(block)
    return exif


def _orientation(exif: Callable[[], Image.Exif]) -> int:
    # Metadata that cannot be parsed is no reason to refuse the image.
    try:
        return int(exif().get(_EXIF_ORIENTATION, 1))
    except Exception:
        return 1


def write_image(path: str | os.PathLike[str], image: ArrayLike) -> None:
    """Write an image, atomically; the suffix of the file's name decides the format.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write, ending in ``.png``, ``.jpg``, ``.jpeg``, ``.bmp``, ``.tif``, ``.tiff``
        or ``.webp``; an existing one is replaced.
    image : (H, W) or (H, W, 3) array_like
        Gray or RGB: uint8; a mask (bool), which becomes black and white; or floating point from 0
        to 1, such as a confidence.

    Raises
    ------
    InputError
        If the image has another shape or type.
    FileError
        If the suffix is unknown, the format cannot hold the image, or the file cannot be written.
    """
    name = os.fspath(path)
    kind = _format_of(path)
    array = pixel_array(image, "image")
    if array.ndim == 3 and array.shape[2] == 2:
        raise InputError(
            f"image has the shape {array.shape} of a flow; draw it with hamflow.flow_to_color, or "
            "write its vectors with hamflow.write_flow."
        )
    array = as_image(array)
    if array.dtype.kind not in "bf" and array.dtype != np.uint8:
        remedy = "divide it by 257 and round it" if array.dtype == np.uint16 else "convert it"
        raise InputError(
            "image must be of type uint8, bool, or floating point from 0 to 1 to be written, but "
            f"is {array.dtype}; {remedy}."
        )
    picture = Image.fromarray(np.ascontiguousarray(to_bytes(array)))
    encoded = io.BytesIO()
    try:
        picture.save(encoded, kind, quality=95)
    except (OSError, ValueError) as error:  # such as a side longer than the format permits
        raise FileError(f"{name}: cannot be encoded ({error}); use another format.") from error
    with atomic_write(path) as file:
        file.write(encoded.getbuffer())


def check_image_path(path: str | os.PathLike[str]) -> None:
    """Raise at once the FileError that `write_image` would raise for this path."""
    _format_of(path)
    check_writable(path)


def _format_of(path: str | os.PathLike[str]) -> str:
    return by_suffix(path, _WRITABLE, "an image file")
