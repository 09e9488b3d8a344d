"""The private folder in which everything is kept while the page is served."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hamflow.io._lock import try_lock

_PREFIX = "hamflow-serve-"
_IN_USE = "in-use"  # a file that is locked as long as its server runs


class Workspace:
    """A temporary folder that only its user can read, and that is removed in the end.

    If a server was killed, the next one removes what it has left behind.
    """

    def __init__(self) -> None:
        _remove_stale(Path(tempfile.gettempdir()))
        # mkdtemp makes it readable, writable and searchable only by the user.
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Locked before it has its name, so that nobody takes the folder for a stale one.
        unnamed = self.path / "new"
        self._lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try_lock(self._lock)
        unnamed.rename(self.path / _IN_USE)

    def folder(self) -> Path:
        """Return a new folder in it; its name cannot be guessed."""
        path = self.path / secrets.token_hex(16)
        path.mkdir(mode=0o700)
        return path

    def file(self, suffix: str) -> Path:
        """Return the path of a new file in it."""
        return self.path / f"{secrets.token_hex(16)}{suffix}"

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            os.close(self._lock)


def size_of(folder: Path) -> int:
    """Return how many bytes the files of a folder have."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _remove_stale(folder: Path) -> None:
    """Remove the folders of this user's servers that were killed."""
    if os.name != "posix":  # where an open file cannot be renamed, and locks are others
        return
    for found in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if found.is_symlink() or found.stat().st_uid != os.getuid():
                continue
            number = os.open(found / _IN_USE, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if try_lock(number):
                    shutil.rmtree(found, ignore_errors=True)
            finally:
                os.close(number)
