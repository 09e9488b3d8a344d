"""The private folder in which everything is kept while the page is served."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from pathlib import Path


class Workspace:
    """A temporary folder that only its user can read, and that is removed in the end."""

    def __init__(self) -> None:
        # mkdtemp makes it readable, writable and searchable only by the user.
        self.path = Path(tempfile.mkdtemp(prefix="hamflow-serve-"))

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


def size_of(folder: Path) -> int:
    """Return how many bytes the files of a folder have."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
