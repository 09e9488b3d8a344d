"""KITTI's flow files: PNG with 16 bits per channel.

Red and green hold ``64 * u + 2**15`` and ``64 * v + 2**15``, blue is 0 where the flow is unknown.
So a component is a multiple of 1/64 pixel, from -512 to just below 512.
"""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_flow
from hamflow.errors import FileError, InputError
from hamflow.io._atomic import atomic_write
from hamflow.io._flow_format import FlowFormat
from hamflow.io._png16 import is_png16, read_png16, write_png16
from hamflow.io._reading import MAX_PIXELS, open_regular

_STEPS_PER_PIXEL = 64
_ZERO = 2**15
_LARGEST = 2**16 - 1


def read_kitti_flow(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read a PNG file in KITTI's encoding as `hamflow.read_flow` does."""
    name = os.fspath(path)
    with open_regular(path) as file:
        if not is_png16(file.read(25)):
            raise _not_kitti(name)
        samples = read_png16(name, file).samples
    if samples.shape[2] != 3:
        raise _not_kitti(name)
    flow = samples[:, :, :2].astype(np.float32)
    flow -= _ZERO
    flow /= _STEPS_PER_PIXEL
    flow[samples[:, :, 2] == 0] = np.nan
    return flow


def _not_kitti(name: str) -> FileError:
    return FileError(
        f"{name}: is not a 16-bit RGB PNG file, so it is no flow in KITTI's encoding; give a flow "
        "file, because the colors of a flow cannot be read back."
    )


def write_kitti_flow(path: str | os.PathLike[str], flow: ArrayLike) -> None:
    """Write a PNG file in KITTI's encoding, rounded to 1/64 pixel; see `hamflow.write_flow`."""
    vectors = as_flow(flow)
    if vectors.shape[0] * vectors.shape[1] > MAX_PIXELS:
        raise InputError(f"flow has more than the {MAX_PIXELS} pixels that Hamflow reads.")
    known = ~np.isnan(vectors).any(axis=2)
    steps = _steps(vectors[known])
    if _outside(steps).any():
        raise InputError(
            "flow has infinite values or values outside -512 to 511.98 pixels, which KITTI's "
            "encoding cannot hold; mark unknown pixels with NaN, or write a .flo file."
        )
    samples = np.zeros((*known.shape, 3), np.uint16)
    samples[known, :2] = steps
    samples[known, 2] = 1
    encoded = io.BytesIO()
    write_png16(encoded, samples)
    with atomic_write(path) as file:
        file.write(encoded.getbuffer())


def outside_kitti_range(flow: ArrayLike) -> NDArray[np.bool_]:
    """Return which pixels, (H, W), `write_kitti_flow` refuses: beyond -512 to 511.98 pixels.

    Unknown pixels are not among them.
    """
    vectors = as_flow(flow)
    known = ~np.isnan(vectors).any(axis=2, keepdims=True)
    return np.asarray((_outside(_steps(vectors)) & known).any(axis=2))


def _steps(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    # The scale is a power of two, so all rounding is that of rint.
    return np.rint(vectors.astype(np.float64) * _STEPS_PER_PIXEL) + _ZERO


def _outside(steps: NDArray[np.float64]) -> NDArray[np.bool_]:
    return (steps < 0) | (steps > _LARGEST)


KITTI = FlowFormat(read_kitti_flow, write_kitti_flow)
