"""The exceptions that Hamflow raises on purpose.

The message of each is one sentence that names the file or argument, what is wrong, and what to do.
All are also ``ValueError``, and those that the operating system caused are also ``OSError``, so
that they can be caught without Hamflow's own classes.
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
    """An array or argument with a wrong value."""


class FileError(HamflowError, ValueError):
    """A file that is missing or damaged, or cannot be read or written.

    The message starts with the file's path. Characters that cannot be printed, in the path or in
    what is quoted of the file, are written as in Python, so that it is always one line.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_printable(message))


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class FileAccessError(FileError, OSError):
    """A file that the operating system did not let Hamflow read or write.

    Parameters
    ----------
    message : str
        One sentence, which starts with the path.
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
        return str(self.args[0])  # without the "[Errno 2]" of an OSError

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
    """Turn every OSError in the block into a FileError that names the file.

    Its message consists of `path`, `trouble`, the reason and `advice`; a file to be read that does
    not exist has a message of its own.
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
