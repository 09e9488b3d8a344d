"""The measurements of each pair, and their summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

import numpy as np

from hamflow.evaluation.metrics import FlowMetrics, PooledMetrics, pool
from hamflow.io._record import decoded

ERROR_EDGES = tuple(float(edge) for edge in (0, *(2.0**k for k in np.arange(-6, 9.5, 0.5))))
"""Edges of the bins of an error histogram in pixels; the last bin has no upper edge."""


@dataclass(frozen=True, eq=False)
class PairRecord:
    """The measurements of one pair.

    Attributes
    ----------
    pair : str
        The name of the pair.
    metrics : FlowMetrics or None
        The errors; None if the method failed.
    seconds : float
        Time of the estimate, without reading files.
    peak_memory : int or None
        Peak memory of the process in bytes; None if the system does not tell.
    ause : float or None
        Area between the sparsification curves; None if there is no confidence.
    gap : float or None
        Duality gap of the joint model.
    occlusion_f1 : float or None
        F1 score of the occlusion; None if it was not estimated or the truth is not known.
    failed : str
        Why the method failed, or "".
    data : str
        The fingerprint of the pair; see `hamflow.evaluation.fingerprint`.
    histogram : tuple of int
        Number of pixels by endpoint error, in the bins of `ERROR_EDGES`.
    curve, oracle : tuple of float
        Every fifth point of the sparsification curves; empty if there is no confidence.
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
        """The mean endpoint error; only for a pair on which the method succeeded."""
        assert self.metrics is not None
        return self.metrics.epe_all

    def as_row(self) -> dict[str, Any]:
        """Return the columns of the table of pairs, the same ones for all pairs."""
        return {
            "pair": self.pair,
            **(dict.fromkeys(_METRICS) if self.metrics is None else self.metrics.as_row()),
            "ause": self.ause,
            "occlusion_f1": self.occlusion_f1,
            "gap": self.gap,
            "seconds": self.seconds,
            "peak_memory": self.peak_memory,
            "failed": self.failed,
        }

    def as_json(self) -> dict[str, Any]:
        """Return everything as a record of a `hamflow._resume.WorkLog`."""
        detail = {name: list(getattr(self, name)) for name in _LISTS}
        row = self.as_row()
        return {"key": row.pop("pair"), "source": self.data, **row, **detail}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> PairRecord:
        """Return the record that `as_json` describes.

        Others raise one of `DAMAGED`.
        """
        metrics = None if data["failed"] else FlowMetrics.from_row(data)
        rest: dict[str, Any] = {
            name: decoded(hint, data[name], name)
            for name, hint in get_type_hints(cls).items()
            if name not in ("pair", "data", "metrics")
        }
        source = decoded(str, data["source"], "source")
        return cls(data["key"], metrics, data=source, **rest)


DAMAGED = (KeyError, TypeError, ValueError, OverflowError)
"""What reading a record of another form may raise."""
_LISTS = ("histogram", "curve", "oracle")
_METRICS = tuple(entry.name for entry in fields(FlowMetrics) if entry.name != "sums")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The measurements of a method on all pairs of a data set.

    Attributes
    ----------
    label : str
        The name of the method in tables.
    settings : dict
        The settings of data set and method, for JSON.
    records : tuple of PairRecord
        The measurements of each pair.
    """

    label: str
    settings: dict[str, Any]
    records: tuple[PairRecord, ...]

    @property
    def done(self) -> tuple[PairRecord, ...]:
        """The records of the pairs on which the method succeeded."""
        return tuple(record for record in self.records if record.metrics is not None)

    @property
    def pooled(self) -> PooledMetrics | None:
        """The errors of all pairs together; None if there are none."""
        return pool(self._metrics) if self._metrics else None

    @property
    def _metrics(self) -> list[FlowMetrics]:
        return [record.metrics for record in self.records if record.metrics is not None]

    def occlusion_note(self) -> str | None:
        """Return a sentence if the true occlusion of some pairs is not known; None otherwise."""
        metrics = self._metrics
        known = sum(m.pixels_noc + m.pixels_occ > 0 for m in metrics)
        if known == len(metrics):
            return None
        if not known:
            return "Occlusions are not known, so there is no noc, occ and d."
        return (
            f"Occlusions are known for {known} of {len(metrics)} pairs; noc, occ and d are "
            "measured on these."
        )

    def summary(self) -> dict[str, Any]:
        """Return the pooled errors, and means or maxima over the pairs, for JSON."""
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


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
