"""NumPy's files: ``.npy``, and ``.npz``, which is a zip archive of them.

Nothing is ever unpickled, and nothing is allocated before the sizes are checked.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from hamflow.errors import FileError
from hamflow.io._reading import check_length, check_size, open_regular, reason

Check = Callable[[str, tuple[int, ...], "np.dtype[Any]"], None]
"""Gets the file's path, the announced shape and type; raises a FileError for another array."""

_LONGEST_HEADER = 4096  # NumPy writes 118 bytes for a flow
_PREAMBLE = 12  # bytes before the header at most: magic, version, length

_ZIP_START, _ZIP_END = b"PK\x03\x04", b"PK\x05\x06"
_ZIP_END_SIZE = 22
_DEFLATE_RATIO = 1032  # the strongest compression that deflate can reach
_BLOCK = 2**20


class Archive:
    """The arrays of a ``.npz`` file; `open_npz` makes it."""

    def __init__(self, name: str, archive: zipfile.ZipFile, size: int) -> None:
        self._name, self._archive, self._size = name, archive, size

    def __contains__(self, key: str) -> bool:
        return any(entry.filename == f"{key}.npy" for entry in self._archive.infolist())

    def read(self, key: str, check: Check) -> NDArray[Any]:
        """Read an array, as it is in the file.

        Parameters
        ----------
        key : str
            Its name.
        check : callable
            Called before anything is allocated.

        Raises
        ------
        FileError
            If it is missing or damaged, or `check` raises one.
        """
        entry = self._find(key)
        with self._archive.open(entry) as member:
            array = read_array(self._name, member, entry.file_size, check)
            # Reading the end compares the checksum.
            if member.read(1):
                raise FileError(f"{self._name}: is longer than it says; get it again.")
            return array

    def _find(self, key: str) -> zipfile.ZipInfo:
        name = self._name
        entries = [entry for entry in self._archive.infolist() if entry.filename == f"{key}.npy"]
        if len(entries) != 1:
            raise FileError(
                f"{name}: holds {len(entries) or 'no'} arrays called {key}; save it with "
                f"numpy.savez_compressed(path, {key}={key})."
            )
        entry = entries[0]
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FileError(
                f"{name}: is compressed in a way that NumPy does not use; save it again with NumPy."
            )
        # Checked before anything is allocated.
        if (
            entry.compress_size > self._size
            or entry.file_size > _DEFLATE_RATIO * entry.compress_size
        ):
            raise FileError(
                f"{name}: announces more than it can hold; the file is damaged, get it again."
            )
        return entry


@contextmanager
def open_npz(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open a ``.npz`` file for reading while the block runs.

    A FileError is raised if it is no such file, and for every failure of zipfile in the block.
    """
    name = os.fspath(path)
    with open_regular(path) as file:
        try:
            size = _check_zip(name, file)
            with zipfile.ZipFile(file) as archive:
                yield Archive(name, archive, size)
        except (FileError, MemoryError):
            raise
        # zipfile raises exceptions of many unrelated kinds for damaged archives.
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


def read_array(name: str, file: IO[bytes], size: int, check: Check) -> NDArray[Any]:
    """Read an array of `size` bytes, header included."""
    # No more than this is parsed, so a header with a wrong length allocates nothing.
    start = io.BytesIO(file.read(_PREAMBLE + _LONGEST_HEADER))
    shape, fortran_order, dtype = _read_header(name, start)
    if dtype.hasobject:
        raise FileError(
            f"{name}: holds pickled Python objects, which Hamflow never loads; save the flow as an "
            "array of float32."
        )
    check(name, shape, dtype)
    height, width = (*shape, 1, 1)[:2]
    check_size(name, width, height)
    check_length(name, width, height, start.tell() + math.prod(shape) * dtype.itemsize, size)

    array = np.empty(shape[::-1] if fortran_order else shape, dtype)
    # Block by block, so that the unpacked numbers are not in memory twice.
    rest, block = array.reshape(-1).view(np.uint8).data, start.read()
    while rest:
        rest[: len(block)] = block
        rest = rest[len(block) :]
        block = file.read(min(len(rest), _BLOCK))
        if rest and not block:
            raise FileError(f"{name}: ends within its pixels; the file is damaged, get it again.")
    return array.T if fortran_order else array


def _read_header(name: str, file: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape, the order of the axes and the type of the array."""
    magic = file.read(npy_format.MAGIC_LEN)
    if not magic.startswith(npy_format.MAGIC_PREFIX):
        raise FileError(
            f"{name}: is not a NumPy array, because it does not start with \\x93NUMPY; check the "
            "format."
        )
    # Version 3 differs from 2 in the names of fields only, and a flow has none.
    read = {
        b"\1\0": npy_format.read_array_header_1_0,
        b"\2\0": npy_format.read_array_header_2_0,
        b"\3\0": npy_format.read_array_header_2_0,
    }.get(magic[len(npy_format.MAGIC_PREFIX) :])
    if read is None:
        raise FileError(
            f"{name}: is truncated or in a version of the format that Hamflow does not know; save "
            "it again with numpy.save."
        )
    try:
        shape, fortran_order, dtype = read(file, max_header_size=_LONGEST_HEADER)
    # NumPy raises exceptions of many unrelated kinds for damaged headers.
    except Exception as error:
        raise FileError(
            f"{name}: its header is truncated, longer than {_LONGEST_HEADER} bytes or does not "
            "describe an array; save the flow again with numpy.save."
        ) from error
    return shape, fortran_order, dtype
