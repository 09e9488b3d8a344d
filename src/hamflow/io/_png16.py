"""A reader and a writer for PNG files with 16 bits per channel, which Pillow would reduce to 8.

The reader takes gray and color, with or without alpha, interlaced or not; the writer writes plain
RGB. For other PNG files, which Pillow reads, there is a check that all their pixels are there. See
the PNG specification, https://www.w3.org/TR/png-3/.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from io import BufferedReader
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow import _native
from hamflow.errors import FileError
from hamflow.io._reading import check_size

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHUNK = struct.Struct(">I4s")
_IHDR = struct.Struct(">IIBBBBB")
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # color type -> samples per pixel
_RGB = 2  # the color type
_BLOCK = 2**16  # bytes that are decompressed at a time if they are only counted
_UP = 2  # the filter that stores the difference to the line above
# Where each pass starts and how far apart its pixels are: (x, y, step in x, step in y).
_ONE_PASS = ((0, 0, 1, 1),)
_ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)


class Png16(NamedTuple):
    """The samples of a 16-bit PNG file, and its EXIF block (empty if there is none)."""

    samples: NDArray[np.uint16]  # H×W×channels, unscaled
    exif: bytes


class _Damage(Exception):  # noqa: N818  (it never leaves this file)
    """Half a sentence about what is wrong with the file."""


def is_png16(header: bytes) -> bool:
    """Return from the first 25 bytes of a file whether `read_png16` can read it."""
    return header[:8] == _SIGNATURE and header[12:16] == b"IHDR" and header[24:25] == b"\x10"


def read_png16(path: str | os.PathLike[str], file: BufferedReader) -> Png16:
    """Decode an open file for which `is_png16` is true; `path` is for error messages."""
    try:
        return _decode(path, file)
    except (_Damage, zlib.error) as error:
        raise _damaged(path, error) from error


def _decode(path: str | os.PathLike[str], file: BufferedReader) -> Png16:
    file.seek(len(_SIGNATURE))
    chunks = _chunks(file)
    kind, data = next(chunks)
    if kind != b"IHDR" or len(data) != _IHDR.size:
        raise _Damage("its header has the wrong length")
    width, height, _, color_type, compression, filtering, interlace = _IHDR.unpack(data)
    if color_type not in _CHANNELS or compression or filtering or interlace > 1:
        raise _Damage("its header holds values that PNG does not define")
    check_size(path, width, height)
    channels = _CHANNELS[color_type]

    passes = _passes(width, height, interlace)
    lengths = [rows * (1 + columns * channels * 2) for *_, columns, rows in passes]
    pixels, exif = _inflate(chunks, sum(lengths))

    samples = np.empty((height, width, channels), np.uint16)
    start = 0
    for (x, y, dx, dy, columns, rows), length in zip(passes, lengths, strict=True):
        lines = np.frombuffer(pixels, np.uint8, length, start).reshape(rows, -1)
        samples[y::dy, x::dx] = _unfilter(lines, columns, channels * 2).view(">u2")
        start += length
    return Png16(samples, exif)


def check_pixels(path: str | os.PathLike[str], file: BufferedReader) -> None:
    """Raise a FileError unless an open PNG file, which Pillow has decoded, has all its rows.

    Pillow takes rows that are missing for black ones.
    """
    file.seek(len(_SIGNATURE))
    chunks = _chunks(file)
    try:
        width, height, depth, color_type, _, _, interlace = _IHDR.unpack(next(chunks)[1])
        bits = depth * _CHANNELS.get(color_type, 1)  # a palette has one number for each pixel
        missing = sum(
            rows * (1 + (columns * bits + 7) // 8)
            for *_, columns, rows in _passes(width, height, interlace)
        )
        inflater = zlib.decompressobj()
        for kind, data in chunks:
            for start in range(0, len(data) if kind == b"IDAT" else 0, _BLOCK):
                rest = data[start : start + _BLOCK]
                while rest and missing > 0 and not inflater.eof:
                    missing -= len(inflater.decompress(rest, _BLOCK))
                    rest = inflater.unconsumed_tail
            if missing <= 0:
                return
        raise _Damage("it has fewer pixels than its header announces")
    except (_Damage, zlib.error, struct.error) as error:
        raise _damaged(path, error) from error


def _passes(width: int, height: int, interlace: int) -> list[tuple[int, int, int, int, int, int]]:
    """Return where each pass starts, the steps between its pixels, and its columns and rows."""
    return [
        (x, y, dx, dy, len(range(x, width, dx)), len(range(y, height, dy)))
        for x, y, dx, dy in (_ADAM7 if interlace else _ONE_PASS)
        if x < width and y < height
    ]


def _damaged(path: str | os.PathLike[str], error: Exception) -> FileError:
    return FileError(f"{os.fspath(path)}: is a damaged PNG file ({error}); get it again.")


def _chunks(file: BufferedReader) -> Iterator[tuple[bytes, bytes]]:
    """Yield type and content of every chunk before the last, checked against their CRC."""
    size = os.fstat(file.fileno()).st_size
    while True:
        head = file.read(_CHUNK.size)
        if len(head) < _CHUNK.size:
            raise _Damage("it is truncated")
        length, kind = _CHUNK.unpack(head)
        # Compared with the size of the file first, so that a wrong length allocates nothing.
        if length + 4 > size - file.tell():
            raise _Damage("it is truncated")
        data = file.read(length)
        if zlib.crc32(data, zlib.crc32(kind)) != int.from_bytes(file.read(4), "big"):
            raise _Damage(f"the checksum of its {kind.decode('ascii', 'replace')} chunk is wrong")
        if kind == b"IEND":
            return
        yield kind, data


def _inflate(chunks: Iterator[tuple[bytes, bytes]], length: int) -> tuple[bytearray, bytes]:
    """Decompress the pixels, which must be `length` bytes, and find the EXIF block."""
    inflater = zlib.decompressobj()
    pixels = bytearray()
    exif = b""
    for kind, data in chunks:
        if kind == b"IDAT":
            # One byte too many is enough to refuse a stream that would expand to gigabytes.
            pixels += inflater.decompress(data, length - len(pixels) + 1)
            if len(pixels) > length:
                raise _Damage("it has more pixels than its header announces")
        elif kind == b"eXIf":
            exif = data
        elif kind[0:1].isupper() and kind != b"PLTE":
            raise _Damage(f"it has an unknown critical chunk {kind.decode('ascii', 'replace')}")
    if len(pixels) < length or not inflater.eof:
        raise _Damage("it has fewer pixels than its header announces")
    return pixels, exif


def _unfilter(lines: NDArray[np.uint8], columns: int, depth: int) -> NDArray[np.uint8]:
    """Undo the filters of lines that begin with the number of their filter.

    `depth` is the number of bytes per pixel. Returns (rows, columns, depth).
    """
    pixels = np.empty((len(lines), columns * depth), np.uint8)
    if not _native.png_unfilter(lines, depth, pixels):
        raise _Damage("it has a line with an undefined filter")
    return pixels.reshape(len(lines), columns, depth)


def write_png16(file: BinaryIO, samples: NDArray[np.uint16]) -> None:
    """Encode an (H, W, 3) image of uint16 as a PNG file."""
    height, width, _ = samples.shape
    plain = samples.astype(">u2", order="C").view(np.uint8).reshape(height, -1)
    lines = np.empty((height, 1 + plain.shape[1]), np.uint8)
    lines[:, 0] = _UP
    lines[0, 1:] = plain[0]  # the line above the image counts as zero
    np.subtract(plain[1:], plain[:-1], out=lines[1:, 1:])  # modulo 256, as the filter is defined
    file.write(_SIGNATURE)
    _write_chunk(file, b"IHDR", _IHDR.pack(width, height, 16, _RGB, 0, 0, 0))
    _write_chunk(file, b"IDAT", zlib.compress(lines.data))
    _write_chunk(file, b"IEND", b"")


def _write_chunk(file: BinaryIO, kind: bytes, data: bytes) -> None:
    file.write(_CHUNK.pack(len(data), kind))
    file.write(data)
    file.write(zlib.crc32(data, zlib.crc32(kind)).to_bytes(4, "big"))
