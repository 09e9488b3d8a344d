"""Long work that can be interrupted and continued, by one run at a time.

All long commands (``evaluate``, ``video``, ``batch``, ``submit``, ``synth``, ``train``) follow one
policy: the same command continues where it stopped, other settings or files are refused, and
``--overwrite`` starts again. They share the `WorkLog`, a file in the format JSON Lines: its first
line contains the settings, and each further line describes one finished piece of work. A piece is
computed again if its input or its files have changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import compress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write, check_writable, make_folder
from hamflow.io._identity import unchanged
from hamflow.io._lock import locked
from hamflow.io._reading import open_regular

if TYPE_CHECKING:
    from typing_extensions import Self

Record = dict[str, Any]

LOG = "run.jsonl"
"""The name of the log in the folder of a run."""

_REMEDY = "choose another place, or start again with --overwrite"
_NAMED, _SHOWN = 3, 60  # how many settings, and characters of each value, a message lists


class WorkLog:
    """The log of long work.

    The log is locked until it is closed or the process ends, so that a second run is refused. Each
    record is on the disk before `add` returns; an incomplete last line is ignored. A log without
    records does not fix the settings, and `close` removes it.

    Parameters
    ----------
    path : str or os.PathLike
        The file. Its folder must exist.
    work : str
        The name of the work in messages and in the log, such as "evaluation".
    overwrite : bool
        Start again: forget the records of an earlier run, and remove its files if they are
        unchanged. No other files are ever removed.
    remedy : str
        The advice in the message about other settings.

    Attributes
    ----------
    path : Path
        The file.
    records : dict of str to dict
        The records by their keys. The later one of two records with the same key is used.

    Raises
    ------
    FileError
        If another run uses the log, it cannot be written, or it is another kind of file.
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
        self._made = False  # whether this object created the folder
        self._size: int | None = None  # bytes of the log after the last write
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
        """Open the log of a folder that belongs to one run only, and create the folder if needed.

        Raises a FileError also if the folder contains files, apart from hidden ones, but no log.
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
        """Write the settings, or check that the records in the log were made with the same ones.

        Settings contain, for JSON, everything that the results depend on. Those in `free`, given by
        their dotted names, may differ; others raise a FileError.
        """
        # As they are read from a file: with lists instead of tuples.
        settings = json.loads(json.dumps(settings))
        if self.records:
            self.check(self._settings, settings, free=free)
            # Remove an incomplete last line before records are appended.
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
        # Each method has settings of its own, which need not be named, too.
        names = ["method"] if "method" in names else names
        if names:
            told = [f"{n} was {_short(old.get(n))}, not {_short(new.get(n))}" for n in names]
            more = ", ..." if len(told) > _NAMED else ""
            raise FileError(
                f"{self.path}: holds results of other settings ({', '.join(told[:_NAMED])}{more}); "
                f"use the same settings, {self._remedy}."
            )

    def find(self, key: str, source: str | None = None) -> Record | None:
        """Return the record of a finished piece of work; None if it must be computed (again).

        That is the case if it was computed from another `source`, or a file is missing or changed.
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
        """Append the record of a finished piece of work.

        `source` identifies its input, `files` has the `file_record` of each file by its path in the
        folder of the log, and `values` is further information for JSON.
        """
        known = {"key": key, "source": source, "files": dict(files) if files else None}
        record = {name: value for name, value in known.items() if value is not None} | values
        self.add_all([record])

    def add_all(self, records: Sequence[Record]) -> None:
        """Append the records of several pieces of work at once, each with its ``key``."""
        # Some disks have no locks; this detects another run there.
        if self._size_now() != self._size:
            raise FileError(
                f"{self.path}: was changed by somebody else meanwhile; wait until other runs have "
                "ended, and start this one again."
            )
        try:
            with open(self.path, "ab") as file:
                file.write(b"".join(map(_line, records)))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FileError(
                f"{self.path}: cannot be written ({error.strerror}); solve this, and the same "
                "command continues."
            ) from error
        self._size = self._size_now()
        self.records |= {record["key"]: record for record in records}

    def close(self) -> None:
        """Unlock the log; if there is no record, remove it."""
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
        """Close the log; remove it, its files, and its folder unless it contains other files."""
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
        """Yield the path and the `file_record` of each file of a record."""
        files = record.get("files", {})
        for name, was in files.items() if isinstance(files, dict) else ():
            # A damaged or forged log must not name files outside of its folder.
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
    """Return the settings and the records in a log, without an incomplete last line.

    Raises a FileError if it is not the log of this work, or a record is damaged; `lenient` skips
    damaged records.
    """
    with open_regular(path) as file:
        lines = [_parsed(line) for line in file.read().split(b"\n")[:-1]]
    header = lines[0] if lines else {}
    # The user may have named another file by mistake, which must not be overwritten.
    if header.get("work") != work or not isinstance(header.get("settings"), dict):
        raise FileError(f"{path}: is not the log of an earlier {work}; choose another place.")
    good = [isinstance(record.get("key"), str) for record in lines[1:]]
    if not all(good) and not lenient:
        raise FileError(f"{path}: line {good.index(False) + 2} is damaged; remove that line.")
    return header["settings"], [*compress(lines[1:], good)]


def _visible(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if not name.startswith(".")]


def _parsed(line: bytes) -> Record:
    """Return the JSON object in a line, or an empty one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _line(record: Record) -> bytes:
    # In ASCII, because the name of a file need not be valid Unicode.
    return json.dumps(record).encode() + b"\n"


def _flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the entries of nested mappings by their dotted names."""
    for key, value in tables.items():
        nested = isinstance(value, Mapping)
        yield from _flat(value, f"{prefix}{key}.") if nested else [(prefix + key, value)]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
