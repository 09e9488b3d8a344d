"""Flow in ``.pfm`` files (portable float map), as FlyingThings3D has it.

The three channels are u, v and an unused third, which FlyingThings3D sets to 0. The format has no
mark for unknown pixels: NaN and components beyond 1e9 are read as unknown, and 1e10 is written for
them, as in a ``.flo`` file. Programs that mask by a threshold can handle 1e10, while NaN times a
mask of 0 stays NaN.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.io._float_map import read_float_map
from hamflow.io._flow_format import UNKNOWN, FlowFormat, known_vectors, vectors_to_write


def read_pfm(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read u and v from a ``.pfm`` file of three channels whose scale is 1 or -1."""
    pixels, scale = read_float_map(path, channels=3)
    # Some programs multiply by the scale, some divide, and most ignore it.
    if abs(float(scale)) != 1:
        raise FileError(
            f"{os.fspath(path)}: has the scale {scale}, which programs interpret in different "
            "ways; write it again with a scale of -1 or 1."
        )
    return known_vectors(np.ascontiguousarray(pixels[:, :, :2]))


def write_pfm(path: str | os.PathLike[str], flow: ArrayLike) -> None:
    """Write a little-endian ``.pfm`` file, with 0 as the third channel."""
    data = vectors_to_write(flow, ".pfm", UNKNOWN)
    height, width, _ = data.shape
    pixels = np.zeros((height, width, 3), data.dtype)
    pixels[::-1, :, :2] = data
    with atomic_write(path) as file:
        file.write(b"PF\n%d %d\n-1.0\n" % (width, height))
        file.write(pixels.data)


PFM = FlowFormat(read_pfm, write_pfm)
