"""``paper table3``: options and table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from experiments.cli._shared import DataWords, evaluating, parse_data
from experiments.paper import table3
from experiments.paper.published import OURS
from hamflow.cli._console import cell, named, say
from hamflow.cli._data import DataOptions, data_label, open_pairs
from hamflow.cli._options import check_targets
from hamflow.io._atomic import check_writable, make_folder
from hamflow.io._text import write_csv

_DATA = DataOptions()


def paper_table3(
    *,
    data: DataWords,
    which: tyro.conf.OmitArgPrefixes[DataOptions] = _DATA,
    presets: tuple[str, ...] = table3.DEFAULT,
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("evaluations/table3"),
    resume: bool = False,
    csv: Path | None = None,
) -> None:
    """Measure presets with and without refinement, next to the paper's comparison.

    The table shows endpoint errors over visible pixels (noc) and over all pixels of all pairs. The
    paper's errors are from the server of Sintel's test set, ours from the given pairs, so they
    cannot be compared directly. Every pair is saved as soon as it is measured, so that --resume
    can continue after an interrupt.

    Parameters
    ----------
    data
        Name and folder of the data set to evaluate on, as for hamflow evaluate.
    which
        Which pairs of the data set.
    presets
        Presets: paper (the paper's method: full resolution, whole pixels, no refinement), fast,
        balanced; one of these with the suffix -unrefined, which stops at whole pixels of the
        matching scale (one direction, no completion, no subpixel refinement); or a TOML file.
    output
        Folder for the finished pairs and for table3.csv.
    resume
        Continue the evaluation in that folder.
    csv
        Where to write a line for each method; by default in that folder.
    """
    dataset, root = parse_data(data)
    pairs, described = open_pairs(dataset, root, which)
    target = output / "table3.csv" if csv is None else csv
    own = [*output.glob("*.jsonl"), *table3.logs_of(presets, output).values()]
    check_targets({"--csv": csv}, files=[*presets, *own], root=root)
    make_folder(output)
    check_writable(target)
    console = Console(markup=False)
    with evaluating(console, output) as bar:
        found = table3.run(
            pairs,
            presets,
            data=described,
            logs=output,
            resume=resume,
            progress=lambda preset: named(bar, preset),
        )
    rows = table3.rows(found, data_label(described))
    write_csv(target, rows)
    console.print(_table(rows))
    for note in table3.notes(found):
        say(note)
    say(f"Wrote {target}.")


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table("method", "data", title="Endpoint error in px, pooled over all pixels")
    for heading in ("noc", "all", "pairs", "seconds"):
        table.add_column(heading, justify="right")
    for row in rows:
        if row["pairs"] is None:
            name, pairs, seconds = f"{row['method']} (paper)", "", ""
        else:
            name = row["method"]
            pairs = f"{row['pairs']}" + (f", {row['failed']} failed" if row["failed"] else "")
            seconds = cell(row["seconds"], ".2f")
        errors = (cell(row[over], ".3f") for over in ("noc", "all"))
        table.add_row(name, row["data"], *errors, pairs, seconds)
        if row["method"] == OURS:  # the last of the published ones
            table.add_section()
    return table
