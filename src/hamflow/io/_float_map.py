"""The format of ``.pfm`` files (portable float map), with one channel or three.

Three lines of text, ``Pf`` or ``PF``, width and height, and a scale whose sign is the byte order
(negative is little endian), come before the float32 of each pixel, row by row from the bottom up.
"""

from __future__ import annotations

import os
import re

import numpy as np
from numpy.typing import NDArray

from hamflow.errors import FileError
from hamflow.io._reading import check_length, check_size, open_regular

_MAX_HEADER = 128  # bytes; no program writes as many
_SCALE = rb"[-+]?(?:\d{1,20}\.?\d{0,20}|\.\d{1,20})(?:[eE][-+]?\d{1,3})?"
_HEADER = re.compile(rb"P[fF]\s+(\d{1,10})\s+(\d{1,10})\s+(" + _SCALE + rb")[ \t]*\r?\n")
_MAGIC = {1: "Pf", 3: "PF"}  # by the number of channels


def read_float_map(path: str | os.PathLike[str], channels: int) -> tuple[NDArray[np.float32], str]:
    """Read a ``.pfm`` file with 1 or 3 channels.

    Returns
    -------
    pixels : (H, W, channels) array
        From the top down.
    scale : str
        As the header has it.
    """
    name = os.fspath(path)
    with open_regular(path) as file:
        start = file.read(_MAX_HEADER)
        magic = _MAGIC[channels]
        if not start.startswith(magic.encode()):
            raise FileError(
                f"{name}: is not a .pfm file with {channels} channel(s), because "
                f"it does not start with {magic}; check the format."
            )
        header = _HEADER.match(start)
        if header is None:
            raise FileError(
                f"{name}: has no header of three lines, {magic}, width and height, scale; the file "
                "is truncated or damaged, get it again."
            )
        width, height = int(header[1]), int(header[2])
        check_size(name, width, height)
        size = os.fstat(file.fileno()).st_size
        check_length(name, width, height, header.end() + 4 * channels * width * height, size)
        file.seek(header.end())
        order = "<" if header[3].startswith(b"-") else ">"
        pixels = np.empty((height, width, channels), np.dtype(f"{order}f4"))
        # As bytes, because a memoryview knows only numbers in the machine's own byte order.
        if file.readinto(pixels.view(np.uint8).data) != pixels.nbytes:
            raise FileError(f"{name}: became shorter while it was read; try again.")
    return pixels[::-1], header[3].decode("ascii")
