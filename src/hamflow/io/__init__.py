"""Reading and writing of flows and images: strict, bounded, and atomic when writing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import FileError
from hamflow.io._atomic import check_writable
from hamflow.io.flo import read_flo, write_flo
from hamflow.io.images import read_image, write_image
from hamflow.io.kitti import read_kitti_flow, write_kitti_flow

__all__ = ["read_flow", "read_image", "write_flow", "write_image"]

_Path = str | os.PathLike[str]


class _FlowFormat(NamedTuple):
    read: Callable[[_Path], NDArray[np.float32]]
    write: Callable[[_Path, ArrayLike], None]


_FLOW_FORMATS = {
    ".flo": _FlowFormat(read_flo, write_flo),
    ".png": _FlowFormat(read_kitti_flow, write_kitti_flow),
}


def read_flow(path: _Path) -> NDArray[np.float32]:
    """Read a flow; the suffix of the file's name decides the format.

    Parameters
    ----------
    path : str or os.PathLike
        The file to read: ``.flo`` (Middlebury) or ``.png`` (KITTI's 16-bit encoding).

    Returns
    -------
    flow : (H, W, 2) float32
        u to the right and v down, NaN where unknown.

    Raises
    ------
    FileError
        If the suffix is unknown, or the file is missing or malformed.
    """
    return _flow_format(path).read(path)


def write_flow(path: _Path, flow: ArrayLike) -> None:
    """Write a flow, atomically; the suffix of the file's name decides the format.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write: ``.flo`` (Middlebury) or ``.png`` (KITTI's 16-bit encoding, which
        rounds to 1/64 pixel). An existing one is replaced.
    flow : (H, W, 2) array_like
        u to the right and v down, NaN where unknown.

    Raises
    ------
    FileError
        If the suffix is unknown or the file cannot be written.
    InputError
        If the flow has another shape, or values that the format cannot express.
    """
    _flow_format(path).write(path, flow)


def check_flow_path(path: _Path) -> None:
    """Raise at once what `write_flow` would say about this path after the work."""
    _flow_format(path)
    check_writable(path)


def _flow_format(path: _Path) -> _FlowFormat:
    suffix = PurePath(path).suffix
    try:
        return _FLOW_FORMATS[suffix.lower()]
    except KeyError:
        raise FileError(
            f"{os.fspath(path)}: a flow file cannot have the suffix {suffix!r}; "
            f"use one of: {', '.join(_FLOW_FORMATS)}."
        ) from None
