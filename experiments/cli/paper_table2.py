"""``paper table2``: options and table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.cli._shared import check_bench, measure, save_json
from experiments.paper import table2
from experiments.paper.published import PAPER, TIMINGS, TIMINGS_MACHINE
from hamflow.cli._console import say
from hamflow.cli._options import check_targets
from hamflow.descriptors import load_model
from hamflow.io._atomic import check_writable
from hamflow.io._text import write_csv


def paper_table2(
    *,
    width: int = 1024,
    height: int = 436,
    d: int = 128,
    rounds: int = 3,
    model: str = "default",
    quick: bool = False,
    json: Path | None = None,
    csv: Path | None = None,
) -> None:
    """Repeat the paper's Table 2 on this machine: times of features, local and joint model.

    The table has FF, FQ and QQ at full resolution and QQ at a third of it, on a rendered scene,
    next to the paper's times on a Titan X. Below it: the memory of the min-projection compared with
    that of the full 4D cost, at twice D, and how much faster bits are than floats, and why. Takes
    about three minutes on two cores, and 3 GB.

    Parameters
    ----------
    width
        Width of the scene.
    height
        Height of the scene.
    d
        Side of the square window of displacements, a multiple of 8.
    rounds
        Repetitions, in turns; the best time counts. FF runs at most twice, and its full model once.
    model
        The descriptor: the name of a shipped model ('default' has 7 layers), or a file.
    quick
        Skip the full model on floats (FF), which takes more than a minute.
    json
        Where to write all measurements as JSON.
    csv
        Where to write the rows of the table as CSV.
    """
    check_bench(width, height, d, rounds)
    table2.check_scene(width, height)
    check_targets({"--json": json, "--csv": csv}, files=[model])
    load_model(model)  # raises its errors before the progress bar is shown
    for path in (json, csv):
        check_writable(path)
    console = Console(markup=False)
    report = measure(
        console,
        lambda progress: table2.run(
            width, height, d, rounds, model=model, quick=quick, progress=progress
        ),
    )
    console.print(_table(report))
    for note in report["notes"]:
        console.print(f"\n{note}", highlight=False)
    if csv is not None:
        write_csv(csv, report["rows"])
        say(f"Wrote {csv}.")
    save_json(console, json, report)


def _table(report: dict[str, Any]) -> Table:
    where = report["machine"]
    table = Table(
        *("method", "size", "D", "features", "WTA", "full model"),
        title="Seconds here (in the paper)",
        caption=(
            f"Here: level {where['level']}, {where['threads']} threads. {PAPER}: {TIMINGS_MACHINE}."
        ),
    )
    for row in report["rows"]:
        table.add_row(
            row["method"].split(" (")[0],
            f"{row['width']}×{row['height']}",
            str(row["d"]),
            _cell(row["features"], row["paper_features_min"], row["paper_features_max"]),
            _cell(row["wta"], row["paper_wta"]),
            _cell(row["full"], row["paper_full"]),
        )
    theirs = TIMINGS["DCFlow (1/3 res.)"]
    table.add_row(
        *("DCFlow", "1/3 res.", ""),
        *(_cell(None, *theirs.features), _cell(None, theirs.wta), _cell(None, theirs.full)),
    )
    return table


def _cell(ours: float | None, *paper: float | None) -> str:
    """Return our time with two significant digits, and the paper's time or range of times."""
    own = "–" if ours is None else f"{ours:.1f}" if ours >= 10 else f"{ours:#.2g}"
    published = dict.fromkeys(f"{value:g}" for value in paper if value is not None)
    return f"{own} ({'–'.join(published)})" if published else own
