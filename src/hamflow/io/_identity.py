"""Records of files, so that a change of their content is noticed."""

from __future__ import annotations

import hashlib
import os
from typing import IO, Any

from hamflow.errors import FileError
from hamflow.io._reading import open_regular


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    with open_regular(path) as file:
        return digest(file)


def digest(file: IO[bytes]) -> str:
    """Return the SHA-256 of what is left to read in an open file."""
    found = hashlib.sha256()
    while block := file.read(2**18):
        found.update(block)
    return found.hexdigest()


def file_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the size, the time of change and the SHA-256 of a file, ready for JSON."""
    status = os.stat(path)
    return {"bytes": status.st_size, "modified": status.st_mtime_ns, "sha256": file_digest(path)}


def unchanged(path: str | os.PathLike[str], record: Any) -> bool:
    """Return whether a file still has the content of its `file_record`."""
    try:
        status = os.stat(path)
        if status.st_size != record["bytes"]:
            return False
        # Only files that were touched are read: a run may have written many gigabytes.
        same = status.st_mtime_ns == record["modified"] or file_digest(path) == record["sha256"]
        return bool(same)
    except (OSError, FileError, KeyError, TypeError):
        return False
