"""``hamflow evaluate``: the errors of a method on all pairs of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from hamflow._resume import LOG, WorkLog
from hamflow._runtime import machine
from hamflow.cli._console import count, progress_bar, say, says_how_to_continue, table_of
from hamflow.cli._data import DATASETS, DataOptions, data_label, open_pairs
from hamflow.cli._methods import MaxMemory, MethodName, Model, PresetOrMethod, chosen_method
from hamflow.cli._options import Number, OptionalFile, check_targets, option, parse_window
from hamflow.crf import CrfConfig
from hamflow.datasets.registry import DatasetName
from hamflow.errors import InputError
from hamflow.evaluation._columns import BY_NAME
from hamflow.evaluation.methods import Method, MethodConfig
from hamflow.evaluation.records import Evaluation
from hamflow.evaluation.runner import WORK, evaluate
from hamflow.io._atomic import check_writable
from hamflow.io._text import write_csv, write_json

TABLE = "pairs.csv"
"""The table of all pairs in the folder of an evaluation."""

# Rows of the printed summary; the errors have two columns.
_ERRORS = (
    *("epe_all", "epe_noc", "epe_occ", "s0_10", "s10_40", "s40plus", "d0_10", "d10_60", "d60_140"),
    *("fl_all", "fl_noc", "outlier_1px", "outlier_3px", "outlier_5px", "angular_all"),
)
_OTHERS = ("ause", "occlusion_f1", "gap", "seconds", "peak_memory")
_DATASET = option("DATASET", f"One of {DATASETS}. Scenes of synthetic are rendered on demand.")


@dataclass(frozen=True)
class MethodOptions:
    """What to measure instead of a preset, or how to change it.

    Parameters
    ----------
    scale
        Reduce the frames by this whole factor first. Errors stay in pixels of full resolution.
    window
        Displacements to search, in pixels of the reduced frames: D for the square from -D/2 to
        D/2-1, or u0,du,v0,dv. By default 128 for wta and crf; presets choose their own.
    crf_file
        TOML file with other parameters for crf-f and crf-q than the paper's, under the names of
        hamflow.crf.CrfConfig.
    """

    method: MethodName = None
    model: Model = None
    scale: Number = 1
    window: Annotated[str | None, option("WINDOW")] = None
    crf_file: OptionalFile = None
    max_memory: MaxMemory = None


_DATA = DataOptions()
_METHOD = MethodOptions()


def evaluate_command(
    dataset: Annotated[tyro.conf.Positional[DatasetName], _DATASET],
    root: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[ROOT]")] = None,
    *,
    preset: PresetOrMethod = None,
    output: Annotated[Path | None, option("FOLDER", aliases=["-o"])] = None,
    html: OptionalFile = None,
    json: OptionalFile = None,
    overwrite: bool = False,
    data: tyro.conf.OmitArgPrefixes[DataOptions] = _DATA,
    method: tyro.conf.OmitArgPrefixes[MethodOptions] = _METHOD,
) -> None:
    """Measure the errors of a preset or another method on all pairs of a data set.

    For example:

        hamflow evaluate synthetic --count 20 --preset fast
        hamflow evaluate sintel MPI-Sintel-complete --pass final --subset 0.1

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
    output
        Folder of the evaluation, new or empty. (default: evaluations/DATASET-METHOD)
    html
        A report as one HTML page, with pictures of the best and the worst pairs; needs the extra
        'report'. An existing file is replaced.
    json
        The settings, the summary and all pairs as JSON. An existing file is replaced.
    overwrite
        Start again: remove an earlier evaluation in that folder.
    """
    crf_file = method.crf_file
    chosen = Method(
        MethodConfig(
            chosen_method(preset, method.method),
            model=method.model,
            window=None if method.window is None else parse_window(method.window),
            scale=method.scale,
            crf=None if crf_file is None else CrfConfig.paper().updated(crf_file),
            max_memory=method.max_memory,
        )
    )
    write_report = None if html is None else report_writer()
    pairs, described = open_pairs(dataset, root, data)
    folder = Path("evaluations") / f"{data_label(described)}-{chosen.label}"
    folder = folder if output is None else output
    check_targets(
        {"--json": json, "--html": html},
        files=[preset, method.model, crf_file, folder / LOG, folder / TABLE],
        root=root,
    )
    console = Console(markup=False)
    with WorkLog.in_folder(folder, WORK, overwrite=overwrite) as log:
        for path in (json, html):
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
    said = count(row["images"], "pair") + (f", {row['failed']} failed" if row["failed"] else "")
    table = table_of("", "all pixels together", "mean over pairs", title=f"{found.label}: {said}")
    table.caption = found.occlusion_note()
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
