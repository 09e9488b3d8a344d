"""What the readers share: opening files safely, checks of sizes, suffixes and extras."""

from __future__ import annotations

import importlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import PurePath
from typing import Any, TypeVar

from hamflow.errors import FileError, file_access

T = TypeVar("T")

MAX_PIXELS = 2**27
"""Files that announce more pixels are refused before anything is allocated (16384 × 8192)."""


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[BufferedReader]:
    """Open an existing regular file for reading while the block runs.

    A FileError is raised for a missing file, a directory, a pipe or a device, and for every failure
    of the operating system in the block.
    """
    name = os.fspath(path)
    with file_access(path):
        try:
            # Checked before opening, because opening a pipe without a writer blocks forever.
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
    """Raise a FileError for an announced size without pixels, or of more than `MAX_PIXELS`."""
    name = os.fspath(path)
    if width <= 0 or height <= 0:
        raise FileError(
            f"{name}: its header announces an impossible size of {width} × {height} pixels; "
            f"the file is damaged, get it again."
        )
    if width * height > MAX_PIXELS:
        raise FileError(
            f"{name}: its header announces {width} × {height} pixels, more than the "
            f"{MAX_PIXELS} that Hamflow reads; use a smaller image."
        )


def check_length(
    path: str | os.PathLike[str], width: int, height: int, expected: int, size: int
) -> None:
    """Raise a FileError if a file of `size` bytes does not have the `expected` number of them."""
    if size != expected:
        trouble = "truncated" if size < expected else "too long"
        raise FileError(
            f"{os.fspath(path)}: is {trouble}: {width} × {height} pixels take {expected} bytes, "
            f"but the file has {size}; get it again."
        )


def by_suffix(path: str | os.PathLike[str], known: Mapping[str, T], what: str) -> T:
    """Return the entry of a table for the suffix of a file's name, also in upper case.

    Of several that fit, the longest one counts. If there is none, the FileError calls such files
    `what`.
    """
    name = PurePath(path).name.lower()
    fitting = [suffix for suffix in known if name.endswith(suffix) and name != suffix]
    if not fitting:
        raise FileError(
            f"{os.fspath(path)}: {what} cannot have the suffix {PurePath(path).suffix!r}; use one "
            f"of: {', '.join(known)}."
        )
    return known[max(fitting, key=len)]


def require(path: str | os.PathLike[str], package: str, extra: str) -> Any:
    """Import a package that such a file needs, or raise a FileError that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise FileError(
            f"{os.fspath(path)}: files of this kind need the package {package}: "
            f"pip install 'hamflow[{extra}]'."
        ) from None


def reason(error: Exception) -> str:
    """Return the first line of an exception of another library, to be quoted in a message."""
    return next(iter(str(error).splitlines()), type(error).__name__)
