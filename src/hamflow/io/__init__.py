"""Reading and writing of flows and images: strict, bounded, and atomic when writing."""

from __future__ import annotations

import os
from pathlib import PurePath
from pkgutil import resolve_name

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import FileError, InputError
from hamflow.io._atomic import check_writable
from hamflow.io._flow_format import FlowFormat
from hamflow.io._reading import by_suffix
from hamflow.io.images import read_image, write_image

__all__ = ["read_flow", "read_image", "write_flow", "write_image"]

_Path = str | os.PathLike[str]

FLOW_FORMATS = {
    ".flo": "hamflow.io.flo:FLO",
    ".kitti.png": "hamflow.io.kitti:KITTI",
    ".pfm": "hamflow.io.pfm:PFM",
    ".flo5": "hamflow.io.flo5:FLO5",
    ".npy": "hamflow.io.npy:NPY",
    ".npz": "hamflow.io.npy:NPZ",
    ".tif": "hamflow.io.tiff:TIFF",
}
"""Where the `FlowFormat` of each suffix is. A new format is one file and one line here."""
FLOW_SUFFIXES = tuple(FLOW_FORMATS)
"""The suffixes of flow files to write, which may also be in upper case."""
READABLE_SUFFIXES = (*FLOW_FORMATS, ".png")
"""The suffixes of flow files to read: KITTI's own files end in a plain ``.png``."""
_KITTI, _PICTURE = ".kitti.png", ".png"


def read_flow(path: _Path) -> NDArray[np.float32]:
    """Read a flow; the suffix of the file's name decides the format.

    Parameters
    ----------
    path : str or os.PathLike
        The file to read: ``.flo`` (Middlebury), ``.png`` or ``.kitti.png`` (KITTI's 16-bit
        encoding), ``.pfm`` (FlyingThings3D), ``.flo5`` (Spring's HDF5), ``.npy``, or
        ``.npz`` with an array called ``flow``.

    Returns
    -------
    flow : (H, W, 2) float32
        u to the right and v down; both are NaN where the file marks either as unknown.

    Raises
    ------
    FileError
        If the suffix is unknown, or the file is missing or damaged.
    """
    known = dict.fromkeys(READABLE_SUFFIXES, FLOW_FORMATS[_KITTI]) | FLOW_FORMATS
    kind: FlowFormat = resolve_name(by_suffix(path, known, "a flow file"))
    return kind.read(path)


def write_flow(path: _Path, flow: ArrayLike, *, format: str | None = None) -> None:
    """Write a flow, atomically; the suffix of the file's name decides the format.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write: ``.flo`` (Middlebury), ``.kitti.png`` (KITTI's 16-bit encoding, which
        rounds to 1/64 pixel), ``.pfm`` (FlyingThings3D), ``.flo5`` (Spring's HDF5; needs the extra
        ``flo5``), ``.npy``, ``.npz`` (compressed, as an array called ``flow``), or ``.tif`` (tiles
        with two channels of float32; needs the extra ``tiff``). An existing one is replaced. A
        plain ``.png`` is refused, because it would be taken for a picture; for a picture write
        `hamflow.flow_to_color` with `hamflow.write_image`.
    flow : (H, W, 2) array_like
        u to the right and v down. A pixel with NaN in either component is written as unknown.
    format : str, optional
        ``"flo"``, ``"kitti"``, ``"pfm"``, ``"flo5"``, ``"npy"``, ``"npz"`` or
        ``"tif"``. With ``"kitti"``, a
        plain ``.png`` is allowed, as KITTI's own files have it.

    Raises
    ------
    FileError
        If the suffix is unknown, the file cannot be written, or a package is missing.
    InputError
        If the flow has another shape, or values that the format cannot express; or if there is no
        such format.
    """
    _format_to_write(path, format).write(path, flow)


def check_flow_path(path: _Path, format: str | None = None) -> None:
    """Raise at once the error that `write_flow` would raise for this path and format."""
    kind = _format_to_write(path, format)
    if kind.require is not None:
        kind.require(path)
    check_writable(path)


def split_flow_name(path: _Path) -> tuple[str, str]:
    """Return the name of a flow file without its suffix, and the suffix in lower case.

    The suffix is "" if it is not one of `READABLE_SUFFIXES`.

    Examples
    --------
    >>> split_flow_name("out/a.kitti.PNG"), split_flow_name("b.txt")
    (('a', '.kitti.png'), ('b.txt', ''))
    """
    name = PurePath(path).name
    try:
        suffix = by_suffix(path, {known: known for known in READABLE_SUFFIXES}, "a flow file")
    except FileError:
        return name, ""
    return name[: -len(suffix)], suffix


def _format_to_write(path: _Path, format: str | None) -> FlowFormat:
    name, suffix = os.fspath(path), split_flow_name(path)[1]
    if format is not None:
        names = {"kitti" if known == _KITTI else known[1:]: known for known in FLOW_FORMATS}
        if format not in names:
            raise InputError(f"format must be one of {', '.join(names)}, not {format!r}.")
        ending = _PICTURE if format == "kitti" else names[format]
        if not suffix.endswith(ending):
            raise FileError(f"{name}: a file in the format {format} needs the suffix {ending}.")
        place = FLOW_FORMATS[names[format]]
    elif suffix == _PICTURE:
        raise FileError(
            f"{name}: a flow is not written to a plain .png file, which would look like a broken "
            f"picture; for KITTI's 16 bits name it {name[: -len(_PICTURE)]}{_KITTI}, and for a "
            "picture in colors use hamflow viz, the option --viz, or the function flow_to_color."
        )
    else:
        place = by_suffix(path, FLOW_FORMATS, "a flow file")
    kind: FlowFormat = resolve_name(place)
    return kind
