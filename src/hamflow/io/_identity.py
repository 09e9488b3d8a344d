"""What tells a file from any other one, so that a change is noticed."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from hamflow.errors import FileError
from hamflow.io._reading import open_regular


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file.

    Raises
    ------
    FileError
        If it cannot be read.
    """
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(
            f"{os.fspath(path)}: cannot be read ({error.strerror}); check the disk."
        ) from error


def file_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the size, the time of change and the SHA-256 of a file, ready for JSON."""
    status = os.stat(path)
    return {"bytes": status.st_size, "modified": status.st_mtime_ns, "sha256": file_digest(path)}


def unchanged(path: str | os.PathLike[str], record: Any) -> bool:
    """Say whether a file is the one of a `file_record`; False for any other kind of record."""
    try:
        status = os.stat(path)
        if status.st_size != record["bytes"]:
            return False
        # Only what was touched is read: a run may have written many gigabytes.
        same = status.st_mtime_ns == record["modified"] or file_digest(path) == record["sha256"]
        return bool(same)
    except (OSError, FileError, KeyError, TypeError):
        return False
