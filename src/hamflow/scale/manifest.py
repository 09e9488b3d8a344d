"""Tables of pairs: those that a user hands in, and the one that tells how each pair went."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.io._reading import open_regular, reason, require
from hamflow.io._text import read_rows, write_csv
from hamflow.scale import storage

TABLE_SUFFIXES = (".csv", ".parquet")
"""The suffixes of tables of pairs."""
MANIFEST = "manifest"
"""The name of the two tables of a batch, without their suffixes."""

_GIVEN = ("name", "image0", "image1")  # the columns of a table that is handed in
_MOST_ROWS = 10_000_000
_ROOM = 2**25  # bytes that pyarrow may need to write a table

COLUMNS: dict[str, type] = {
    "name": str,
    "status": str,  # done, failed or pending
    "image0": str,
    "image1": str,
    "frame0": int,
    "frame1": int,
    "width": int,
    "height": int,
    "gap": float,
    "seconds": float,
    "seconds_read": float,
    "seconds_estimate": float,
    "seconds_write": float,
    "attempts": int,
    "worker": str,
    "error": str,
}
"""The columns of the manifest."""


def read_table(path: str) -> list[dict[str, str]]:
    """Read a table with the columns image0 and image1, and perhaps name."""
    with storage.local_copy(path) as file:
        rows = read_rows(file)[1] if path.lower().endswith(".csv") else _read_parquet(file)
        columns = set(rows[0]) if rows else set()
        if not {"image0", "image1"} <= columns:
            raise FileError(
                f"{file}: has no pairs in columns called image0 and image1; name them so (a "
                "column called name is optional)."
            )
    return rows


def _read_parquet(path: str) -> list[dict[str, str]]:
    parquet = require(path, "pyarrow.parquet", "scale")
    with open_regular(path) as file:
        try:
            table = parquet.ParquetFile(file)
            # Repeated values take next to nothing in the file, but each its own memory here.
            if table.metadata.num_rows > _MOST_ROWS:
                raise FileError(f"{path}: has more than {_MOST_ROWS} pairs; divide the table.")
            known = [name for name in _GIVEN if name in table.schema_arrow.names]
            rows = table.read(columns=known).to_pylist()
        except (FileError, MemoryError):
            raise
        except Exception as error:  # pyarrow's own
            raise FileError(f"{path}: is not a Parquet table ({reason(error)}).") from error
    return [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows]


def write_manifest(folder: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Write rows with `COLUMNS` as CSV and, if pyarrow is installed, as Parquet.

    `folder` is a path or a URL. Returns the paths of the tables.
    """
    written = []
    with TemporaryDirectory(prefix="hamflow-") as temporary:
        place = temporary if storage.is_url(folder) else folder
        path = os.path.join(place, f"{MANIFEST}.csv")
        write_csv(path, rows)
        written.append(path)
        if find_spec("pyarrow") is not None:
            path = os.path.join(place, f"{MANIFEST}.parquet")
            with atomic_write(path) as file:
                file.write(_parquet(rows))
            written.append(path)
        if place == folder:
            return written
        targets = [storage.join(folder, os.path.basename(path)) for path in written]
        for path, target in zip(written, targets, strict=True):
            storage.put(path, target)
        return targets


def _parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    np.empty(_ROOM, np.uint8)  # a MemoryError, where pyarrow would end the process
    import pyarrow as pa  # noqa: PLC0415  (an extra)
    import pyarrow.parquet as pq  # noqa: PLC0415

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    columns = {
        name: [_text(row[name]) if kind is str else row[name] for row in rows]
        for name, kind in COLUMNS.items()
    }
    target = io.BytesIO()
    pq.write_table(pa.table(columns, schema), target)
    return target.getvalue()


def _text(value: Any) -> str | None:
    # The name of a file need not be valid Unicode.
    return None if value is None else str(value).encode(errors="replace").decode()
