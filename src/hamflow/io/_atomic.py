"""Writing files so that they are either complete or do not exist."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from hamflow.errors import FileAccessError, FileError, MissingFileError, file_access
from hamflow.io._lock import OURS, try_lock

_SUFFIX = ".tmp"  # of temporary files
_REFUSED = "cannot hold a temporary file"
_REMEDY = "make room there, or set TMPDIR to another."
_FULL = {errno.ENOSPC, errno.EDQUOT} if hasattr(errno, "EDQUOT") else {errno.ENOSPC}


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that takes the place of `path` when the block ends without an error.

    The bytes go to a temporary file in the same directory, which is flushed to the disk and then
    renamed. After any failure, including an interrupt by the user, the temporary file is removed
    and an existing file at `path` is unchanged; that of a killed process is removed by the next one
    that writes to the directory. A new file gets the permissions that ``open`` would give it, an
    existing one keeps its own. A symbolic link stays a link: the file that it points to is
    replaced. A file that cannot be written is a FileError.
    """
    target, permissions = _resolve(path)
    _clean_once(str(target.parent))
    temporary = target
    try:
        temporary, file = _open_temporary(target.parent)
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if permissions is not None:
                os.chmod(temporary, permissions)
            if os.name == "posix":  # renamed while it is locked, so that nobody takes it for stale
                os.replace(temporary, target)
        if os.name != "posix":
            os.replace(temporary, target)
    except BaseException as error:
        if temporary != target:
            with suppress(OSError):
                os.unlink(temporary)
        # A failed write has no file name; an error about another file is not about this one.
        if not isinstance(error, OSError) or isinstance(error, FileError):
            raise
        if error.filename not in (None, str(temporary), temporary):
            raise
        message = f"{os.fspath(path)}: {_reason(error, target)}"
        raise FileAccessError(message, path, error.errno) from error
    _flush_folder(target.parent)


@contextmanager
def temporary_file(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make an empty file in a folder that is removed when the block ends.

    That of a killed process is removed by the next one that makes one in the folder, or writes to
    it. A file for which there is no room is a FileError.
    """
    _clean_once(os.fspath(folder))
    with file_access(folder, _REFUSED, _REMEDY):
        temporary, file = _open_temporary(Path(folder))
    try:
        with file:
            yield temporary
    except OSError as error:
        if isinstance(error, FileError) or error.filename != str(temporary):
            raise
        message = f"{os.fspath(folder)}: {_REFUSED} ({error.strerror}); {_REMEDY}"
        raise FileAccessError(message, folder, error.errno) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def unnamed_file(size: int) -> FileIO:
    """Make a file of zeros that has no name, and vanishes when it is closed.

    It is in the folder for temporary files. One for which there is no room is a FileError.
    """
    folder = tempfile.gettempdir()
    with file_access(folder, _REFUSED, _REMEDY):
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (the caller closes it)
        try:
            _allocate(file, size)
        except BaseException:
            file.close()
            raise
    return file


def reserve(path: Path, size: int) -> None:
    """Make a file so long that what is written into it later has its place on the disk.

    Otherwise a full disk would kill a process that writes into a mapped file.
    """
    with open(path, "r+b") as file:
        try:
            _allocate(file, size)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error


def _allocate(file: BinaryIO | FileIO, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    file.truncate(size)


def _open_temporary(folder: Path) -> tuple[Path, BinaryIO]:
    """Create a temporary file in a folder, locked for as long as it is open."""
    while True:
        # Not derived from the target's name, which may already be as long as a name can be.
        temporary = folder / f"{OURS}{secrets.token_hex(8)}{_SUFFIX}"
        file = open(temporary, "xb")  # noqa: SIM115  (the caller closes it)
        # Another process may have taken it for a stale one before it was locked here.
        locked = try_lock(file.fileno())
        if locked is None or (locked and temporary.exists()):
            return temporary, file
        file.close()


@lru_cache(maxsize=256)
def _clean_once(folder: str) -> None:
    """Remove stale temporary files, once for each directory that a process writes to."""
    remove_stale(folder)


def remove_stale(folder: str | os.PathLike[str]) -> None:
    """Remove the temporary files in a directory whose writers were killed.

    Only those that nobody holds open are removed: their writers have them locked, and on Windows
    open files cannot be removed. Where there are no locks, they stay.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(OURS) and name.endswith(_SUFFIX):
                with suppress(OSError):
                    _remove_if_stale(entry.path)


def _remove_if_stale(path: str) -> None:
    if os.name != "posix":
        os.unlink(path)
        return
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(number).st_mode) and try_lock(number):
            os.unlink(path)
    finally:
        os.close(number)


def _flush_folder(folder: Path) -> None:
    """Write the new entry of a directory to the disk, where the system can do that.

    Otherwise a loss of power could undo the renaming.
    """
    if os.name != "posix":
        return
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def check_writable(path: str | os.PathLike[str] | None) -> None:
    """Raise at once the FileError that `atomic_write` would raise for this path, if any."""
    if path is None:
        return
    target, _ = _resolve(path)
    if not os.access(target.parent, os.W_OK | os.X_OK):
        message = f"{os.fspath(path)}: {_forbidden(target)}"
        raise FileAccessError(message, path, errno.EACCES)


def make_folder(folder: str | os.PathLike[str]) -> None:
    """Create a folder and those above it, unless they exist."""
    with file_access(folder, "cannot be created as a folder", "choose another path."):
        os.makedirs(folder, exist_ok=True)


def _resolve(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """Follow links; return the true target and, if it exists, its permission bits."""
    name = os.fspath(path)
    try:
        # Not Path.resolve(), which answers a loop of links with a RuntimeError on Python 3.11.
        target = Path(os.path.realpath(name))
        status = os.stat(name)
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise MissingFileError(
                f"{name}: cannot be written because the directory {target.parent} does not "
                f"exist; create it first.",
                name,
            ) from None
        return target, None
    except (OSError, ValueError) as error:
        message = f"{name}: cannot be written ({error}); choose another path."
        raise FileAccessError(message, name, getattr(error, "errno", None)) from error
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{name}: is a directory; give the path of a file to write.")
    if not stat.S_ISREG(status.st_mode):
        # Renaming onto a device or a pipe would replace it by an ordinary file.
        raise FileError(f"{name}: is not a regular file; give the path of a file to write.")
    if not os.access(target, os.W_OK):
        message = f"{name}: is write-protected; change its permissions or choose another path."
        raise FileAccessError(message, name, errno.EACCES)
    return target, stat.S_IMODE(status.st_mode) & 0o777


def _reason(error: OSError, target: Path) -> str:
    if error.errno in _FULL:
        return "cannot be written because the disk is full; free some space and try again."
    if isinstance(error, PermissionError):
        return _forbidden(target)
    return f"cannot be written ({error.strerror or error}); choose another path."


def _forbidden(target: Path) -> str:
    return (
        f"cannot be written because the directory {target.parent} does not permit it; choose "
        "another path."
    )
