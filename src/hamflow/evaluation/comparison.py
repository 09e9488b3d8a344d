"""Methods side by side: whether they differ on the same pairs by more than chance."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hamflow._resume import read_log
from hamflow.errors import FileError, InputError
from hamflow.evaluation.bootstrap import FEW, RESAMPLES, PairedDifference, paired_bootstrap
from hamflow.evaluation.metrics import FlowMetrics
from hamflow.evaluation.records import Evaluation, PairRecord
from hamflow.evaluation.runner import WORK

METRICS = (
    *(f.name for f in fields(FlowMetrics) if not f.name.startswith(("pixels", "sums"))),
    "ause",
    "seconds",
)
"""What can be compared; of all of these, less is better."""

# What describes the data and was not said is this; what says which pairs are taken is not here.
_DATA = {"dataset": None, "pass": "clean", "split": "training", "photographs": None, "seed": None}


@dataclass(frozen=True)
class Contrast:
    """One method against the first.

    Attributes
    ----------
    method, baseline : str
        The labels of the two.
    metric : str
        What is compared.
    difference : PairedDifference or None
        None if there is no pair on which both succeeded.
    left_out : int
        Pairs that only one of them has, or that one of them failed on.
    clusters : bool
        Whether groups were resampled.
    """

    method: str
    baseline: str
    metric: str
    difference: PairedDifference | None
    left_out: int
    clusters: bool

    @property
    def sentence(self) -> str:
        """What came of it, in words."""
        found = self.difference
        if found is None:
            return f"{self.method} and {self.baseline} have no pair on which both succeeded."
        said = {
            "better": f"{self.method} is better than {self.baseline}",
            "worse": f"{self.method} is worse than {self.baseline}",
            "not distinguishable": f"{self.method} is not distinguishable from {self.baseline}",
            "too few to tell": f"{self.method} against {self.baseline}, too few to tell",
        }[found.verdict]
        said += (
            f": {self.metric} differs by "
            f"{found.mean:+.4g}{_interval(found.low, found.high, '+.4g')}"
        )
        if not math.isnan(found.ratio):
            said += f", and is {found.ratio:.4g} times as large in the geometric mean"
            said += _interval(found.ratio_low, found.ratio_high, ".4g")
        said += (
            f"; it is smaller on {found.wins} of {_count(found.pairs, 'pair')}, larger on "
            f"{found.losses}, equal on {found.ties}."
        )
        return said + self._caution(found.units)

    def _caution(self, units: int) -> str:
        said = ""
        if self.left_out:
            said += (
                f" Left out: {_count(self.left_out, 'pair')} that one of them failed on or lacks."
            )
        what = _count(units, "group" if self.clusters else "pair")
        if units < 2:
            return f"{said} There is only {what}, which tells nothing of chance."
        if units < FEW:
            said += f" There are only {what}: the interval is too narrow to be relied on."
        return said

    def as_row(self) -> dict[str, Any]:
        """Return everything by name, ready for JSON."""
        return {
            "method": self.method,
            "baseline": self.baseline,
            "left_out": self.left_out,
            **({"pairs": 0} if self.difference is None else self.difference.as_row()),
            "sentence": self.sentence,
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side.

    Attributes
    ----------
    metric : str
        What is compared.
    clusters : bool
        Whether groups were resampled.
    evaluations : tuple of Evaluation
        Of each method, the first of which the others are held against.
    contrasts : tuple of Contrast
        One for each of the others.
    rows : tuple of dict
        For each pair its name and what was measured with each method, None if nothing was.
    """

    metric: str
    clusters: bool
    evaluations: tuple[Evaluation, ...]
    contrasts: tuple[Contrast, ...]
    rows: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
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
    """Hold methods against the first one, on the pairs on which both succeeded.

    Parameters
    ----------
    evaluations : sequence of Evaluation
        At least two, of the same data, with labels of their own.
    metric : str
        One of `METRICS`; of all of them, less is better.
    clusters : bool
        Resample groups (scenes) instead of pairs: the name of a pair without its last part.
    resamples, seed : int
        As for `paired_bootstrap`.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If there are fewer than two, labels are the same, the metric is unknown, the data differ,
        or groups are asked for where there are none.
    """
    labels = [one.label for one in evaluations]
    if len(labels) < 2:
        raise InputError("A comparison needs at least two methods.")
    twice = [label for label in labels if labels.count(label) > 1]
    if twice:
        raise InputError(f"{twice[0]} is there twice; a comparison needs different methods.")
    if metric not in METRICS:
        raise InputError(f"There is no metric {metric!r}; known are {', '.join(METRICS)}.")
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


def check_groups(names: Sequence[str]) -> None:
    """Raise an InputError if the pairs of these names are in no groups."""
    if not any("/" in name for name in names):
        raise InputError(
            "The pairs of this data set are not in groups, so none can be resampled; leave the "
            "clusters away."
        )


def _measured(evaluation: Evaluation, metric: str) -> dict[str, float]:
    """Return the values by pair, where there are any."""
    found = ((record.pair, record.as_row()[metric]) for record in evaluation.done)
    return {pair: float(value) for pair, value in found if value is not None}


def _check_data(first: Evaluation, other: Evaluation) -> None:
    """Refuse what has the same names, but is not the same."""
    here, there = (dict(one.settings.get("data") or {}) for one in (first, other))
    if here and there:
        for key, default in _DATA.items():
            values = here.get(key, default), there.get(key, default)
            if values[0] != values[1]:
                raise InputError(
                    f"{first.label} and {other.label} were evaluated on different data: {key} was "
                    f"{values[0]} and {values[1]}; compare evaluations of the same."
                )
    marks = {record.pair: _mark(record) for record in first.done}
    for record in other.done:
        if marks.get(record.pair, _mark(record)) != _mark(record):
            raise InputError(
                f"{first.label} and {other.label} were evaluated on different data: the files of "
                f"{record.pair} are not the same; compare evaluations of the same."
            )


def _mark(record: PairRecord) -> tuple[str, int]:
    assert record.metrics is not None
    return record.data, record.metrics.pixels


def read_evaluation(path: str | os.PathLike[str], label: str) -> Evaluation:
    """Read the log of an evaluation, which need not be complete.

    Parameters
    ----------
    path : str or os.PathLike
        The file that `evaluate` wrote as its log.
    label : str
        What to call the method.

    Raises
    ------
    FileError
        If it cannot be read, or is no such log.
    """
    settings, lines = read_log(Path(path), WORK)
    try:
        records = {line["key"]: PairRecord.from_json(line) for line in lines}
        ordered = tuple(records[name] for name in settings["pairs"] if name in records)
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"{os.fspath(path)}: is not the log of an earlier evaluation; choose another place."
        ) from error
    return Evaluation(label, settings, ordered)


def _interval(low: float, high: float, form: str) -> str:
    return "" if math.isnan(low) else f" (95 % interval {low:{form}} to {high:{form}})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
