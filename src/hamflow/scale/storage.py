"""Files by their paths or by the URLs of fsspec, such as ``s3://bucket/frames/0001.png``.

URLs need the package fsspec, of the extra ``scale``, and for most protocols one more, such as s3fs
or gcsfs. A URL that begins with ``file://`` is an ordinary path.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

from hamflow.errors import FileAccessError, FileError, missing_file
from hamflow.io._identity import file_record, unchanged
from hamflow.io._reading import reason, require

_LOCAL = ("file://", "local://")


def plain(path: str | os.PathLike[str]) -> str:
    """Return a path or a URL as text; ``file://`` URLs become paths."""
    text = os.fspath(path)
    for protocol in _LOCAL:
        if text.startswith(protocol):
            return unquote(text.removeprefix(protocol))
    return text


def absolute(path: str | os.PathLike[str]) -> str:
    """Return a URL, or a path that means the same in every process of this machine."""
    text = plain(path)
    return text if is_url(text) else os.path.abspath(text)


def is_url(path: str) -> bool:
    """Return whether this is not the path of a local file."""
    return "://" in path


def join(folder: str, name: str) -> str:
    """Return the path or URL of a file in a folder; `name` may also be complete already."""
    name = plain(name)
    if is_url(name) or os.path.isabs(name):
        return name
    return f"{folder.rstrip('/')}/{name}" if is_url(folder) else os.path.join(folder, name)


def parent(path: str) -> str:
    """Return the folder that a file is in."""
    return path.rpartition("/")[0] if is_url(path) else os.path.dirname(path)


def filesystem(url: str) -> tuple[Any, str]:
    """Return the file system of fsspec for a URL, and the path there."""
    fsspec = require(url, "fsspec", "scale")
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError, OSError) as error:
        raise FileError(
            f"{url}: cannot be reached ({reason(error)}); check the URL, and install what fsspec "
            "needs for it."
        ) from error
    return system, path


def exists(path: str) -> bool:
    """Return whether there is a file or folder."""
    if not is_url(path):
        return os.path.exists(path)
    system, inner = filesystem(path)
    with _named(path):
        return bool(system.exists(inner))


def is_folder(path: str) -> bool:
    """Return whether a path or URL is a folder."""
    if not is_url(path):
        return os.path.isdir(path)
    system, inner = filesystem(path)
    with _named(path):
        return bool(system.isdir(inner))


def files_below(folder: str) -> list[str]:
    """Return the files in a folder and its subfolders, relative to it; none that is hidden."""
    if is_url(folder):
        system, inner = filesystem(folder)
        with _named(folder):
            found = [str(path) for path in system.find(inner)]
        start = len(inner.rstrip("/")) + 1
        names = [path[start:] for path in found]
    else:
        names = [
            os.path.relpath(os.path.join(here, file), folder)
            for here, _, files in os.walk(folder, onerror=_raise)
            for file in files
        ]
    return [n for n in names if not any(part.startswith(".") for part in n.split("/"))]


@contextmanager
def local_copy(path: str) -> Iterator[str]:
    """Yield the path of a file; one at a URL is copied to a temporary folder."""
    if not is_url(path):
        yield path
        return
    with TemporaryDirectory(prefix="hamflow-") as folder:
        target = os.path.join(folder, os.path.basename(path))
        fetch(path, target)
        try:
            yield target
        except FileError as error:
            raise FileError(str(error).replace(target, path)) from error


def fetch(url: str, target: str) -> None:
    """Copy the file at a URL to a path."""
    system, inner = filesystem(url)
    with _named(url):
        system.get_file(inner, target)


def put(source: str | os.PathLike[str], url: str) -> None:
    """Copy a file to a URL, where it appears only when it is complete.

    This is what the transactions of fsspec promise for the storages that support it: among others
    S3, Google Cloud Storage, SFTP and SMB.
    """
    system, inner = filesystem(url)
    with _named(url, "cannot be written"):
        system.makedirs(os.path.dirname(inner), exist_ok=True)
        with (
            system.transaction,
            open(source, "rb") as bytes_read,
            system.open(inner, "wb") as bytes_written,
        ):
            shutil.copyfileobj(bytes_read, bytes_written, 2**20)


def remove(url: str) -> None:
    """Remove the file at a URL, if there is one."""
    system, inner = filesystem(url)
    with _named(url, "cannot be removed"):
        if system.exists(inner):
            system.rm_file(inner)


def identify(path: str) -> dict[str, Any]:
    """Return what tells whether a file has changed, ready for JSON."""
    if not is_url(path):
        return file_record(path)
    system, inner = filesystem(path)
    with _named(path):
        return {"key": str(system.ukey(inner))}


def same(path: str, record: Any) -> bool:
    """Return whether a file is as it was when `identify` was called."""
    if not is_url(path):
        return unchanged(path, record)
    try:
        return bool(identify(path) == record)
    except FileError:
        return False


@contextmanager
def _named(url: str, trouble: str = "cannot be read") -> Iterator[None]:
    """Turn every failure of a storage into a FileError that names the URL."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError as error:
        raise missing_file(url) from error
    except Exception as error:  # each storage has exceptions of its own
        message = f"{url}: {trouble} ({reason(error)}); check the storage."
        raise FileAccessError(message, url, getattr(error, "errno", None)) from error


def _raise(error: OSError) -> None:
    raise FileError(f"{error.filename}: cannot be listed ({error.strerror}).") from error
