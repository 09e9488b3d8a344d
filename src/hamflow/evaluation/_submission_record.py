"""What a folder of a submission was made with, and what is done: one JSON file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write

RECORD = "hamflow-submission.json"
_MAKER = "hamflow submit"
_NAMED = 3  # settings that an error message lists


@dataclass(frozen=True)
class Done:
    """What is known about a file.

    Attributes
    ----------
    seconds : float
        How long the estimate took.
    invalid : int
        Pixels that are marked as invalid.
    data : str
        Which frames it was computed from; see `hamflow.evaluation.fingerprint`.
    sha256 : str
        Of the file as it was written.
    """

    seconds: float
    invalid: int
    data: str
    sha256: str


class SubmissionRecord:
    """The record of a folder, written anew after each file.

    Parameters
    ----------
    folder : Path
        Exists, and is locked: two runs would overwrite each other's records.
    settings : mapping
        What the files depend on, ready for JSON.
    resume : bool
        Whether the folder may hold such files already.

    Attributes
    ----------
    done : dict of str to Done
        By the names of the files below the folder.

    Raises
    ------
    FileError
        If the folder cannot be written, holds something else, files of other settings, or any
        files that `resume` does not ask to keep. A record without files binds nobody.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], *, resume: bool) -> None:
        self._path = folder / RECORD
        # As they will come back from the file: lists for tuples.
        self._settings: dict[str, Any] = json.loads(json.dumps(settings))
        self.done: dict[str, Done] = {}
        entries = _entries(folder)
        if entries and RECORD not in entries:
            raise FileError(
                f"{folder}: holds files, but no {RECORD} that tells how they were made; choose an "
                "empty folder."
            )
        about = _read(self._path) if entries else {"files": {}}
        if not about["files"]:
            # Before any other file: without it, nobody would know what those are.
            self._write()
        elif resume:
            self._continue(folder, about)
        else:
            raise FileError(
                f"{folder}: holds a submission already; resume it, or choose another folder."
            )

    def _continue(self, folder: Path, about: dict[str, Any]) -> None:
        there, here = dict(_flat(about["settings"])), dict(_flat(self._settings))
        keys = [key for key in sorted({*there, *here}) if there.get(key) != here.get(key)]
        # Methods have settings of their own, which tell nothing more.
        keys = ["method"] if "method" in keys else keys
        different = [f"{key} was {there.get(key)}, not {here.get(key)}" for key in keys]
        if different:
            more = ", ..." if len(different) > _NAMED else ""
            raise FileError(
                f"{folder}: holds a submission with other settings "
                f"({', '.join(different[:_NAMED])}{more}); use the same, or choose another folder."
            )
        self.done = about["files"]

    def add(self, file: str, done: Done) -> None:
        """Note that a file is complete."""
        self.done[file] = done
        self._write()

    def _write(self) -> None:
        files = {name: asdict(entry) for name, entry in sorted(self.done.items())}
        record = {"maker": _MAKER, "settings": self._settings, "files": files}
        with atomic_write(self._path) as file:
            file.write((json.dumps(record, indent=1) + "\n").encode())


def known_files(folder: Path) -> dict[str, Done]:
    """Return what the record of a folder tells about its files.

    Raises
    ------
    FileError
        If it has none that can be read.
    """
    files: dict[str, Done] = _read(folder / RECORD)["files"]
    return files


def _entries(folder: Path) -> set[str]:
    """Return what is in a folder, without hidden files."""
    try:
        return {name for name in os.listdir(folder) if not name.startswith(".")}
    except OSError as error:
        raise FileError(
            f"{folder}: cannot be used ({error.strerror}); choose another folder."
        ) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_bytes())
        if record["maker"] != _MAKER:
            raise ValueError("made by another program")
        files = {name: Done(**entry) for name, entry in record["files"].items()}
        # Raises TypeError where these are no numbers.
        if not all(math.isfinite(done.seconds + done.invalid) for done in files.values()):
            raise ValueError("not a time")
        return {"settings": dict(record["settings"]), "files": files}
    except OSError as error:
        raise FileError(
            f"{path}: cannot be read ({error.strerror}); name the folder of a submission."
        ) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"{path}: is not from '{_MAKER}', or damaged; choose another folder."
        ) from error


def _flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the entries of nested tables by their dotted names."""
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
