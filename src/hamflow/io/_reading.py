"""What the readers share: opening a file safely, and how large a picture may be."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader

from hamflow.errors import FileError, file_access

MAX_PIXELS = 2**27
"""Files that announce more pixels are refused before anything is allocated (16384 × 8192)."""


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[BufferedReader]:
    """Open an existing regular file for reading while the block runs.

    Raises
    ------
    FileError
        If there is no such file, or it is a directory, a pipe or a device, or not readable; also
        if the operating system fails to read it in the block.
    """
    name = os.fspath(path)
    with file_access(path):
        try:
            # Asked before opening, because opening a pipe that nobody writes to waits for ever.
            mode = os.stat(name).st_mode
        except ValueError as error:  # a NUL character in the path
            raise FileError(f"{name}: cannot be opened ({error}); check the path.") from error
        if stat.S_ISDIR(mode):
            raise FileError(f"{name}: is a directory; give the path of a file.")
        if not stat.S_ISREG(mode):
            raise FileError(f"{name}: is not a regular file; save its content to one first.")
        with open(name, "rb") as file:
            yield file


def check_size(path: str | os.PathLike[str], width: int, height: int) -> None:
    """Refuse pictures without pixels and pictures beyond `MAX_PIXELS`.

    Raises
    ------
    FileError
        If the announced size is not acceptable.
    """
    name = os.fspath(path)
    if width <= 0 or height <= 0:
        raise FileError(
            f"{name}: its header announces an impossible size of {width} × {height} pixels; "
            f"the file is damaged, get it again."
        )
    if width * height > MAX_PIXELS:
        raise FileError(
            f"{name}: its header announces {width} × {height} pixels, more than the "
            f"{MAX_PIXELS} that Hamflow reads; use a smaller picture."
        )


def check_length(
    path: str | os.PathLike[str], width: int, height: int, expected: int, size: int
) -> None:
    """Refuse files that are shorter or longer than their pixels take.

    Raises
    ------
    FileError
        If `size` is not the number of bytes that is expected.
    """
    if size != expected:
        trouble = "truncated" if size < expected else "too long"
        raise FileError(
            f"{os.fspath(path)}: is {trouble}: {width} × {height} pixels take {expected} bytes, "
            f"but the file has {size}; get it again."
        )


def reason(error: Exception) -> str:
    """Return what another library's exception says, to be put into one sentence."""
    return next(iter(str(error).splitlines()), type(error).__name__)
