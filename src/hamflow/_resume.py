"""Long work that can be interrupted and continued; one run at a time in each place.

All long commands (``evaluate``, ``video``, ``submit``, ``synth``, ``train``) have one policy: the
same command continues where it stopped, other settings or files are refused, and ``--overwrite``
begins anew. What they share is the `WorkLog`, a file in the format JSON Lines: its first line holds
the settings, and each further line tells about one finished piece of work. Such a line counts only
while it is true: the piece was computed from the same input, and its files are unchanged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import compress
from pathlib import Path, PurePath
from typing import Any, Self

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write, check_writable, make_folder
from hamflow.io._identity import unchanged
from hamflow.io._lock import locked
from hamflow.io._reading import open_regular

Record = dict[str, Any]

LOG = "run.jsonl"
"""Name of the log in the folder of a run."""

_REMEDY = "choose another place, or begin anew with --overwrite"
_NAMED, _SHOWN = 3, 60  # settings that an error message lists, and characters of each value


class WorkLog:
    """What long work has done so far.

    The log is locked until it is closed, so a second run is refused at once. The operating system
    gives the lock back when the process ends, in whatever way. Each record is on the disk before
    `add` returns; a last line that was cut off is dropped. A log without any record binds nobody to
    its settings, and `close` removes it.

    Parameters
    ----------
    path : str or os.PathLike
        The file. Its directory must exist.
    work : str
        What the work is called in messages and in the log, as in "evaluation".
    overwrite : bool
        Begin anew: drop the records of an earlier run, and remove the files that it wrote and that
        are unchanged. Nothing else is ever removed.
    remedy : str
        What to advise if the log has other settings.

    Attributes
    ----------
    path : Path
        The file.
    records : dict of str to dict
        The records by their keys. Of two records with the same key, the later one counts.

    Raises
    ------
    FileError
        If another run holds the log, it cannot be written, or it is something else.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        work: str,
        *,
        overwrite: bool = False,
        remedy: str = _REMEDY,
    ) -> None:
        self.path = Path(path)
        self._work, self._remedy = work, remedy
        self._made = False  # whether the folder was made here
        self._size: int | None = None  # of the log, up to the end of its last complete line
        check_writable(self.path)
        with ExitStack() as stack:
            stack.enter_context(locked(self.path))
            self._settings: Mapping[str, Any] = {}
            old: list[Record] = []
            if self.path.exists():
                self._settings, old = read_log(self.path, work, lenient=overwrite)
            self._held = stack.pop_all()
        self._dropped = old if overwrite else []
        self.records = {} if overwrite else {record["key"]: record for record in old}

    @classmethod
    def in_folder(
        cls, folder: str | os.PathLike[str], work: str, *, overwrite: bool = False
    ) -> Self:
        """Open the log of a folder that belongs to one run alone; make the folder if need be.

        Raises
        ------
        FileError
            If the folder cannot be used, or holds files but no log; hidden files do not count.
        """
        place = Path(folder)
        made = not place.exists()
        make_folder(place)
        log = cls(place / LOG, work, overwrite=overwrite)
        log._made = made
        if not log.path.exists() and _visible(place):
            log.close()
            raise FileError(
                f"{place}: holds files, but no {LOG} that tells how they were made; choose a new "
                "or empty folder."
            )
        return log

    def begin(self, settings: Mapping[str, Any], *, free: Collection[str] = ()) -> None:
        """Write the settings; or check that the records in the log were made with the same.

        Settings are what the results depend on, ready for JSON; those in `free`, by their dotted
        names, may differ.

        Raises
        ------
        FileError
            If others differ; the message names the first few.
        """
        # As they come back from a file: lists for tuples.
        settings = json.loads(json.dumps(settings))
        if self.records:
            self.check(self._settings, settings, free=free)
            # Records may only be appended to a complete line.
            os.truncate(self.path, self.path.read_bytes().rfind(b"\n") + 1)
        else:
            for record in self._dropped:
                self._remove_files(record)
            with atomic_write(self.path) as file:
                file.write(_line({"work": self._work, "settings": settings}))
            self._settings, self._dropped = settings, []
        self._size = self._size_now()

    def check(
        self, there: Mapping[str, Any], here: Mapping[str, Any], *, free: Collection[str] = ()
    ) -> None:
        """Raise a FileError that names the first few entries in which two mappings differ."""
        old, new = dict(_flat(there)), dict(_flat(here))
        names = [n for n in sorted({*old, *new}) if old.get(n) != new.get(n) and n not in free]
        # Each method has settings of its own, which tell nothing more.
        names = ["method"] if "method" in names else names
        if names:
            told = [f"{n} was {_short(old.get(n))}, not {_short(new.get(n))}" for n in names]
            more = ", ..." if len(told) > _NAMED else ""
            raise FileError(
                f"{self.path}: holds results of other settings ({', '.join(told[:_NAMED])}{more}); "
                f"use the same settings, {self._remedy}."
            )

    def find(self, key: str, source: str | None = None) -> Record | None:
        """Return the record of a piece of work; None if that piece has to be computed (again).

        The latter also if it was computed from something else, as its `source` tells, or if one of
        its files is missing or was changed.
        """
        record = self.records.get(key)
        if record is None or record.get("source") != source:
            return None
        return record if all(unchanged(path, was) for path, was in self._files(record)) else None

    def add(
        self,
        key: str,
        *,
        source: str | None = None,
        files: Mapping[str, Mapping[str, Any]] | None = None,
        **values: Any,
    ) -> None:
        """Append the record of a piece of work whose files are complete.

        `source` is the identity of what it was computed from, `files` has the `file_record` of each
        file by its path below the log's folder, and `values` what else is known, ready for JSON.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        known = {"key": key, "source": source, "files": dict(files) if files else None}
        record = {name: value for name, value in known.items() if value is not None} | values
        # Where there are no locks, this is how another run is noticed.
        if self._size_now() != self._size:
            raise FileError(
                f"{self.path}: was changed by somebody else meanwhile; wait until other runs have "
                "ended, and start this one again."
            )
        try:
            with open(self.path, "ab") as file:
                file.write(_line(record))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FileError(
                f"{self.path}: cannot be written ({error.strerror}); the same command continues "
                "once that is mended."
            ) from error
        self._size = self._size_now()
        self.records[key] = record

    def close(self) -> None:
        """Unlock the log; if nothing was done, leave no trace of it."""
        mine = self._size is not None and self._size == self._size_now()
        if (
            mine
            and not self.records
            and (self.path.name != LOG or _visible(self.path.parent) == [LOG])
        ):
            with suppress(OSError):
                self.path.unlink()
        self._held.close()
        if self._made and not self.records:
            with suppress(OSError):
                self.path.parent.rmdir()

    def remove(self) -> None:
        """Close the log and remove it, its files, and its folder if nothing else is in there."""
        for record in self.records.values():
            self._remove_files(record)
        self.path.unlink(missing_ok=True)
        self.records, self._made = {}, True
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _files(self, record: Record) -> Iterator[tuple[Path, Any]]:
        """Yield the files of a record, with what it tells of them."""
        files = record.get("files", {})
        for name, was in files.items() if isinstance(files, dict) else ():
            # A damaged or forged log must not lead out of its folder.
            if not PurePath(name).is_absolute() and ".." not in PurePath(name).parts:
                yield self.path.parent / name, was

    def _remove_files(self, record: Record) -> None:
        for path, was in self._files(record):
            if unchanged(path, was):
                with suppress(OSError):
                    path.unlink()

    def _size_now(self) -> int | None:
        return self.path.stat().st_size if self.path.exists() else None


def read_log(path: Path, work: str, *, lenient: bool = False) -> tuple[Record, list[Record]]:
    """Return the settings and the records in a log, without a last line that was cut off.

    Raises
    ------
    FileError
        If it cannot be read, or is not the log of this work, or (unless `lenient`) if a record is
        damaged.
    """
    with open_regular(path) as file:
        lines = [_parsed(line) for line in file.read().split(b"\n")[:-1]]
    header = lines[0] if lines else {}
    # Whatever else the user may have named by mistake must not be overwritten.
    if header.get("work") != work or not isinstance(header.get("settings"), dict):
        raise FileError(f"{path}: is not the log of an earlier {work}; choose another place.")
    good = [isinstance(record.get("key"), str) for record in lines[1:]]
    if not all(good) and not lenient:
        raise FileError(f"{path}: line {good.index(False) + 2} is damaged; remove that line.")
    return header["settings"], [*compress(lines[1:], good)]


def _visible(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if not name.startswith(".")]


def _parsed(line: bytes) -> Record:
    """Return the object that a line holds, or an empty one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _line(record: Record) -> bytes:
    # In ASCII: names of files need not be proper Unicode.
    return json.dumps(record).encode() + b"\n"


def _flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the entries of nested tables by their dotted names."""
    for key, value in tables.items():
        nested = isinstance(value, Mapping)
        yield from _flat(value, f"{prefix}{key}.") if nested else [(prefix + key, value)]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
