"""Comparison of methods: whether they differ on the same pairs by more than chance."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hamflow._resume import read_log
from hamflow.errors import FileError, InputError
from hamflow.evaluation._columns import counted
from hamflow.evaluation.bootstrap import FEW, RESAMPLES, PairedDifference, paired_bootstrap
from hamflow.evaluation.metrics import FlowMetrics
from hamflow.evaluation.records import DAMAGED, Evaluation, PairRecord
from hamflow.evaluation.runner import WORK

METRICS = (
    *(f.name for f in fields(FlowMetrics) if not f.name.startswith(("pixels", "sums"))),
    "ause",
    "seconds",
)
"""What can be compared; lower is better for all of them."""

# Settings that describe the data, with their defaults; those that choose pairs may differ.
_DATA = {"dataset": None, "pass": "clean", "split": "training", "photographs": None, "seed": None}


@dataclass(frozen=True)
class Contrast:
    """The difference between a method and the baseline."""

    method: str
    baseline: str
    metric: str
    difference: PairedDifference | None  # None if there is no pair on which both succeeded
    left_out: int  # pairs that one of the methods lacks or failed on
    clusters: bool  # whether groups were resampled instead of pairs

    @property
    def sentence(self) -> str:
        """The result in words."""
        found = self.difference
        if found is None:
            return f"{self.method} and {self.baseline} have no pair on which both succeeded."
        verdict = {
            "better": f"{self.method} is better than {self.baseline}",
            "worse": f"{self.method} is worse than {self.baseline}",
            "not distinguishable": f"{self.method} is not distinguishable from {self.baseline}",
            "too few to tell": f"{self.method} against {self.baseline}, too few to tell",
        }[found.verdict]
        ratio = ""
        if not math.isnan(found.ratio):
            ratio = f", and is {found.ratio:.4g} times as large in the geometric mean"
            ratio += _interval(found.ratio_low, found.ratio_high, ".4g")
        said = (
            f"{verdict}: {self.metric} differs by {found.mean:+.4g}"
            f"{_interval(found.low, found.high, '+.4g')}{ratio}; it is smaller on {found.wins} of "
            f"{counted(found.pairs, 'pair')}, larger on {found.losses}, equal on {found.ties}."
        )
        if self.left_out:
            said += (
                f" Left out: {counted(self.left_out, 'pair')} that one of them failed on or lacks."
            )
        number = counted(found.units, "group" if self.clusters else "pair")
        if found.units < 2:
            said += f" There is only {number}, which is not enough for an interval."
        elif found.units < FEW:
            said += f" There are only {number}, so the interval is too narrow to be relied on."
        return said

    def as_row(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            "method": self.method,
            "baseline": self.baseline,
            "left_out": self.left_out,
            **({"pairs": 0} if self.difference is None else self.difference.as_row()),
            "sentence": self.sentence,
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of several methods with the first, the baseline.

    Attributes
    ----------
    metric : str
        What is compared.
    clusters : bool
        Whether groups were resampled instead of pairs.
    evaluations : tuple of Evaluation
        The evaluations of all methods.
    contrasts : tuple of Contrast
        The difference of each other method to the baseline.
    rows : tuple of dict
        The name of each pair, and the metric of each method on it; None if it is not known.
    """

    metric: str
    clusters: bool
    evaluations: tuple[Evaluation, ...]
    contrasts: tuple[Contrast, ...]
    rows: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return {
            "metric": self.metric,
            "clusters": self.clusters,
            "methods": [
                {"label": one.label, "settings": one.settings, "summary": one.summary()}
                for one in self.evaluations
            ],
            "contrasts": [contrast.as_row() for contrast in self.contrasts],
            "pairs": list(self.rows),
        }


def compare(
    evaluations: Sequence[Evaluation],
    metric: str = "epe_all",
    *,
    clusters: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare methods with the first one, on the pairs on which both succeeded.

    Parameters
    ----------
    evaluations : sequence of Evaluation
        At least two, of the same data, with different labels.
    metric : str
        One of `METRICS`; lower is better.
    clusters : bool
        Resample groups (scenes) instead of pairs. The group of a pair is its name without the last
        part.
    resamples, seed : int
        As for `paired_bootstrap`.

    Raises
    ------
    InputError
        If there are fewer than two evaluations, labels repeat, the metric is unknown, the data
        differ, or there are no groups to resample.
    """
    labels = [one.label for one in evaluations]
    check_methods(labels, metric)
    for other in evaluations[1:]:
        _check_data(evaluations[0], other)

    values = {one.label: _measured(one, metric) for one in evaluations}
    names = list(dict.fromkeys(r.pair for one in evaluations for r in one.records))
    if clusters:
        check_groups(names)
    for label, known in values.items():
        if not known:
            raise InputError(
                f"{metric} is not known for {label} on any pair; compare another metric, or leave "
                "it out."
            )
    base = values[labels[0]]
    contrasts = []
    for label in labels[1:]:
        both = [name for name in names if name in base and name in values[label]]
        found = None
        if both:
            found = paired_bootstrap(
                [base[name] for name in both],
                [values[label][name] for name in both],
                groups=[name.rpartition("/")[0] for name in both] if clusters else None,
                resamples=resamples,
                seed=seed,
            )
        left_out = len(names) - len(both)
        contrasts.append(Contrast(label, labels[0], metric, found, left_out, clusters))
    rows = ({"pair": name, **{k: values[k].get(name) for k in labels}} for name in names)
    return Comparison(metric, clusters, tuple(evaluations), tuple(contrasts), tuple(rows))


def check_methods(labels: Sequence[str], metric: str) -> None:
    """Raise an InputError if these methods cannot be compared by this metric."""
    if len(labels) < 2:
        raise InputError("A comparison needs at least two methods.")
    twice = [label for label in labels if labels.count(label) > 1]
    if twice:
        raise InputError(f"{twice[0]} is given twice; a comparison needs different methods.")
    if metric not in METRICS:
        raise InputError(f"There is no metric {metric!r}; choose one of {', '.join(METRICS)}.")


def check_groups(names: Sequence[str]) -> None:
    """Raise an InputError if the names of the pairs show no groups."""
    if not any("/" in name for name in names):
        raise InputError("The pairs of this data set form no groups; leave the clusters out.")


def _measured(evaluation: Evaluation, metric: str) -> dict[str, float]:
    """Return the known values by pair."""
    found = ((record.pair, record.as_row()[metric]) for record in evaluation.done)
    return {pair: float(value) for pair, value in found if value is not None}


def _check_data(first: Evaluation, other: Evaluation) -> None:
    """Raise an InputError if two evaluations are of different data with the same names."""
    settings = [dict(one.settings.get("data") or {}) for one in (first, other)]
    different = ""
    if all(settings):
        for key, default in _DATA.items():
            here, there = (data.get(key, default) for data in settings)
            if here != there:
                different = different or f"{key} was {here} and {there}"
    known = {record.pair: _source(record) for record in first.done}
    for record in other.done:
        if known.get(record.pair, _source(record)) != _source(record):
            different = different or f"the files of {record.pair} are not the same"
    if different:
        raise InputError(
            f"{first.label} and {other.label} were evaluated on different data: {different}; "
            "compare evaluations of the same data."
        )


def _source(record: PairRecord) -> tuple[str, int]:
    assert record.metrics is not None
    return record.data, record.metrics.pixels


def read_evaluation(path: str | os.PathLike[str], label: str) -> Evaluation:
    """Read the log of an evaluation, which need not be complete.

    Parameters
    ----------
    path : str or os.PathLike
        The file that `evaluate` wrote as its log.
    label : str
        The name of the method in tables.

    Raises
    ------
    FileError
        If it cannot be read, or is not the log of an evaluation.
    """
    settings, lines = read_log(Path(path), WORK)
    try:
        records = {line["key"]: PairRecord.from_json(line) for line in lines}
        ordered = tuple(records[name] for name in settings["pairs"] if name in records)
    except DAMAGED as error:
        raise FileError(
            f"{os.fspath(path)}: is not the log of an earlier evaluation; choose another place."
        ) from error
    return Evaluation(label, settings, ordered)


def _interval(low: float, high: float, form: str) -> str:
    return "" if math.isnan(low) else f" (95 % interval {low:{form}} to {high:{form}})"
