"""The report on an evaluation as a single HTML page; needs the extra 'report'."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import hamflow
from hamflow._types import CountProgress
from hamflow.errors import InputError
from hamflow.evaluation._charts import MOST, charts
from hamflow.evaluation._columns import BY_NAME, COLUMNS, GROUPS, Column
from hamflow.evaluation._pictures import OCCLUSION, Panel, css, error_scale, panels, wheel
from hamflow.evaluation.methods import Method
from hamflow.evaluation.records import Evaluation, PairRecord
from hamflow.evaluation.runner import Pair, attempt, pair_names
from hamflow.flow import endpoint_error
from hamflow.io._atomic import atomic_write

try:
    import jinja2
    from markupsafe import Markup  # comes with it
except ImportError:
    # Raised on import, so that the user learns about it before a long evaluation.
    raise InputError(
        "A report needs the package jinja2; install it with: pip install 'hamflow[report]'."
    ) from None

_TEMPLATES = Path(__file__).parent / "templates"
_TOLERANCE = 1e-3  # difference of the EPE, absolute and relative, that counts as equal

# The columns of the summary: heading of a group, prefix of the keys, names.
_SUMMARY: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("EPE, all pixels together", "", ("epe_all", "epe_noc", "epe_occ")),
    ("EPE, mean over pairs", "image_mean_", ("epe_all", "epe_noc", "epe_occ")),
    ("by true motion", "", ("s0_10", "s10_40", "s40plus")),
    ("by distance to occlusions", "", ("d0_10", "d10_60", "d60_140")),
    ("KITTI", "", ("fl_all", "fl_noc")),
    ("outliers", "", ("outlier_1px", "outlier_3px", "outlier_5px")),
    ("", "", ("angular_all", "ause", "occlusion_f1", "gap")),
    ("cost", "", ("seconds", "peak_memory")),
)
# Numbers of the summary that are means over pairs.
_MEANS = ("ause", "occlusion_f1", "gap", "seconds")
# The numbers at the top of the page, with their titles.
_TILES = {
    "epe_all": "EPE, all pixels together",
    "image_mean_epe_all": "EPE, mean over pairs",
    "fl_all": "Fl-all",
    "ause": "AUSE",
    "occlusion_f1": "occlusion F1",
    "seconds": "per pair",
}


@dataclass(frozen=True)
class _Card:
    """The pictures of one pair, with notes."""

    record: PairRecord
    panels: Sequence[Panel]
    notes: Sequence[str]


def write_report(
    path: str | os.PathLike[str],
    evaluation: Evaluation,
    pairs: Sequence[Pair],
    method: Method,
    *,
    pictures: int = 3,
    others: Sequence[Evaluation] = (),
    progress: CountProgress = lambda *_: None,
) -> None:
    """Write an evaluation as one HTML file, with tables, charts and pictures.

    The page contains everything that it shows and needs no network.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write.
    evaluation : Evaluation
        The evaluation to report on.
    pairs : sequence of pairs
        The data set of the evaluation.
    method : Method
        The method of the evaluation. It is run again on the pairs whose pictures are shown.
    pictures : int
        How many of the worst pairs and of the best pairs to show, by EPE.
    others : sequence of Evaluation
        Further evaluations to compare with, in the summary and in the charts.
    progress : callable
        Called with the name of the next pair to show, the number of finished pairs, and of all.

    Raises
    ------
    InputError
        If a pair of the evaluation is not in the data set, or `pictures` is negative.
    FileError
        If the file cannot be written, or one of the data set cannot be read.
    """
    if pictures < 0:
        raise InputError(f"pictures must be 0 or more, but is {pictures}.")
    sections = _shown(evaluation, pictures)
    numbers = {name: number for number, name in enumerate(pair_names(pairs))}
    chosen = [record for _, records in sections for record in records]
    for record in chosen:
        if record.pair not in numbers:
            raise InputError(
                f"The data set has no pair {record.pair!r}; give the data set of the evaluation."
            )
    cards = {}
    for done, record in enumerate(chosen):
        progress(record.pair, done, len(chosen))
        cards[record.pair] = _card(record, pairs[numbers[record.pair]], method)
    progress("", len(chosen), len(chosen))
    text = _page(
        evaluation,
        others,
        [(title, [cards[record.pair] for record in records]) for title, records in sections],
    )
    with atomic_write(path) as file:
        file.write(text.encode(errors="replace"))  # the name of a file need not be Unicode


def _shown(evaluation: Evaluation, pictures: int) -> list[tuple[str, list[PairRecord]]]:
    """Return the pairs to show, by heading."""
    ordered = sorted(evaluation.done, key=lambda record: record.epe, reverse=True)
    if not pictures or not ordered:
        return []
    if len(ordered) <= 2 * pictures:
        return [("All pairs, the worst first", ordered)]
    best = ordered[: -pictures - 1 : -1]
    return [("The worst pairs", ordered[:pictures]), ("The best pairs", best)]


def _card(record: PairRecord, pair: Pair, method: Method) -> _Card:
    estimate = attempt(record.pair, method, pair.image0, pair.image1)
    if isinstance(estimate, str):
        note = f"There are no pictures, because the method failed when run again ({estimate})."
        return _Card(record, (), (note,))
    found, notes = panels(pair, estimate)
    again = float(np.nanmean(endpoint_error(estimate.flow, pair.flow), dtype=np.float64))
    if not math.isclose(again, record.epe, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
        notes.append(
            f"Run again for these pictures, the method has an EPE of {again:.3f} px, so they do "
            "not show the measured flow."
        )
    return _Card(record, found, notes)


def _page(
    evaluation: Evaluation,
    others: Sequence[Evaluation],
    sections: Sequence[tuple[str, Sequence[_Card]]],
) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script, style = (
        (_TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.js", "report.css")
    )
    evaluations = (evaluation, *others)
    columns = _pair_columns(evaluation)
    anchors = {
        card.record.pair: f"pair-{number}"
        for number, card in enumerate(card for _, cards in sections for card in cards)
    }
    return environment.get_template("report.html").render(
        script=Markup(script),  # noqa: S704  (our own file)
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=Markup(style),  # noqa: S704  (our own file)
        wheel=wheel(),
        evaluation=evaluation,
        version=evaluation.settings.get("hamflow", hamflow.__version__),
        data=_described(evaluation.settings.get("data", {})),
        settings=_settings(evaluation),
        tiles=_tiles(evaluation),
        summary=_summary(evaluations),
        caption=evaluation.occlusion_note() or "",
        columns=columns,
        groups=GROUPS,
        table=_table(evaluation, columns, anchors),
        sections=sections,
        anchors=anchors,
        # The charts escape the names of methods and pairs.
        charts=[(chart, Markup(chart.svg)) for chart in charts(evaluations)],  # noqa: S704
        left_out=max(0, sum(bool(one.done) for one in evaluations) - MOST),
        error_scale=error_scale(),
        occlusion={name: css(color) for name, color in OCCLUSION.items()},
    )


def _settings(evaluation: Evaluation) -> str:
    """Return all settings as JSON, with the long list of pairs at the end."""
    ordered = sorted(evaluation.settings.items(), key=lambda item: item[0] == "pairs")
    return json.dumps(dict(ordered), indent=2, ensure_ascii=False, default=str)


def _described(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the description of a data set as text."""
    lists = {k: v if isinstance(v, list | tuple) else [v] for k, v in data.items()}
    return [(name.replace("_", " "), ", ".join(map(str, v))) for name, v in lists.items()]


def _tiles(evaluation: Evaluation) -> list[tuple[Column, str]]:
    """Return the known numbers for the top of the page."""
    values = evaluation.summary()
    return [
        (replace(column, label=label), column.format(values[name]))
        for name, label in _TILES.items()
        for column in (_summary_column(name),)
        if values.get(name) is not None
    ]


def _summary_column(name: str) -> Column:
    """Return the column of an entry of `Evaluation.summary`."""
    plain = name.removeprefix("image_mean_")
    column = replace(BY_NAME[plain], name=name)
    if plain == "peak_memory":
        return column
    if name != plain or plain in _MEANS:
        return replace(column, title=f"{column.title}: mean over the pairs")
    return replace(column, title=f"{column.title}: over the pixels of all pairs together")


def _summary(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """Return the headings, columns and rows of the summary, a row for each evaluation."""
    columns = [_summary_column(prefix + name) for _, prefix, names in _SUMMARY for name in names]
    pairs = {record.pair for record in evaluations[0].records}
    alike = [{record.pair for record in one.records} == pairs for one in evaluations]
    values = [one.summary() for one in evaluations]
    best = _best(columns, [row for row, same in zip(values, alike, strict=True) if same])
    rows = [
        {
            "label": one.label,
            "pairs": len(one.records),
            "failed": row["failed"],
            "alike": same,
            # Measurements on other pairs cannot be better or worse.
            "cells": [
                (column.format(row.get(column.name)), same and row.get(column.name) in best[column])
                for column in columns
            ],
        }
        for one, row, same in zip(evaluations, values, alike, strict=True)
    ]
    widths = [len(names) for _, _, names in _SUMMARY]
    return {
        "headings": [(title, width) for (title, _, _), width in zip(_SUMMARY, widths, strict=True)],
        "starts": [sum(widths[:number]) for number in range(len(widths))],
        "columns": columns,
        "rows": rows,
    }


def _best(columns: Sequence[Column], rows: Sequence[dict[str, Any]]) -> dict[Column, set[float]]:
    """Return the best number of each column, if there are several."""
    found = {}
    for column in columns:
        known = [row[column.name] for row in rows if row.get(column.name) is not None]
        found[column] = {column.best(known)} if len(known) > 1 else set()
    return found


def _pair_columns(evaluation: Evaluation) -> list[Column]:
    """Return the columns of the table of pairs; the reasons of failures always stay visible."""
    if len(evaluation.done) == len(evaluation.records):
        return list(COLUMNS)
    failed = replace(BY_NAME["failed"], group="pair")
    return [COLUMNS[0], failed, *(c for c in COLUMNS[1:] if c.name != "failed")]


def _table(
    evaluation: Evaluation, columns: Sequence[Column], anchors: dict[str, str]
) -> dict[str, Any]:
    """Return the table of pairs for the script of the page."""
    rows = [record.as_row() for record in evaluation.records]
    return {
        "columns": [
            {"group": c.group, "scale": c.scale, "digits": c.digits, "text": c.text}
            for c in columns
        ],
        "rows": [[_compact(row[c.name]) for c in columns] for row in rows],
        "failed": [c.name for c in columns].index("failed"),
        "anchors": anchors,
    }


def _compact(value: Any) -> Any:
    """Return a cell for JSON: with few digits, and None instead of NaN."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.7g}") if math.isfinite(value) else None
