"""Keeping a second run away from files that one is at work on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from hamflow.errors import FileError, file_access

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Hold a file or folder for oneself while the block runs.

    What is locked is a hidden file, in the folder or beside the file, because the file itself may
    be replaced meanwhile. The system gives the lock back when the process ends, however it does.
    On systems and disks without such locks, nothing is held.

    Parameters
    ----------
    path : str or os.PathLike
        An existing folder, or a file whose folder exists; the file need not.
    what : str
        What the work is called in messages, as in "submission".

    Raises
    ------
    FileError
        If another run holds it, or the folder cannot be written.
    """
    if fcntl is None:
        yield
        return
    lock = _lock_of(path)
    number = _take(path, lock, what)
    try:
        yield
    finally:
        # Removed while it is held: whoever has it open already finds that out in `_take`.
        with suppress(OSError):
            os.unlink(lock)
        os.close(number)


def _lock_of(path: str | os.PathLike[str]) -> Path:
    target = Path(os.path.realpath(path))
    if target.is_dir():
        return target / ".hamflow.lock"
    # Not the name itself, which may already be as long as a name can be.
    return target.with_name(f".hamflow-{sha256(os.fsencode(target.name)).hexdigest()[:16]}.lock")


def _take(path: str | os.PathLike[str], lock: Path, what: str) -> int:
    """Return the open file that holds the lock."""
    while True:
        with file_access(path, "cannot be locked against other runs", "choose another place."):
            number = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(number)
            raise FileError(
                f"{os.fspath(path)}: another {what} is at work there; wait for its end, or choose "
                "another place."
            ) from None
        except OSError:  # a disk without locks, as some of a network are
            return number
        # The run that held it before may have removed it after it was opened here.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(number), os.stat(lock)):
                return number
        os.close(number)
