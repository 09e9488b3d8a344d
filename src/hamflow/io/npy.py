"""Flow in NumPy's files: ``.npy``, and ``.npz`` with an array called ``flow``.

An H×W×2 array of float16, float32 or float64; unknown pixels are NaN (or, as in a ``.flo`` file,
beyond 1e9). Headers are parsed here, by a pattern that knows only such arrays: nothing is
evaluated, nothing unpickled, and nothing allocated before the sizes fit.
"""

from __future__ import annotations

import io
import os
import re
import struct
import zipfile
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.io._reading import check_size, open_regular, reason
from hamflow.io._vectors import known_vectors, vectors_to_write

_MAGIC = b"\x93NUMPY"
# By the major version of the format: how the length of the header is written.
_LENGTHS = {1: struct.Struct("<H"), 2: struct.Struct("<I"), 3: struct.Struct("<I")}
_LONGEST_HEADER = 4096  # NumPy writes 118 bytes for a flow
_ENTRY = re.compile(
    r"\s*'(descr|fortran_order|shape)'\s*:\s*('[^']{1,8}'|True|False|\([\d\s,]{0,99}\))\s*(?:,|$)"
)
_SHAPE = re.compile(r"\(\s*(\d{1,10})\s*,\s*(\d{1,10})\s*,\s*2\s*,?\s*\)")
_FLOATS = {"f2", "f4", "f8"}

_MEMBER = "flow.npy"
_ZIP_START, _ZIP_END = b"PK\x03\x04", b"PK\x05\x06"
_ZIP_END_SIZE = 22
_DEFLATE_RATIO = 1032  # what deflate can reach at best
_BLOCK = 2**20


class _Header(NamedTuple):
    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    fortran_order: bool
    size: int  # of the header itself, in bytes

    @property
    def file_size(self) -> int:
        return self.size + 2 * self.shape[0] * self.shape[1] * self.dtype.itemsize


def read_npy(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read a flow from a ``.npy`` file.

    Parameters
    ----------
    path : str or os.PathLike
        The file to read.

    Returns
    -------
    flow : (H, W, 2) float32
        u to the right and v down; both are NaN where the file has NaN or more than 1e9 in either.

    Raises
    ------
    FileError
        If the file is missing, is no ``.npy`` file, is shorter or longer than it should be, or
        holds another kind of array.
    """
    name = os.fspath(path)
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            header = _read_header(name, file)
            _check_length(name, header, size)
            return _read_array(name, file, header)
    except OSError as error:
        raise FileError(f"{name}: cannot be read ({error.strerror}); check the disk.") from error


def read_npz(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read a flow from a ``.npz`` file.

    Parameters
    ----------
    path : str or os.PathLike
        The file to read. It must hold an array called ``flow``; others are not looked at.

    Returns
    -------
    flow : (H, W, 2) float32
        u to the right and v down; both are NaN where the file has NaN or more than 1e9 in either.

    Raises
    ------
    FileError
        If the file is missing or damaged, is no ``.npz`` file, or holds no such array.
    """
    name = os.fspath(path)
    with open_regular(path) as file:
        try:
            size = _check_zip(name, file)
            with zipfile.ZipFile(file) as archive:
                entry = _find_member(name, archive, size)
                with archive.open(entry) as member:
                    header = _read_header(name, member)
                    _check_length(name, header, entry.file_size)
                    flow = _read_array(name, member, header)
                    # At its end the checksum is compared.
                    if member.read(1):
                        raise FileError(f"{name}: is longer than it says; get it again.")
                    return flow
        except (FileError, MemoryError):
            raise
        # Damaged archives raise exceptions of many unrelated kinds.
        except Exception as error:
            raise FileError(
                f"{name}: cannot be decoded ({reason(error)}); the file is damaged, get it again."
            ) from error


def _check_zip(name: str, file: io.BufferedReader) -> int:
    """Check that the file begins and ends like a zip archive; return its size."""
    size = os.fstat(file.fileno()).st_size
    if file.read(len(_ZIP_START)) != _ZIP_START:
        raise FileError(
            f"{name}: is not a .npz file, because it does not start like a zip archive; check the "
            "format."
        )
    file.seek(max(0, size - _ZIP_END_SIZE))
    end = file.read(_ZIP_END_SIZE)
    # The last two bytes are the length of a comment, which NumPy does not write.
    if not end.startswith(_ZIP_END) or end[-2:] != b"\0\0":
        raise FileError(
            f"{name}: does not end like a .npz file; it is truncated, or something was appended, "
            "get it again."
        )
    file.seek(0)
    return size


def _find_member(name: str, archive: zipfile.ZipFile, size: int) -> zipfile.ZipInfo:
    entries = [entry for entry in archive.infolist() if entry.filename == _MEMBER]
    if len(entries) != 1:
        raise FileError(
            f"{name}: holds {len(entries) or 'no'} arrays called flow; save it with "
            "numpy.savez_compressed(path, flow=flow)."
        )
    entry = entries[0]
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise FileError(
            f"{name}: is compressed in a way that NumPy does not use; save it anew with NumPy."
        )
    # Before anything is allocated: so much cannot come out of what is there.
    if entry.compress_size > size or entry.file_size > _DEFLATE_RATIO * entry.compress_size:
        raise FileError(f"{name}: announces more than it can hold; the file is damaged.")
    return entry


def _read_header(name: str, file: IO[bytes]) -> _Header:
    start = file.read(len(_MAGIC) + 2)
    if not start.startswith(_MAGIC):
        raise FileError(
            f"{name}: holds no array of NumPy, because that starts with \\x93NUMPY; check the "
            "format."
        )
    length = _LENGTHS.get(start[-2]) if len(start) == len(_MAGIC) + 2 else None
    if length is None:
        raise FileError(
            f"{name}: is truncated or in a version of the format that Hamflow does not know; save "
            "it anew with numpy.save."
        )
    field = file.read(length.size)
    announced = length.unpack(field)[0] if len(field) == length.size else 0
    # A lying length allocates nothing.
    text = file.read(min(announced, _LONGEST_HEADER + 1))
    if len(text) > _LONGEST_HEADER or len(text) < announced or not announced:
        raise FileError(
            f"{name}: ends within its header, or that is far too long; the file is damaged, get "
            "it again."
        )
    return _parse_header(name, text, len(start) + len(field) + len(text))


def _parse_header(name: str, text: bytes, size: int) -> _Header:
    entries = _entries(text)
    if entries is None:
        raise FileError(
            f"{name}: its header does not describe a plain array; save the flow as an array of "
            "float32."
        )
    order, kind = entries["descr"][1:2], entries["descr"][2:-1]
    if kind.startswith("O") or entries["descr"] == "'O'":
        raise FileError(
            f"{name}: holds pickled Python objects, which Hamflow never loads; save the flow as an "
            "array of float32."
        )
    if order not in "<>=" or kind not in _FLOATS:
        raise FileError(
            f"{name}: holds numbers of the type {entries['descr']}, but a flow is of float16, "
            "float32 or float64; convert it."
        )
    shape = _SHAPE.fullmatch(entries["shape"])
    if shape is None:
        raise FileError(
            f"{name}: has the shape {entries['shape']}, but a flow has (height, width, 2); bring "
            "its axes into this order."
        )
    height, width = int(shape[1]), int(shape[2])
    check_size(name, width, height)
    fortran_order = entries["fortran_order"] == "True"
    return _Header((height, width, 2), np.dtype(order + kind), fortran_order, size)


def _entries(text: bytes) -> dict[str, str] | None:
    """Return the three entries of the header as text, or None if it is not of this form."""
    line = text.decode("latin-1").strip()
    if not (line.startswith("{") and line.endswith("}")):
        return None
    rest, entries = line[1:-1].strip(), {}
    while rest:
        match = _ENTRY.match(rest)
        if match is None or match[1] in entries:
            return None
        entries[match[1]] = match[2]
        rest = rest[match.end() :]
    forms = {"descr": "'", "fortran_order": "TF", "shape": "("}
    if len(entries) != 3 or any(entries[key][0] not in first for key, first in forms.items()):
        return None
    return entries


def _check_length(name: str, header: _Header, size: int) -> None:
    if size != header.file_size:
        trouble = "truncated" if size < header.file_size else "too long"
        raise FileError(
            f"{name}: is {trouble}: {header.shape[1]} × {header.shape[0]} pixels take "
            f"{header.file_size} bytes, but it has {size}; get it again."
        )


def _read_array(name: str, file: IO[bytes], header: _Header) -> NDArray[np.float32]:
    shape = header.shape[::-1] if header.fortran_order else header.shape
    array = np.empty(shape, header.dtype)
    # Block by block: what is unpacked must not be in memory twice.
    rest = array.reshape(-1).view(np.uint8).data
    while rest:
        block = file.read(min(len(rest), _BLOCK))
        if not block:
            raise FileError(f"{name}: ends within its pixels; the file is damaged, get it again.")
        rest[: len(block)] = block
        rest = rest[len(block) :]
    return known_vectors(array.transpose(2, 1, 0) if header.fortran_order else array)


def write_npy(path: str | os.PathLike[str], flow: ArrayLike) -> None:
    """Write a flow to a ``.npy`` file, atomically, as float32.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write; an existing one is replaced.
    flow : (H, W, 2) array_like
        u and v. A pixel with NaN in either component gets NaN in both.

    Raises
    ------
    InputError
        If the flow has another shape, too many pixels to be read back, or values beyond 1e9.
    FileError
        If the file cannot be written.
    """
    data = vectors_to_write(flow, ".npy", np.nan)
    with atomic_write(path) as file:
        np.lib.format.write_array(file, data, version=(1, 0), allow_pickle=False)


def write_npz(path: str | os.PathLike[str], flow: ArrayLike) -> None:
    """Write a flow to a compressed ``.npz`` file, atomically, as an array ``flow`` of float32.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write; an existing one is replaced.
    flow : (H, W, 2) array_like
        u and v. A pixel with NaN in either component gets NaN in both.

    Raises
    ------
    InputError
        If the flow has another shape, too many pixels to be read back, or values beyond 1e9.
    FileError
        If the file cannot be written.
    """
    data = vectors_to_write(flow, ".npz", np.nan)
    with atomic_write(path) as file:
        np.savez_compressed(file, flow=data)
