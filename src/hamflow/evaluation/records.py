"""What was measured on each pair, and what it comes to."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hamflow.errors import FileError, file_access
from hamflow.evaluation.metrics import FlowMetrics, PooledMetrics, pool
from hamflow.io._atomic import atomic_write

ERROR_EDGES = tuple(float(edge) for edge in (0, *(2.0**k for k in np.arange(-6, 9.5, 0.5))))
"""Edges of the bins of endpoint errors in pixels; the last bin has no upper edge."""


@dataclass(frozen=True, eq=False)
class PairRecord:
    """The measurements of one pair.

    Attributes
    ----------
    pair : str
        Its name.
    metrics : FlowMetrics or None
        Errors; None if the method failed.
    seconds : float
        Time of the estimate, without reading files.
    peak_memory : int or None
        Most bytes that the process had meanwhile; None where the system does not tell.
    ause : float or None
        Area between the sparsification curves of the confidence; None without one.
    gap : float or None
        Duality gap of the joint model.
    occlusion_f1 : float or None
        F1 of the occlusions, where both they and the truth about them are known.
    failed : str
        What went wrong, or "".
    histogram : tuple of int
        Pixels by endpoint error, between the `ERROR_EDGES`.
    data : str
        Which files the pair was read from; see `hamflow.evaluation.fingerprint`.
    curve, oracle : tuple of float
        Of `hamflow.evaluation.sparsification`, every fifth point; empty without confidence.
    """

    pair: str
    metrics: FlowMetrics | None
    seconds: float
    peak_memory: int | None = None
    ause: float | None = None
    gap: float | None = None
    occlusion_f1: float | None = None
    failed: str = ""
    data: str = ""
    histogram: tuple[int, ...] = ()
    curve: tuple[float, ...] = ()
    oracle: tuple[float, ...] = ()

    @property
    def epe(self) -> float:
        """The endpoint error over all pixels, of a pair on which the method did not fail."""
        assert self.metrics is not None
        return self.metrics.epe_all

    def as_row(self) -> dict[str, Any]:
        """Return the columns of the CSV, always the same in the same order."""
        blank = dict.fromkeys(_METRICS)
        return {
            "pair": self.pair,
            **(blank if self.metrics is None else self.metrics.as_row()),
            "ause": self.ause,
            "occlusion_f1": self.occlusion_f1,
            "gap": self.gap,
            "seconds": self.seconds,
            "peak_memory": self.peak_memory,
            "failed": self.failed,
        }

    def as_json(self) -> dict[str, Any]:
        """Return everything as a record of a `hamflow._resume.WorkLog`; `from_json` reverts it."""
        detail = {name: list(getattr(self, name)) for name in ("histogram", "curve", "oracle")}
        row = self.as_row()
        return {"key": row.pop("pair"), "source": self.data, **row, **detail}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> PairRecord:
        """Return the record that `as_json` was called on; a KeyError or TypeError if it was not."""
        metrics = None if data["failed"] else FlowMetrics.from_row(data)
        lists: dict[str, Any] = {
            name: tuple(data[name]) for name in ("histogram", "curve", "oracle")
        }
        rest = {
            entry.name: data[entry.name]
            for entry in fields(cls)
            if entry.name not in ("pair", "data", "metrics", *lists)
        }
        return cls(data["key"], metrics, data=data["source"], **rest, **lists)


_METRICS = tuple(entry.name for entry in fields(FlowMetrics) if entry.name != "sums")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All pairs of a data set, measured with one method.

    Attributes
    ----------
    label : str
        Of the method.
    settings : dict
        Data set and method, ready for JSON.
    records : tuple of PairRecord
    """

    label: str
    settings: dict[str, Any]
    records: tuple[PairRecord, ...]

    @property
    def done(self) -> tuple[PairRecord, ...]:
        """The records of the pairs on which the method did not fail."""
        return tuple(record for record in self.records if record.metrics is not None)

    @property
    def pooled(self) -> PooledMetrics | None:
        """The errors of all pairs together; None if there are none."""
        metrics = [record.metrics for record in self.records if record.metrics is not None]
        return pool(metrics) if metrics else None

    @property
    def masked(self) -> int:
        """On how many of these pairs occlusions are known: the others have no noc, occ and d."""
        metrics = (record.metrics for record in self.records if record.metrics is not None)
        return sum(m.pixels_noc + m.pixels_occ > 0 for m in metrics)

    def occlusion_note(self) -> str | None:
        """Return a sentence if occlusions are not known on all pairs; None if they are."""
        if self.masked == len(self.done):
            return None
        if not self.masked:
            return "Occlusions are not known: there is no noc, occ and d."
        return (
            f"Occlusions are known for {self.masked} of {len(self.done)} pairs: noc, occ and d are "
            "of these."
        )

    def summary(self) -> dict[str, Any]:
        """Return the figures of the whole, ready for JSON: errors, then means and maxima."""
        pooled = self.pooled
        memory = [r.peak_memory for r in self.records if r.peak_memory is not None]
        return {
            "method": self.label,
            "failed": len(self.records) - len(self.done),
            **({"images": 0} if pooled is None else pooled.as_row()),
            "ause": _mean([r.ause for r in self.done]),
            "occlusion_f1": _mean([r.occlusion_f1 for r in self.done]),
            "gap": _mean([r.gap for r in self.done]),
            "seconds": _mean([r.seconds for r in self.done]),
            "peak_memory": max(memory, default=None),
        }


def write_csv(path: str | os.PathLike[str], rows: Sequence[dict[str, Any]]) -> None:
    """Write rows with one and the same columns; None becomes an empty cell."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with atomic_write(path) as file:
        # Names of files need not be proper Unicode.
        file.write(text.getvalue().encode(errors="surrogateescape"))


def write_json(path: str | os.PathLike[str], report: dict[str, Any]) -> None:
    """Write a dictionary as JSON."""
    with atomic_write(path) as file:
        file.write((json.dumps(report, indent=2) + "\n").encode())


def read_csv(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Read what `write_csv` wrote, all cells as text.

    Raises
    ------
    FileError
        If it cannot be read, or is not a table.
    """
    try:
        with (
            file_access(path),
            open(path, encoding="utf-8", errors="surrogateescape", newline="") as file,
        ):
            rows = list(csv.DictReader(file, strict=True))
    except csv.Error as error:
        raise FileError(f"{os.fspath(path)}: is not a table (CSV).") from error
    if not rows or any(None in row or None in row.values() for row in rows):
        raise FileError(f"{os.fspath(path)}: is not a table (CSV) with a row for each pair.")
    return rows


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
