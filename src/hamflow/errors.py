"""The exceptions that Hamflow raises on purpose.

Each carries one sentence that names the file or argument at fault and what to do about it. All are
also ``ValueError``, and those that the operating system caused are ``OSError`` as well, so code
that does not know Hamflow's own classes can catch them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

_Path = str | os.PathLike[str]
_READ = "cannot be read"


class HamflowError(Exception):
    """Base of every error that Hamflow raises on purpose."""


class InputError(HamflowError, ValueError):
    """An array or argument that Hamflow cannot work with."""


class FileError(HamflowError, ValueError):
    """A file that is missing, unreadable, malformed or cannot be written.

    The message starts with the file's path.
    """


class FileAccessError(FileError, OSError):
    """A file that the operating system did not let Hamflow read or write.

    Parameters
    ----------
    message : str
        The sentence for the user, which starts with the path.
    filename : str or os.PathLike, optional
        The path.
    number : int, optional
        The operating system's number of the error, `errno`.
    """

    def __init__(
        self, message: str, filename: _Path | None = None, number: int | None = None
    ) -> None:
        super().__init__(message)
        self.filename = None if filename is None else os.fspath(filename)
        self.errno = number
        self.strerror = None if number is None else os.strerror(number)

    def __str__(self) -> str:
        return str(self.args[0])  # without "[Errno 2]", which an OSError would put before it

    def __reduce__(self) -> tuple[type[FileAccessError], tuple[object, ...]]:
        return type(self), (self.args[0], self.filename, self.errno)


class MissingFileError(FileAccessError, FileNotFoundError):
    """A file or folder that does not exist."""

    def __init__(
        self, message: str, filename: _Path | None = None, number: int | None = errno.ENOENT
    ) -> None:
        super().__init__(message, filename, number)


def missing_file(path: _Path, advice: str = "check the path.") -> MissingFileError:
    """Return the error for a file or folder that does not exist."""
    return MissingFileError(f"{os.fspath(path)}: does not exist; {advice}", path)


@contextmanager
def file_access(
    path: _Path,
    trouble: str = _READ,
    advice: str = "check its permissions and the disk.",
) -> Iterator[None]:
    """Turn what the operating system raises in the block into a FileError that names the file.

    Parameters
    ----------
    path : str or os.PathLike
        The file or folder that the block works on.
    trouble : str
        What the message says is impossible.
    advice : str
        What the message says to do about it, unless a file to be read does not exist.

    Raises
    ------
    MissingFileError
        If the file does not exist.
    FileAccessError
        For every other OSError, but not for errors that are Hamflow's already.
    """
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        if missing and trouble == _READ:
            raise missing_file(path) from error
        kind = MissingFileError if missing else FileAccessError
        message = f"{os.fspath(path)}: {trouble} ({error.strerror or error}); {advice}"
        raise kind(message, path, error.errno) from error
