"""Write docs/results.md from the measurements in experiments/results.

python -m experiments.scripts.results     (or: make results)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.paper.findings import findings, shown, table_of
from experiments.paper.published import COMPARISON, OURS, TABLE1, TIMINGS_MACHINE
from experiments.paper.table1 import TITLES
from experiments.paper.table2 import notes
from hamflow.evaluation import FlowMetrics, paired_bootstrap, pool
from hamflow.io._text import read_rows

ROOT = Path(__file__).resolve().parents[2]
RESULTS, PAGE = ROOT / "experiments" / "results", ROOT / "docs" / "results.md"

_METRICS = {
    "epe_all": ("EPE all", ".3f"),
    "epe_noc": ("noc", ".3f"),
    "epe_occ": ("occ", ".3f"),
    "s0_10": ("s0-10", ".2f"),
    "s10_40": ("s10-40", ".2f"),
    "s40plus": ("s40+", ".2f"),
    "d0_10": ("d0-10", ".2f"),
    "d10_60": ("d10-60", ".2f"),
    "d60_140": ("d60-140", ".2f"),
    "fl_all": ("Fl-all", ".1%"),
    "fl_noc": ("Fl-noc", ".1%"),
    "outlier_1px": ("1px", ".1%"),
    "outlier_3px": ("3px", ".1%"),
    "outlier_5px": ("5px", ".1%"),
    "angular_all": ("angle", ".1f"),
}
_TABLE1_SETS = {
    "sintel-clean": "five pairs of Sintel clean, at scale 1/2",
    "synthetic": "30 held-out rendered scenes of 768×432 pixels, at scale 1/2",
}


def page(folder: Path = RESULTS) -> str:
    """Return docs/results.md."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    parts = [
        "# Results",
        "`make results` writes this page from the tables in "
        "[experiments/results](../experiments/results). Errors are endpoint errors (EPE) in pixels "
        "of full resolution, over visible pixels (noc), occluded pixels (occ), or all pixels of "
        "known flow (all), pooled over the pixels of all pairs.",
        *(_evaluation(folder, entry) for entry in manifest["evaluations"]),
        "# The paper's experiments",
        *(_table1(folder, name, manifest) for name in _TABLE1_SETS),
        _table2(folder, manifest),
        _table3(folder, manifest),
        manifest["figure"],
    ]
    return "\n\n".join(parts) + "\n"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# --- evaluations ---------------------------------------------------------------------------------


def _evaluation(folder: Path, entry: Mapping[str, Any]) -> str:
    """Return a section on one data set: all methods, compared with the first."""
    tables = {
        method: read_rows(folder / f"{entry['name']}-{method}.csv")[1]
        for method in entry["methods"]
    }
    first = entry["methods"][0]
    header = ["method", *(title for title, _ in _METRICS.values()), "AUSE", "seconds", "GB"]
    rows = [[_named(method, table), *_summary(table)] for method, table in tables.items()]
    means = [[_named(method, table), *_image_means(table)] for method, table in tables.items()]
    parts = [
        f"## {entry['title']}",
        entry["about"] + _masked(tables[first]),
        markdown(header, rows),
        "The same as means over the pairs, in which each pair has the same weight:",
        markdown(["method", *(title for title, _ in _METRICS.values())], means),
        f"Endpoint error compared with that of `{first}` (95 % bootstrap intervals over the pairs; "
        "less is better):",
        markdown(
            ["method", "difference in px", "ratio (geometric mean)", "pairs better / worse", ""],
            [
                _contrast(name, tables[first], table)
                for name, table in tables.items()
                if name != first
            ],
        ),
    ]
    groups = {_group(row["pair"]) for row in tables[first]}
    if 1 < len(groups) < 10:
        parts.insert(5, _by_group(tables, sorted(groups)))
    return "\n\n".join(parts)


def _by_group(tables: Mapping[str, Sequence[Mapping[str, str]]], groups: Sequence[str]) -> str:
    rows = []
    for group in groups:
        cells = []
        for table in tables.values():
            errors = [row["epe_all"] for row in table if _group(row["pair"]) == group]
            cells.append("failed" if "" in errors else f"{np.mean([float(e) for e in errors]):.3f}")
        rows.append([group, *cells])
    header = ["folder", *(f"`{method}`" for method in tables)]
    return "By folder (EPE all, mean over its pairs):\n\n" + markdown(header, rows)


def _named(method: str, table: Sequence[Mapping[str, str]]) -> str:
    failed = sum(bool(row["failed"]) for row in table)
    return f"`{method}`" + (f" ({failed} of {len(table)} failed)" if failed else "")


def _masked(table: Sequence[Mapping[str, str]]) -> str:
    known = sum(float(row["pixels_noc"] or 0) > 0 for row in table)
    if known == len(table):
        return ""
    return (
        f" Occlusions are known for {known} of {len(table)} pairs; noc, occ and d are over these."
    )


def _metrics(table: Sequence[Mapping[str, str]]) -> list[FlowMetrics]:
    rows = ({k: v or None for k, v in row.items()} for row in table if not row["failed"])
    return [FlowMetrics.from_row(row) for row in rows]


def _summary(table: Sequence[Mapping[str, str]]) -> list[str]:
    pooled = pool(_metrics(table)).pooled.as_row()
    memory = max((int(row["peak_memory"]) for row in table if row["peak_memory"]), default=0)
    ause = _mean(table, "ause")
    return [
        *(_cell(pooled[name], form) for name, (_, form) in _METRICS.items()),
        "–" if ause is None else f"{ause:.3f}",
        _cell(_mean(table, "seconds"), ".2f"),
        f"{memory / 1e9:.2f}",
    ]


def _image_means(table: Sequence[Mapping[str, str]]) -> list[str]:
    means = pool(_metrics(table)).mean.as_row()
    return [_cell(means[name], form) for name, (_, form) in _METRICS.items()]


def _contrast(
    name: str, first: Sequence[Mapping[str, str]], other: Sequence[Mapping[str, str]]
) -> list[str]:
    base = {row["pair"]: float(row["epe_all"]) for row in first if not row["failed"]}
    here = {row["pair"]: float(row["epe_all"]) for row in other if not row["failed"]}
    both = [pair for pair in base if pair in here]
    found = paired_bootstrap([base[pair] for pair in both], [here[pair] for pair in both])
    return [
        f"`{name}`",
        f"{found.mean:+.2f} ({found.low:+.2f} to {found.high:+.2f})",
        f"{found.ratio:.2f} ({found.ratio_low:.2f} to {found.ratio_high:.2f})",
        f"{found.wins} / {found.losses}",
        found.verdict,
    ]


def _mean(table: Sequence[Mapping[str, str]], column: str) -> float | None:
    known = [float(row[column]) for row in table if row[column] and not row["failed"]]
    return float(np.mean(known)) if known else None


def _group(pair: str) -> str:
    return pair.rpartition("/")[0]


# --- the paper -----------------------------------------------------------------------------------


def _table1(folder: Path, name: str, manifest: Mapping[str, Any]) -> str:
    measured = read_rows(folder / f"table1-{name}.csv")[1]
    table = table_of(measured)
    rows = []
    for network, columns in table.items():
        published = TABLE1[network.train.upper(), network.layers]
        rows.append(
            [
                f"{network.train.upper()} {network.layers}",
                *(shown(columns.get(column)) for column in TITLES),
                *(shown(published[column]) for column in TITLES),
            ]
        )
    header = ["network", *TITLES.values(), *(f"paper: {title}" for title in TITLES.values())]
    known = sum(int(r["pixels_noc"]) > 0 for r in measured) // len({_key(r) for r in measured})
    pairs = len({row["pair"] for row in measured})
    lines = [
        f"- {f.statement}: **{'holds' if f.holds else 'does not hold'}** ({f.figures})."
        for f in findings(table)
    ]
    return "\n\n".join(
        [
            f"## Table 1: {_TABLE1_SETS[name]}",
            manifest["table1"]["about"],
            manifest["table1"][name]
            + (
                f" Occlusions are known for {known} of {pairs} pairs; noc is over these."
                if known < pairs
                else ""
            )
            + _spread(measured),
            markdown(header, rows),
            "The paper's findings, checked with noc:",
            "\n".join(lines),
        ]
    )


def _key(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row["train"], row["layers"], row["column"]


def _spread(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a sentence with the ratios of networks and their intervals, over the same pairs."""
    errors: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if row["epe_noc"] and row["layers"] == "7":
            column = "trained" if row["train"] == "qq" and row["column"] == "qq" else row["column"]
            errors.setdefault((row["train"], column), {})[row["pair"]] = float(row["epe_noc"])
    said = []
    for one, other in (("fq", "ff"), ("fq", "qq")):
        here, there = errors.get((one, "trained")), errors.get((other, "trained"))
        if here and there and len(here) > 4:
            both = [pair for pair in here if pair in there]
            found = paired_bootstrap([there[p] for p in both], [here[p] for p in both])
            said.append(
                f"{one.upper()} / {other.upper()} as trained (7 layers, mean over pairs): "
                f"{found.ratio:.2f} ({found.ratio_low:.2f} to {found.ratio_high:.2f})"
            )
    return " " + "; ".join(said) + "." if said else ""


def _table2(folder: Path, manifest: Mapping[str, Any]) -> str:
    report = json.loads((folder / "table2.json").read_text(encoding="utf-8"))
    rows = []
    for row in read_rows(folder / "table2.csv")[1]:
        low, high = float(row["paper_features_min"]), float(row["paper_features_max"])
        rows.append(
            [
                row["method"].split(" (")[0],
                f"{row['width']}×{row['height']}",
                row["d"],
                *(_seconds(row[column]) for column in ("features", "wta", "full")),
                f"{low:g}–{high:g}",
                row["paper_wta"],
                row["paper_full"] or "–",
            ]
        )
    where = report["machine"]
    header = ["", "size", "D", "features", "WTA", "full model"]
    header += [f"paper: {title}" for title in ("features", "WTA", "full model")]
    return "\n\n".join(
        [
            "## Table 2: times, memory, and bits compared with floats",
            f"{manifest['table2']} Here: level {where['level']}, {where['threads']} threads; the "
            f"paper: {TIMINGS_MACHINE}.",
            markdown(header, rows),
            "\n".join(f"- {note}" for note in notes(report)),
        ]
    )


def _table3(folder: Path, manifest: Mapping[str, Any]) -> str:
    rows = [
        [
            "the paper's method" if name == OURS else name,
            *("Sintel clean test set", f"{noc:.3f}", f"{everything:.3f}", "", ""),
        ]
        for name, (noc, everything) in COMPARISON.items()
    ]
    for row in read_rows(folder / "table3.csv")[1]:
        if row["pairs"]:
            shown = [_cell(row[over], ".3f") for over in ("noc", "all")]
            seconds = f"{float(row['seconds']):.1f}"
            rows.append([f"`{row['method']}`", row["data"], *shown, row["pairs"], seconds])
    return "\n\n".join(
        [
            "## Table 3: comparison with other methods",
            manifest["table3"],
            markdown(["method", "measured on", "noc", "all", "pairs", "seconds"], rows),
        ]
    )


def _cell(value: Any, form: str) -> str:
    return "–" if value in (None, "") else format(float(value), form)


def _seconds(value: str) -> str:
    if not value:
        return "–"
    return f"{float(value):.1f}" if float(value) >= 10 else f"{float(value):#.2g}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE.relative_to(ROOT)}")
