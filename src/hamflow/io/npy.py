"""Flow in NumPy's files: ``.npy``, and ``.npz`` with an array called ``flow``.

An H×W×2 array of float16, float32 or float64; unknown pixels are NaN (or, as in a ``.flo`` file,
beyond 1e9).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.io._flow_format import FlowFormat, known_vectors, vectors_to_write
from hamflow.io._npz import open_npz, read_array
from hamflow.io._reading import open_regular


def read_npy(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read a ``.npy`` file as `hamflow.read_flow` does."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        return known_vectors(read_array(os.fspath(path), file, size, _check_flow))


def read_npz(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read the array ``flow`` of a ``.npz`` file as `hamflow.read_flow` does."""
    with open_npz(path) as archive:
        return known_vectors(archive.read("flow", _check_flow))


def _check_flow(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if dtype.kind != "f" or dtype.itemsize > 8:
        raise FileError(
            f"{name}: holds numbers of the type {dtype.str}, but a flow is of float16, float32 or "
            "float64; convert it."
        )
    if len(shape) != 3 or shape[2] != 2:
        raise FileError(
            f"{name}: has the shape {shape}, but a flow has (height, width, 2); bring its axes "
            "into this order."
        )


def write_npy(path: str | os.PathLike[str], flow: ArrayLike) -> None:
    """Write a ``.npy`` file of float32 as `hamflow.write_flow` does."""
    data = vectors_to_write(flow, ".npy", np.nan)
    with atomic_write(path) as file:
        np.lib.format.write_array(file, data, version=(1, 0), allow_pickle=False)


def write_npz(path: str | os.PathLike[str], flow: ArrayLike) -> None:
    """Write a compressed ``.npz`` file with an array ``flow`` of float32."""
    data = vectors_to_write(flow, ".npz", np.nan)
    with atomic_write(path) as file:
        np.savez_compressed(file, flow=data)


NPY = FlowFormat(read_npy, write_npy)
NPZ = FlowFormat(read_npz, write_npz)
