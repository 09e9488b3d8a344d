"""What long work has done so far, line by line in a file, so that it can be continued."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write, check_writable

Record = dict[str, Any]


class RecordLog:
    """A file in the format JSON Lines: first the settings, then a record for each piece of work.

    The file is made with the first record, and each is on the disk before the next piece of work
    begins. A last line that was cut off is dropped when the file is read.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    resume : bool
        Whether to keep what it holds.
    work, records : str
        What the work and its records are called in messages, as in "fit" and "points".

    Attributes
    ----------
    path : Path
        The file.
    known : tuple of dict
        The records that the file holds.

    Raises
    ------
    FileError
        If the file cannot be written, or holds something else, or holds records that `resume`
        does not ask to keep.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, resume: bool, work: str, records: str
    ) -> None:
        self.path = Path(path)
        self._work, self._records = work, records
        check_writable(self.path)
        self._size = self._size_now()
        lines = read_records(self.path, work) if self._size is not None else []
        if lines and not resume:
            raise FileError(
                f"{self.path}: holds the {records} of an earlier {work} already; resume that "
                f"{work}, choose another place, or remove it."
            )
        self._settings: Record | None = lines[0] if lines else None
        self.known: tuple[Record, ...] = tuple(lines[1:])
        # Records may only be appended to a complete line.
        self._clean = False

    def use(self, settings: Record) -> None:
        """Write records of these settings from now on.

        Raises
        ------
        FileError
            If those in the file were made with others.
        """
        # As they come back from a file: lists for tuples.
        settings = json.loads(json.dumps(settings))
        old = self._settings
        if old is not None and old != settings:
            different = sorted(k for k in {*old, *settings} if old.get(k) != settings.get(k))
            raise FileError(
                f"{self.path}: holds {self._records} of this {self._work} with other "
                f"{', '.join(different)}, which cannot be compared; use the same again, or choose "
                "another place."
            )
        self._settings = settings

    def append(self, record: Record) -> None:
        """Add a record to the file.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        if self._size_now() != self._size:
            raise FileError(
                f"{self.path}: another {self._work} is writing there, too; let it end and resume, "
                "or choose another place."
            )
        if not self._clean:
            with atomic_write(self.path) as file:
                file.writelines(_line(entry) for entry in (self._settings, *self.known))
            self._clean = True
        try:
            with open(self.path, "ab") as file:
                file.write(_line(record))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FileError(
                f"{self.path}: cannot be written ({error.strerror}); what it holds can be resumed."
            ) from error
        self._size = self._size_now()

    def _size_now(self) -> int | None:
        try:
            return self.path.stat().st_size
        except OSError:
            return None


def read_records(path: Path, work: str) -> list[Record]:
    """Return the settings and the records in a log, without a last line that was cut off.

    Parameters
    ----------
    path : Path
        The file.
    work : str
        What it should be the log of, for the message.

    Raises
    ------
    FileError
        If it cannot be read, or is something else.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror}).") from error
    complete = text[: text.rfind(b"\n") + 1].splitlines()
    try:
        records = [json.loads(line) for line in complete]
    except ValueError:
        records = [None]
    # Whatever else the user may have named by mistake must not be overwritten.
    if not all(isinstance(record, dict) for record in records) or (text and not records):
        raise FileError(f"{path}: is not the log of an earlier {work}; choose another place.")
    return cast("list[Record]", records)


def _line(record: Record | None) -> bytes:
    # In ASCII: names of files need not be proper Unicode.
    return json.dumps(record).encode() + b"\n"
