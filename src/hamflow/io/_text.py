"""Files of text: tables (CSV) of anyone, such as of pairs or of points, and reports (JSON)."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from typing import Any

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.io._reading import open_regular


def read_rows(
    path: str | os.PathLike[str], *, skipinitialspace: bool = False
) -> tuple[list[str], list[dict[str, str]]]:
    """Read a CSV file; return the names of its columns, and its rows by these names.

    Bytes that are not UTF-8 are kept as the names of files have them (``surrogateescape``). Spaces
    after a comma are part of the cell unless they are to be skipped.

    Raises
    ------
    FileError
        If the file cannot be read, is not a table, or has incomplete rows.
    """
    name = os.fspath(path)
    with (
        open_regular(path) as file,
        io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="") as text,
    ):
        try:
            reader = csv.DictReader(text, strict=True, skipinitialspace=skipinitialspace)
            columns, rows = list(reader.fieldnames or ()), list(reader)
        except csv.Error as error:
            raise FileError(f"{name}: is not a CSV table ({error}); write it again.") from error
    for number, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise FileError(
                f"{name}: row {number} of this CSV table has too many or too few cells; "
                "complete it."
            )
    return columns, rows


def write_csv(path: str | os.PathLike[str], rows: Sequence[dict[str, Any]]) -> None:
    """Write rows that have the same columns; None becomes an empty cell."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with atomic_write(path) as file:
        # The name of a file need not be valid Unicode.
        file.write(text.getvalue().encode(errors="surrogateescape"))


def write_json(path: str | os.PathLike[str], report: dict[str, Any]) -> None:
    """Write a dictionary to a JSON file."""
    with atomic_write(path) as file:
        file.write((json.dumps(report, indent=2) + "\n").encode())
