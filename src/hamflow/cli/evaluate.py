"""``hamflow evaluate``: the errors of a method on all pairs of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from hamflow._resume import LOG, WorkLog
from hamflow._runtime import machine
from hamflow.cli._console import progress_bar, say, says_how_to_continue
from hamflow.cli._data import DATASETS, DataOptions, data_label, open_pairs
from hamflow.cli._methods import MethodName, Model, PresetOrMethod, chosen_method
from hamflow.cli._options import check_targets, parse_window
from hamflow.crf import CrfConfig
from hamflow.datasets.registry import DatasetName
from hamflow.errors import InputError
from hamflow.evaluation._columns import BY_NAME
from hamflow.evaluation.methods import Method, MethodConfig
from hamflow.evaluation.records import Evaluation, write_csv, write_json
from hamflow.evaluation.runner import WORK, evaluate
from hamflow.io._atomic import check_writable

TABLE = "pairs.csv"
"""The table of all pairs in the folder of an evaluation."""

# Rows of the printed summary; the errors have two columns.
_ERRORS = (
    *("epe_all", "epe_noc", "epe_occ", "s0_10", "s10_40", "s40plus", "d0_10", "d10_60", "d60_140"),
    *("fl_all", "fl_noc", "outlier_1px", "outlier_3px", "outlier_5px", "angular_all"),
)
_OTHERS = ("ause", "occlusion_f1", "gap", "seconds", "peak_memory")
_DATA = DataOptions()
_DATASET = tyro.conf.arg(
    metavar="DATASET", help=f"One of {DATASETS}. Scenes of synthetic are rendered on demand."
)


def evaluate_command(
    dataset: Annotated[tyro.conf.Positional[DatasetName], _DATASET],
    root: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[ROOT]")] = None,
    *,
    data: tyro.conf.OmitArgPrefixes[DataOptions] = _DATA,
    preset: PresetOrMethod = None,
    method: MethodName = None,
    model: Model = None,
    scale: int = 1,
    window: str | None = None,
    crf_file: Path | None = None,
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
    overwrite: bool = False,
    json: Path | None = None,
    html: Path | None = None,
) -> None:
    """Measure the errors of a preset or another method on all pairs of a data set.

    At the end the command prints a table and writes pairs.csv with a line for each pair: the
    endpoint error (EPE), over all pixels of all pairs together and as the mean over the pairs; for
    visible (noc) and occluded (occ) pixels, by the length of the true flow (s), and by the distance
    to occlusion boundaries (d); KITTI's Fl; the share of pixels with an error above 1, 3 and 5
    pixels; the angular error; how well the confidence predicts the errors (AUSE, lower is better);
    the seconds per pair and the peak memory. The log run.jsonl gets each pair at once.

    The same command continues an interrupted run; a folder with other settings or other files is
    refused; --overwrite starts again.

    Parameters
    ----------
    root
        Folder of the data set, laid out as it is published. For synthetic: a folder of photographs;
        without it, the textures are generated.
    data
        Which pairs to use.
    scale
        Reduce the frames by this whole factor first. Errors stay in pixels of full resolution.
    window
        Displacements to search, in pixels of the reduced frames: D for the square -D/2..D/2-1, or
        u0,du,v0,dv. By default 128 for wta and crf; presets choose their own.
    crf_file
        TOML file with other parameters for crf-f and crf-q than the paper's, under the names of
        hamflow.crf.CrfConfig.
    output
        Folder of the evaluation, new or empty. (default: evaluations/DATASET-METHOD)
    overwrite
        Start again: remove an earlier evaluation in that folder.
    json
        Where to write the settings, the summary and all pairs as JSON.
    html
        Where to write a report as one HTML page, with pictures of the best and the worst pairs;
        needs the extra 'report'.
    """
    chosen = Method(
        MethodConfig(
            chosen_method(preset, method),
            model=model,
            window=None if window is None else parse_window(window),
            scale=scale,
            crf=None if crf_file is None else CrfConfig.paper().updated(crf_file),
        )
    )
    write_report = None if html is None else report_writer()
    pairs, described = open_pairs(dataset, root, data)
    folder = Path("evaluations") / f"{data_label(described)}-{chosen.label}"
    folder = folder if output is None else output
    check_targets(
        {"--json": json, "--html": html},
        files=[preset, model, crf_file, folder / LOG, folder / TABLE],
        root=root,
    )
    console = Console(markup=False)
    with WorkLog.in_folder(folder, WORK, overwrite=overwrite) as log:
        for path in (json, html):
            if path is not None:
                check_writable(path)
        if overwrite:
            (folder / TABLE).unlink(missing_ok=True)
        with says_how_to_continue(folder, overwrite), progress_bar(console) as progress:
            found = evaluate(pairs, chosen, data=described, log=log, progress=progress)
        write_csv(folder / TABLE, [record.as_row() for record in found.records])
    if json is not None:
        rows = [record.as_row() for record in found.records]
        whole = {"settings": found.settings, "summary": found.summary(), "pairs": rows}
        write_json(json, {"machine": machine()} | whole)
    console.print(summary_table(found))
    for record in found.records:
        if record.failed:
            say(f"{record.pair}: failed ({record.failed}).")
    if write_report is not None:
        with progress_bar(console) as progress:
            write_report(html, found, pairs, chosen, progress=progress)
    written = [folder / TABLE, *(path for path in (json, html) if path is not None)]
    say(f"Wrote {', '.join(str(path) for path in written)}.")
    if not found.done:
        raise InputError(f"{chosen.label} failed on every pair; see {folder / TABLE}.")


def summary_table(found: Evaluation) -> Table:
    """Return the table that is printed at the end."""
    row = found.summary()
    count = f"{row['images']} pairs" + (f", {row['failed']} failed" if row["failed"] else "")
    table = Table("", title=f"{found.label}: {count}", caption=found.occlusion_note())
    for heading in ("all pixels together", "mean over pairs"):
        table.add_column(heading, justify="right")
    for name in _ERRORS:
        values = (row.get(name), row.get(f"image_mean_{name}"))
        table.add_row(BY_NAME[name].label, *(BY_NAME[name].with_unit(v) for v in values))
    table.add_section()
    for name in _OTHERS:
        table.add_row(BY_NAME[name].label, "", BY_NAME[name].with_unit(row[name]))
    return table


def report_writer() -> Any:
    """Return the function that writes the report; raise an InputError if a package is missing."""
    # Imported before the work begins, so that the user learns about a missing package at once.
    from hamflow.evaluation.report import write_report  # noqa: PLC0415  (an extra)

    return write_report
