"""Middlebury's ``.flo`` files.

A file holds the bytes ``PIEH``, then the width and the height as int32, then u and v of each pixel
as float32, row by row, all little endian. A component beyond 1e9 marks an unknown pixel.
"""

from __future__ import annotations

import os
import struct

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.io._flow_format import UNKNOWN, FlowFormat, known_vectors, vectors_to_write
from hamflow.io._reading import check_length, check_size, open_regular

_MAGIC = b"PIEH"  # the float32 202021.25
_HEADER = struct.Struct("<4sii")


def read_flo(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read a ``.flo`` file as `hamflow.read_flow` does."""
    name = os.fspath(path)
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        width, height = _parse_header(name, file.read(_HEADER.size), size)
        flow = np.empty((height, width, 2), np.dtype("<f4"))
        if file.readinto(flow.data.cast("B")) != flow.nbytes:
            raise FileError(f"{name}: became shorter while it was read; try again.")
    return known_vectors(flow)


def _parse_header(name: str, header: bytes, size: int) -> tuple[int, int]:
    if not header.startswith(_MAGIC):
        raise FileError(
            f"{name}: is not a .flo file, because it does not start with PIEH; check the format."
        )
    if len(header) < _HEADER.size:
        raise FileError(f"{name}: ends within its header; the file is truncated, get it again.")
    _, width, height = _HEADER.unpack(header)
    check_size(name, width, height)
    check_length(name, width, height, _HEADER.size + 8 * width * height, size)
    return width, height


def write_flo(path: str | os.PathLike[str], flow: ArrayLike) -> None:
    """Write a ``.flo`` file as `hamflow.write_flow` does; components are at most 1e9 pixels."""
    data = vectors_to_write(flow, ".flo", UNKNOWN)
    height, width, _ = data.shape
    with atomic_write(path) as file:
        file.write(_HEADER.pack(_MAGIC, width, height))
        file.write(data.data)


def new_flo(path: str | os.PathLike[str], shape: tuple[int, ...]) -> int:
    """Make a file without content, given height and width; return where its vectors begin."""
    with open(path, "wb") as file:
        return file.write(_HEADER.pack(_MAGIC, shape[1], shape[0]))


FLO = FlowFormat(read_flo, write_flo)
