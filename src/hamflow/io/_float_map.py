"""The format of ``.pfm`` files (portable float map), with one channel or three.

Three lines of text, ``Pf`` or ``PF``, width and height, and a scale whose sign is the byte order
(negative is little endian), come before the float32 of each pixel, row by row from the bottom up.
"""

from __future__ import annotations

import os
import re
from io import BufferedReader

import numpy as np
from numpy.typing import NDArray

from hamflow.errors import FileError
from hamflow.io._reading import check_length, check_size, open_regular

# More than any program writes; what is longer is no header.
_LONGEST_HEADER = 128
_HEADER = re.compile(
    rb"P[fF]\s+(\d{1,10})\s+(\d{1,10})\s+([-+]?[\d.]{1,20}(?:[eE][-+]?\d{1,3})?)[ \t]*\r?\n"
)
_KINDS = {
    1: (b"Pf", "one channel (Pf)"),
    3: (b"PF", "three channels (PF)"),
}


def read_float_map(path: str | os.PathLike[str], channels: int) -> tuple[NDArray[np.float32], str]:
    """Read a ``.pfm`` file.

    Parameters
    ----------
    path : str or os.PathLike
        The file to read.
    channels : int
        How many it must have, 1 or 3.

    Returns
    -------
    pixels : (H, W, channels) array
        From the top down.
    scale : str
        As it stands in the header.

    Raises
    ------
    FileError
        If the file is missing, is no such file, or is shorter or longer than it should be.
    """
    with open_regular(path) as file:
        return _read(os.fspath(path), file, channels)


def _read(name: str, file: BufferedReader, channels: int) -> tuple[NDArray[np.float32], str]:
    size = os.fstat(file.fileno()).st_size
    start = file.read(_LONGEST_HEADER)
    _check_kind(name, start, channels)
    header = _HEADER.match(start)
    if header is None:
        raise FileError(
            f"{name}: has no header of three lines, {_KINDS[channels][0].decode()}, width and "
            "height, scale; the file is truncated or damaged, get it again."
        )
    width, height = int(header[1]), int(header[2])
    check_size(name, width, height)
    check_length(name, width, height, header.end() + 4 * channels * width * height, size)
    file.seek(header.end())
    order = "<" if header[3].startswith(b"-") else ">"
    pixels = np.empty((height, width, channels), np.dtype(f"{order}f4"))
    # As bytes, because a memoryview knows only numbers in the machine's own order.
    if file.readinto(pixels.view(np.uint8).data) != pixels.nbytes:
        raise FileError(f"{name}: became shorter while it was read; try again.")
    return pixels[::-1], header[3].decode("ascii")


def _check_kind(name: str, start: bytes, channels: int) -> None:
    magic, wanted = _KINDS[channels]
    if start.startswith(magic):
        return
    for other, had in _KINDS.values():
        if start.startswith(other):
            raise FileError(f"{name}: has {had}; use a file with {wanted}.")
    raise FileError(
        f"{name}: is not a .pfm file, because it does not start with {magic.decode()}; check the "
        "format."
    )
