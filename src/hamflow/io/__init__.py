"""Reading and writing of flows and images: strict, bounded, and atomic when writing."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.io._atomic import check_writable
from hamflow.io._reading import by_suffix
from hamflow.io.flo import read_flo, write_flo
from hamflow.io.flo5 import read_flo5, require_h5py, write_flo5
from hamflow.io.images import read_image, write_image
from hamflow.io.kitti import read_kitti_flow, write_kitti_flow
from hamflow.io.npy import read_npy, read_npz, write_npy, write_npz
from hamflow.io.pfm import read_pfm, write_pfm

__all__ = ["read_flow", "read_image", "write_flow", "write_image"]

_Path = str | os.PathLike[str]


class _FlowFormat(NamedTuple):
    read: Callable[[_Path], NDArray[np.float32]]
    write: Callable[[_Path, ArrayLike], None]
    require: Callable[[_Path], object] | None = None  # raises if a package is missing


_FLOW_FORMATS = {
    ".flo": _FlowFormat(read_flo, write_flo),
    ".png": _FlowFormat(read_kitti_flow, write_kitti_flow),
    ".pfm": _FlowFormat(read_pfm, write_pfm),
    ".flo5": _FlowFormat(read_flo5, write_flo5, require_h5py),
    ".npy": _FlowFormat(read_npy, write_npy),
    ".npz": _FlowFormat(read_npz, write_npz),
}
FLOW_SUFFIXES = tuple(_FLOW_FORMATS)
"""What the name of a flow file may end in; upper case counts as well."""


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
        If the suffix is unknown, the file is missing or malformed, or a package is missing.
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
    """Raise at once what `write_flow` would say about this path after the work."""
    kind = _flow_format(path)
    if kind.require is not None:
        kind.require(path)
    check_writable(path)


def _flow_format(path: _Path) -> _FlowFormat:
    return by_suffix(path, _FLOW_FORMATS, "a flow file")
