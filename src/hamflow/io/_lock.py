"""Keeping a second run away from files that one is at work on."""

from __future__ import annotations

import os
import platform
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
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a file while the block runs.

    What is locked is a hidden file beside it, because the file itself may be replaced meanwhile.
    The operating system gives the lock back when the process ends, in whatever way. On systems and
    disks without such locks, nothing is held.

    Parameters
    ----------
    path : str or os.PathLike
        A file whose folder exists; the file need not.

    Raises
    ------
    FileError
        If another process holds it, or the folder cannot be written.
    """
    if fcntl is None:
        yield
        return
    target = Path(os.path.realpath(path))
    # Not the name itself, which may already be as long as a name can be.
    lock = target.with_name(f".hamflow-{sha256(os.fsencode(target.name)).hexdigest()[:16]}.lock")
    number = _take(path, lock)
    try:
        yield
    finally:
        # Removed while it is held: whoever has it open already finds that out in `_take`.
        with suppress(OSError):
            os.unlink(lock)
        # A forked child has the file open, too, and would keep the lock.
        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_UN)
        os.close(number)


def _take(path: str | os.PathLike[str], lock: Path) -> int:
    """Return the open file that holds the lock."""
    while True:
        with file_access(path, "cannot be locked against other runs", "choose another place."):
            number = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            holder = os.read(number, 1000).decode(errors="replace")
            os.close(number)
            raise FileError(
                f"{os.fspath(path)}: is in use by another run{f' ({holder})' if holder else ''}; "
                "wait until it ends, or choose another place."
            ) from None
        except OSError:  # a disk without locks, as some network disks are
            return number
        # The run that held it before may have removed it after it was opened here.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(number), os.stat(lock)):
                with suppress(OSError):  # a full disk: then nobody is told who it is
                    os.ftruncate(number, 0)
                    os.write(number, f"process {os.getpid()} on {platform.node()}".encode())
                return number
        os.close(number)
