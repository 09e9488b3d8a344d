"""Locks, so that two runs do not write the same files."""

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

OURS = ".hamflow-"
"""How the names of locks and temporary files begin."""


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a path while the block runs; raise a FileError if another process has locked it.

    The path need not exist, but its folder must. The lock is on a hidden file beside it, because
    the file itself may be replaced meanwhile; that of a folder is in it, because the folder above
    may not be writable. The operating system releases the lock when the
    process ends, even if it is killed. On systems and disks without such locks, nothing is locked.
    """
    if fcntl is None:
        yield
        return
    target = Path(os.path.realpath(path))
    # A hash, because the name itself may already be as long as a name can be.
    name = f"{OURS}{sha256(os.fsencode(target.name)).hexdigest()[:16]}.lock"
    lock = target / name if target.is_dir() else target.with_name(name)
    number = _take(path, lock)
    try:
        yield
    finally:
        # Removed while it is locked: `_take` notices that in a process that has it open already.
        with suppress(OSError):
            os.unlink(lock)
        # Unlocked explicitly: a forked child has the file open, too, and would keep the lock.
        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_UN)
        os.close(number)


def try_lock(number: int) -> bool | None:
    """Lock an open file until it is closed; False if it is locked already, None without locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a disk without locks, as some network disks are
        return None
    return True


def _take(path: str | os.PathLike[str], lock: Path) -> int:
    """Return the number of the open file that is locked."""
    while True:
        with file_access(path, "cannot be locked against other runs", "choose another place."):
            number = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        taken = try_lock(number)
        if taken is None:
            return number
        if not taken:
            holder = os.read(number, 1000).decode(errors="replace")
            os.close(number)
            raise FileError(
                f"{os.fspath(path)}: is in use by another run{f' ({holder})' if holder else ''}; "
                "wait until it ends, or choose another place."
            )
        # The run that held it before may have removed it after it was opened here.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(number), os.stat(lock)):
                with suppress(OSError):  # on a full disk, others are not told who has the lock
                    os.ftruncate(number, 0)
                    os.write(number, f"process {os.getpid()} on {platform.node()}".encode())
                return number
        os.close(number)
