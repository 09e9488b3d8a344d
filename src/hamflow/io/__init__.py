"""Reading and writing of flows and images: strict, bounded, and atomic when writing."""

from __future__ import annotations

import os
from pkgutil import resolve_name

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.io._atomic import check_writable
from hamflow.io._flow_format import FlowFormat
from hamflow.io._reading import by_suffix
from hamflow.io.images import read_image, write_image

__all__ = ["read_flow", "read_image", "write_flow", "write_image"]

_Path = str | os.PathLike[str]

FLOW_FORMATS = {
    ".flo": "hamflow.io.flo:FLO",
    ".png": "hamflow.io.kitti:KITTI",
    ".pfm": "hamflow.io.pfm:PFM",
    ".flo5": "hamflow.io.flo5:FLO5",
    ".npy": "hamflow.io.npy:NPY",
    ".npz": "hamflow.io.npy:NPZ",
}
"""Where the `FlowFormat` of each suffix is. A new format is one file and one line here."""
FLOW_SUFFIXES = tuple(FLOW_FORMATS)
"""The suffixes of flow files, which may also be written in upper case."""


def read_flow(path: _Path) -> NDArray[np.float32]:
    """Read a flow; the suffix of the file's name decides the format.

    Parameters
    ----------
    path : str or os.PathLike
        The file to read: ``.flo`` (Middlebury), ``.png`` (KITTI's 16-bit encoding), ``.pfm``
        (FlyingThings3D), ``.flo5`` (Spring's HDF5; needs the extra ``flo5``), ``.npy``, or
        ``.npz`` with an array called ``flow``.

    Returns
    -------
    flow : (H, W, 2) float32
        u to the right and v down; both are NaN where the file marks either as unknown.

    Raises
    ------
    FileError
        If the suffix is unknown, the file is missing or damaged, or a package is missing.
    """
    return _flow_format(path).read(path)


def write_flow(path: _Path, flow: ArrayLike) -> None:
    """Write a flow, atomically; the suffix of the file's name decides the format.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write: ``.flo`` (Middlebury), ``.png`` (KITTI's 16-bit encoding, which rounds
        to 1/64 pixel), ``.pfm`` (FlyingThings3D), ``.flo5`` (Spring's HDF5; needs the extra
        ``flo5``), ``.npy``, or ``.npz`` (compressed, as an array called ``flow``). An existing one
        is replaced.
    flow : (H, W, 2) array_like
        u to the right and v down. A pixel with NaN in either component is written as unknown.

    Raises
    ------
    FileError
        If the suffix is unknown, the file cannot be written, or a package is missing.
    InputError
        If the flow has another shape, or values that the format cannot express.
    """
    _flow_format(path).write(path, flow)


def check_flow_path(path: _Path) -> None:
    """Raise at once the FileError that `write_flow` would raise for this path."""
    kind = _flow_format(path)
    if kind.require is not None:
        kind.require(path)
    check_writable(path)


def _flow_format(path: _Path) -> FlowFormat:
    kind: FlowFormat = resolve_name(by_suffix(path, FLOW_FORMATS, "a flow file"))
    return kind
