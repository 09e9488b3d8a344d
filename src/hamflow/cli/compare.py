"""``hamflow compare``: the errors of several methods on the same pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from hamflow._resume import LOG
from hamflow._runtime import machine
from hamflow.cli._console import cell, named, progress_bar, say, says_how_to_continue, table_of
from hamflow.cli._console import count as counted
from hamflow.cli._data import DataOptions, open_pairs
from hamflow.cli._methods import PRESET_NAMES
from hamflow.cli._options import Number, OptionalFile, check_targets, option
from hamflow.cli.evaluate import report_writer
from hamflow.errors import FileError, InputError
from hamflow.evaluation.comparison import (
    METRICS,
    Comparison,
    check_groups,
    check_methods,
    compare,
    read_evaluation,
)
from hamflow.evaluation.methods import JOINT, LOCAL, Method, MethodConfig, method_names
from hamflow.evaluation.records import Evaluation
from hamflow.evaluation.runner import Pair, evaluate, pair_names
from hamflow.io._atomic import check_writable, make_folder
from hamflow.io._text import write_csv, write_json

TABLE, REPORT = "compare.csv", "compare.json"
"""Files in the folder of a comparison."""

# Columns of the printed table: heading, key, format.
_FIGURES: tuple[tuple[str, str, str], ...] = (
    ("EPE", "epe_all", ".3f"),
    ("per pair", "image_mean_epe_all", ".3f"),
    ("EPE noc", "epe_noc", ".3f"),
    ("per pair", "image_mean_epe_noc", ".3f"),
    ("Fl-all", "fl_all", ".1%"),
    (">3 px", "outlier_3px", ".1%"),
    ("s", "seconds", ".2f"),
)
# Only where the methods differ in these.
_UNEQUAL = (("pairs", "images", "d"), ("failed", "failed", "d"), ("scale", "scale", "d"))
_PAIRS = DataOptions()
_METHODS = tyro.conf.arg(
    metavar="METHOD METHOD ...",
    help=f"Presets ({PRESET_NAMES}), TOML files that change one, {', '.join(LOCAL + JOINT)}, "
    "or methods of OpenCV such as opencv-dis (extra 'peers'). A colon and a descriptor behind a "
    "name use that descriptor, such as crf-q:context or wta-qq:my.safetensors. Folders of 'hamflow "
    "evaluate' can be compared without data.",
)
_METRIC = option("METRIC", f"What to compare; lower is better. One of {', '.join(METRICS)}.")


def compare_command(
    methods: Annotated[tyro.conf.Positional[tuple[str, ...]], _METHODS],
    *,
    data: Annotated[tuple[str, ...], option("DATASET [ROOT]")] = (),
    output: Annotated[Path | None, option("FOLDER", aliases=["-o"])] = None,
    html: OptionalFile = None,
    json: OptionalFile = None,
    overwrite: bool = False,
    metric: Annotated[str, _METRIC] = "epe_all",
    clusters: bool = False,
    scale: Number = 1,
    pairs: Annotated[tyro.conf.OmitArgPrefixes[DataOptions], tyro.conf.arg(name="pair")] = _PAIRS,
) -> None:
    """Compare two or more methods on the same pairs with known flow.

    For example:

        hamflow compare balanced fast opencv-dis --data synthetic --count 20
        hamflow compare fast realtime --data sintel MPI-Sintel-complete --subset 0.1

    Each method is compared with the first: the mean difference of the metric, the geometric mean of
    the ratio, their 95 % confidence intervals (bootstrap over the pairs, 10000 resamples), and on
    how many pairs each method is better. Only pairs on which both methods succeeded are used. A
    method is called better or worse if the interval of the difference does not contain zero.

    Parameters
    ----------
    data
        Name and folder of the data set, as for 'hamflow evaluate'. Synthetic scenes need no
        folder.
    scale
        Reduce the frames by this whole factor first. Errors stay in pixels of full resolution.
    clusters
        Resample whole groups (scenes) instead of pairs. The pairs of a scene resemble each other,
        so this gives wider, more honest intervals.
    output
        Folder for compare.csv (a line for each pair), compare.json, and a folder for each
        evaluation, which can be compared again. An interrupted comparison is continued.
    overwrite
        Start again: repeat the evaluations in that folder.
    json
        All results as JSON. An existing file is replaced.
    html
        A report on the first method as one HTML page, with the others for comparison; needs the
        extra 'report'. An existing file is replaced.
    """
    # "folder/" is the same as "folder", and "method:" the same as "method".
    check_methods([text.rstrip("/:") for text in methods], metric)
    if overwrite and output is None:
        raise InputError("--overwrite needs a folder; name it with --output.")
    write_report = None if html is None else report_writer()
    sources = {text: _source(text, scale) for text in methods}
    chosen = {text: source for text, source in sources.items() if isinstance(source, Method)}
    if html is not None and methods[0] not in chosen:
        raise InputError(
            "--html runs the first method again to draw pictures; name a method, not a folder."
        )
    opened: tuple[Sequence[Pair], dict[str, Any]] = ((), {})
    if chosen:
        opened = open_pairs(*_dataset(data, next(iter(chosen))), pairs)
        if clusters:
            check_groups(pair_names(opened[0]))
    elif data or pairs != _PAIRS or scale != 1:
        raise InputError(
            "Folders are compared as they are; leave out --data, --scale and the choice of pairs."
        )
    logs = _prepared(methods, chosen, output, data, {"--json": json, "--html": html})
    console = Console(markup=False)
    with nullcontext() if output is None else says_how_to_continue(output, overwrite):
        found = _evaluated(sources, opened, logs, overwrite, console)
    result = compare(found, metric, clusters=clusters)
    written = _write(result, output, json)
    if write_report is not None and html is not None:
        with progress_bar(console) as progress:
            write_report(
                html, found[0], opened[0], chosen[methods[0]], others=found[1:], progress=progress
            )
        written.append(html)
    console.print(_figures(result))
    console.print(_contrasts(result))
    for sentence in (*_cautions(result), *(one.sentence for one in result.contrasts)):
        say(sentence)
    if written:
        say(f"Wrote {', '.join(str(path) for path in written)}.")


def _prepared(
    methods: Sequence[str],
    chosen: dict[str, Method],
    output: Path | None,
    data: Sequence[str],
    targets: Mapping[str, Path | None],
) -> dict[str, Path]:
    """Check all files that will be written, make the folders, and return the logs."""
    logs: dict[str, Path] = {}
    own: list[Path] = []
    if output is not None:
        logs = {text: output / name / LOG for text, name in _folders(chosen).items()}
        own = [output / TABLE, output / REPORT, *logs.values()]
    kept = [Path(text) / LOG for text in methods if text not in chosen]
    root = Path(data[1]) if len(data) > 1 else None
    check_targets(targets, files=[*own, *kept], root=root)
    for path in own:
        make_folder(path.parent)
    for target in targets.values():
        check_writable(target)
    return logs


def _evaluated(
    sources: Mapping[str, Method | Evaluation],
    opened: tuple[Sequence[Pair], dict[str, Any]],
    logs: Mapping[str, Path],
    overwrite: bool,
    console: Console,
) -> list[Evaluation]:
    """Run the methods that are not evaluated yet, and return all evaluations."""
    labels = _labels(sources)
    found = []
    for text, source in sources.items():
        if isinstance(source, Evaluation):
            found.append(replace(source, label=labels[text]))
            continue
        with progress_bar(console) as progress:
            one = evaluate(
                opened[0],
                source,
                data=opened[1],
                log=logs.get(text),
                overwrite=overwrite,
                progress=named(progress, text),
            )
        found.append(replace(one, label=labels[text]))
    return found


def _source(text: str, scale: int) -> Method | Evaluation:
    """Return the method of this name, or the evaluation in this folder."""
    folder = Path(text)
    # For a folder with the name of a method, the user has to write a path such as ./fast.
    if text not in method_names() and folder.is_dir():
        if not (folder / LOG).is_file():
            raise FileError(
                f"{folder}: contains no {LOG}; name a folder that 'hamflow evaluate' made."
            )
        return read_evaluation(folder / LOG, text)
    # The first colon of C:\... on Windows does not separate a descriptor.
    drive = text[:2] if text[1:2] == ":" else ""
    name, _, model = text[len(drive) :].partition(":")
    return Method(MethodConfig(drive + name, model=model or None, scale=scale))


def _dataset(data: Sequence[str], method: str) -> tuple[str, Path | None]:
    if not data:
        raise InputError(
            f"{method} needs pairs to run on; name a data set with --data DATASET ROOT, or compare "
            "folders of 'hamflow evaluate'."
        )
    if len(data) > 2:
        raise InputError(
            f"--data takes the name and the folder of a data set, not {len(data)} words; put the "
            "methods before it."
        )
    return data[0], Path(data[1]) if len(data) > 1 else None


def _labels(sources: Mapping[str, Method | Evaluation]) -> dict[str, str]:
    """Return the label of each method: the user's word, for a folder if possible only its name."""
    short = {
        text: (Path(text).name or text) if isinstance(source, Evaluation) else text
        for text, source in sources.items()
    }
    names = list(short.values())
    return {text: name if names.count(name) == 1 else text for text, name in short.items()}


def _folders(methods: dict[str, Method]) -> dict[str, str]:
    """Return a different folder name for each method, the same ones whenever a command is run."""
    names: dict[str, str] = {}
    for text, method in methods.items():
        numbered = (f"{method.label}-{number}" for number in count(2))
        names[text] = next(n for n in chain([method.label], numbered) if n not in names.values())
    return names


def _write(result: Comparison, output: Path | None, json: Path | None) -> list[Path]:
    """Write the files that the user asked for, and return their paths."""
    files = [] if json is None else [json]
    if output is not None:
        write_csv(output / TABLE, result.rows)
        files.append(output / REPORT)
    for path in files:
        write_json(path, {"machine": machine(), **result.as_json()})
    return files if output is None else [output / TABLE, *files]


def _figures(result: Comparison) -> Table:
    """Return a table with the errors of each method."""
    rows = [one.summary() | {"scale": one.settings.get("scale", 1)} for one in result.evaluations]
    unequal = [column for column in _UNEQUAL if len({row[column[1]] for row in rows}) > 1]
    columns = [*_FIGURES, *unequal]
    title = None if _UNEQUAL[0] in unequal else counted(rows[0]["images"], "pair")
    table = table_of("method", *(heading for heading, _, _ in columns), title=title)
    table.caption = "EPE is the mean over all pixels; per pair is the mean over the pairs."
    for one, row in zip(result.evaluations, rows, strict=True):
        table.add_row(one.label, *(cell(row.get(key), form) for _, key, form in columns))
    return table


def _contrasts(result: Comparison) -> Table:
    """Return a table that says how each method differs from the first."""
    interval = f"95 % interval over {'groups' if result.clusters else 'pairs'}"
    table = table_of(
        "method",
        *("difference", interval, "ratio", "better / worse / equal", "verdict"),
        title=f"{result.metric}, compared with {result.evaluations[0].label}",
    )
    for one, contrast in zip(result.evaluations[1:], result.contrasts, strict=True):
        row = contrast.as_row()
        table.add_row(
            one.label,
            cell(row.get("mean"), "+.4g"),
            _interval(row),
            cell(row.get("ratio"), ".4g"),
            _wins(row),
            row.get("verdict", "–"),
        )
    return table


def _interval(row: dict[str, Any]) -> str:
    return "–" if row.get("low") is None else f"{row['low']:+.4g} to {row['high']:+.4g}"


def _wins(row: dict[str, Any]) -> str:
    return "{wins} / {losses} / {ties}".format(**row) if row["pairs"] else "–"


def _cautions(result: Comparison) -> list[str]:
    """Return sentences about limits of the table."""
    said = []
    if len({frozenset(record.pair for record in one.done) for one in result.evaluations}) > 1:
        said.append(
            "The methods succeeded on different pairs, so their columns cover different pairs."
        )
    note = result.evaluations[0].occlusion_note()
    return said if note is None else [*said, note]
