"""Flow in ``.pfm`` files (portable float map), as FlyingThings3D has it.

Three lines of text, ``PF``, width and height, and a scale whose sign is the byte order (negative
is little endian), come before three float32 of each pixel, row by row from the bottom up: u, v and
an unused third, which FlyingThings3D sets to 0. The format has no mark for unknown pixels. NaN and
components beyond 1e9 are read as such; written is 1e10, as in a ``.flo`` file, because programs
that mask by a threshold cope with it, while NaN times a mask of 0 stays NaN.
"""

from __future__ import annotations

import os
import re

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.io._reading import check_size, open_regular
from hamflow.io._vectors import UNKNOWN, known_vectors, vectors_to_write

_MAGIC = b"PF"
_MAGIC_GREY = b"Pf"
# More than any program writes; what is longer is no header.
_LONGEST_HEADER = 128
_HEADER = re.compile(
    rb"PF\s+(\d{1,10})\s+(\d{1,10})\s+([-+]?[\d.]{1,20}(?:[eE][-+]?\d{1,3})?)[ \t]*\r?\n"
)


def read_pfm(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read a flow from a ``.pfm`` file.

    Parameters
    ----------
    path : str or os.PathLike
        The file to read. Its third channel is not looked at.

    Returns
    -------
    flow : (H, W, 2) float32
        u to the right and v down; both are NaN where the file has NaN or more than 1e9 in either.

    Raises
    ------
    FileError
        If the file is missing, is no ``.pfm`` file with three channels, is shorter or longer than
        it should be, or has a scale other than 1 and -1.
    """
    name = os.fspath(path)
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            width, height, order, start = _parse_header(name, file.read(_LONGEST_HEADER), size)
            file.seek(start)
            pixels = np.empty((height, width, 3), np.dtype(f"{order}f4"))
            # As bytes, because a memoryview knows only numbers in the machine's own order.
            if file.readinto(pixels.view(np.uint8).data) != pixels.nbytes:
                raise FileError(f"{name}: became shorter while it was read; try again.")
    except OSError as error:
        raise FileError(f"{name}: cannot be read ({error.strerror}); check the disk.") from error
    return known_vectors(np.ascontiguousarray(pixels[::-1, :, :2]))


def _parse_header(name: str, start: bytes, size: int) -> tuple[int, int, str, int]:
    """Return width, height, byte order, and where the pixels begin."""
    if start.startswith(_MAGIC_GREY):
        raise FileError(
            f"{name}: has one channel (Pf), so it is no flow but perhaps a disparity; use a file "
            "with three channels (PF)."
        )
    if not start.startswith(_MAGIC):
        raise FileError(
            f"{name}: is not a .pfm file, because it does not start with PF; check the format."
        )
    header = _HEADER.match(start)
    if header is None:
        raise FileError(
            f"{name}: has no header of three lines, PF, width and height, scale; the file is "
            "truncated or damaged, get it again."
        )
    width, height = int(header[1]), int(header[2])
    check_size(name, width, height)
    # Some programs multiply by another scale, some divide, and most ignore it.
    if abs(_number(header[3])) != 1:
        raise FileError(
            f"{name}: has the scale {header[3].decode('ascii')}, which programs understand in "
            "different ways; write it anew with a scale of -1 or 1."
        )
    expected = header.end() + 12 * width * height
    if size != expected:
        trouble = "truncated" if size < expected else "too long"
        raise FileError(
            f"{name}: is {trouble}: {width} × {height} pixels take {expected} bytes, "
            f"but the file has {size}; get it again."
        )
    return width, height, "<" if header[3].startswith(b"-") else ">", header.end()


def _number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:  # such as two points
        return np.nan


def write_pfm(path: str | os.PathLike[str], flow: ArrayLike) -> None:
    """Write a flow to a ``.pfm`` file, atomically: little endian, and 0 as the third channel.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write; an existing one is replaced.
    flow : (H, W, 2) array_like
        u and v. A pixel with NaN in either component is written as 1e10.

    Raises
    ------
    InputError
        If the flow has another shape, too many pixels to be read back, or values beyond 1e9.
    FileError
        If the file cannot be written.
    """
    data = vectors_to_write(flow, ".pfm", UNKNOWN)
    height, width, _ = data.shape
    pixels = np.zeros((height, width, 3), data.dtype)
    pixels[::-1, :, :2] = data
    with atomic_write(path) as file:
        file.write(b"PF\n%d %d\n-1.0\n" % (width, height))
        file.write(pixels.data)
