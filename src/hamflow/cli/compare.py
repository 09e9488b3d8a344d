"""``hamflow compare``: methods side by side, on the same pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from hamflow._resume import LOG
from hamflow._runtime import machine
from hamflow.cli._console import cell, named, pair_progress, say, says_how_to_continue
from hamflow.cli._data import DataOptions, open_pairs
from hamflow.cli._options import check_targets
from hamflow.cli.evaluate import report_writer
from hamflow.errors import FileError, InputError
from hamflow.evaluation.comparison import (
    METRICS,
    Comparison,
    check_groups,
    compare,
    read_evaluation,
)
from hamflow.evaluation.methods import Method, MethodConfig, method_names
from hamflow.evaluation.records import Evaluation, write_csv, write_json
from hamflow.evaluation.runner import Pair, evaluate, pair_names
from hamflow.io._atomic import check_writable, make_folder

TABLE, REPORT = "compare.csv", "compare.json"
"""Files in the folder of a comparison."""

# Rows of the table: heading, key, format.
_FIGURES: tuple[tuple[str, str, str], ...] = (
    ("EPE all, all pixels together", "epe_all", ".3f"),
    ("EPE all, mean over pairs", "image_mean_epe_all", ".3f"),
    ("EPE noc, all pixels together", "epe_noc", ".3f"),
    ("EPE noc, mean over pairs", "image_mean_epe_noc", ".3f"),
    ("Fl-all", "fl_all", ".2%"),
    ("outlier_3px", "outlier_3px", ".2%"),
    ("seconds", "seconds", ".2f"),
    ("pairs", "images", "d"),
    ("failed", "failed", "d"),
)
_SCALE = ("scale", "scale", "d")
_PAIRS = DataOptions()


def compare_command(
    methods: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="METHOD METHOD ...")
    ],
    *,
    data: Annotated[tuple[str, ...], tyro.conf.arg(metavar="DATASET ROOT")] = (),
    pairs: tyro.conf.OmitArgPrefixes[DataOptions] = _PAIRS,
    scale: int = 1,
    metric: str = "epe_all",
    clusters: bool = False,
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
    overwrite: bool = False,
    json: Path | None = None,
    html: Path | None = None,
) -> None:
    """Compare two or more methods on the same pairs with known flow.

    Each of the others is held against the first: by how much the metric differs in the mean over
    the pairs, by which factor in the geometric mean, in which 95 % interval these lie if the pairs
    are taken for a random sample (bootstrap, 10000 resamples), and on how many pairs the other
    wins. Only pairs on which both succeeded count. A method is called better or worse if the
    interval of the difference does not hold zero.

    Example: hamflow compare balanced fast opencv-dis --data sintel ROOT --subset 0.1

    Parameters
    ----------
    methods
        Presets, TOML files that change one, wta-ff, wta-fq, wta-qq, crf-f, crf-q, or OpenCV's such
        as opencv-dis (extra 'peers'); with a colon and a descriptor to take another one, such as
        crf-q:context or wta-qq:my.safetensors. Or folders of 'hamflow evaluate', which need no
        data.
    data
        Name and folder of the data set, as for 'hamflow evaluate'.
    pairs
        Which pairs.
    scale
        Reduce the frames by this whole factor first. Errors stay in pixels of full resolution.
    metric
        What is compared, the less the better: epe_all, epe_noc, epe_occ, fl_all, outlier_1px,
        outlier_3px, angular_all, ause, seconds, or another column of pairs.csv.
    clusters
        Draw whole groups (scenes) instead of pairs, because the pairs of a scene resemble each
        other; intervals become wider, as they should.
    output
        Folder for compare.csv (a line for each pair), compare.json, and the evaluations, each in a
        folder of its own that can be compared again.
    overwrite
        Evaluate anew what is in that folder; without it, an interrupted comparison is continued.
    json
        Where to write everything as JSON, besides that folder.
    html
        Where to write a report of the first method as one page, the others beside it; needs the
        extra 'report'.
    """
    _check_options(methods, metric, output, overwrite=overwrite)
    write_report = None if html is None else report_writer()
    sources = {text: _source(text, scale) for text in methods}
    chosen = {text: source for text, source in sources.items() if isinstance(source, Method)}
    if html is not None and methods[0] not in chosen:
        raise InputError("--html runs the first method again for pictures: name it, not a folder.")
    opened: tuple[Sequence[Pair], dict[str, Any]] = ((), {})
    if chosen:
        opened = open_pairs(*_dataset(data, next(iter(chosen))), pairs)
        if clusters:
            check_groups(pair_names(opened[0]))
    elif data or pairs != _PAIRS or scale != 1:
        raise InputError("Folders are compared as they are; leave out --data, --scale and so on.")
    logs = _prepared(methods, chosen, output, data, {"--json": json, "--html": html})
    console = Console(markup=False)
    told = nullcontext() if output is None else says_how_to_continue(output, overwrite)
    with told:
        found = _evaluated(sources, opened, logs, overwrite, console)
    result = compare(found, metric, clusters=clusters)
    written = _write(result, output, json)
    if write_report is not None and html is not None:
        with pair_progress(console) as progress:
            write_report(
                html, found[0], opened[0], chosen[methods[0]], others=found[1:], progress=progress
            )
        written.append(html)
    console.print(_table(result))
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
    """Check all that is to be written, make the folders, and return the logs."""
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
        if target is not None:
            check_writable(target)
    return logs


def _evaluated(
    sources: Mapping[str, Method | Evaluation],
    opened: tuple[Sequence[Pair], dict[str, Any]],
    logs: Mapping[str, Path],
    overwrite: bool,
    console: Console,
) -> list[Evaluation]:
    """Return the evaluations that were there, and those that are made now."""
    labels = _labels(sources)
    found = []
    for text, source in sources.items():
        if isinstance(source, Evaluation):
            found.append(replace(source, label=labels[text]))
            continue
        with pair_progress(console) as progress:
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


def _check_options(
    methods: Sequence[str], metric: str, output: Path | None, *, overwrite: bool
) -> None:
    if len(methods) < 2:
        raise InputError("Name at least two methods to compare.")
    # A folder may be written in several ways, and a model may be left out after its colon.
    plain = [text.rstrip("/:") for text in methods]
    for text in plain:
        if plain.count(text) > 1:
            raise InputError(f"{text} is named twice; name different methods.")
    if metric not in METRICS:
        raise InputError(f"--metric must be one of {', '.join(METRICS)}; not {metric!r}.")
    if overwrite and output is None:
        raise InputError("--overwrite needs the folder to begin anew; name it by --output.")


def _source(text: str, scale: int) -> Method | Evaluation:
    """Return the method that a word names, or the evaluation that a folder holds."""
    folder = Path(text)
    # A folder that is called as a method is meant only with a path.
    if text not in method_names() and folder.is_dir():
        if not (folder / LOG).is_file():
            raise FileError(f"{folder}: has no {LOG}; name the folder of an evaluation.")
        return read_evaluation(folder / LOG, text)
    # C:\... on Windows is no model.
    drive = text[:2] if text[1:2] == ":" else ""
    name, _, model = text[len(drive) :].partition(":")
    return Method(MethodConfig(drive + name, model=model or None, scale=scale))


def _dataset(data: Sequence[str], method: str) -> tuple[str, Path | None]:
    if not data:
        raise InputError(
            f"{method} needs pairs to run on; name them by --data DATASET ROOT, or compare folders "
            "of 'hamflow evaluate'."
        )
    if len(data) > 2:
        raise InputError(
            f"--data takes the name and the folder of a data set, not {len(data)} words; put the "
            "methods before it."
        )
    return data[0], Path(data[1]) if len(data) > 1 else None


def _labels(sources: Mapping[str, Method | Evaluation]) -> dict[str, str]:
    """Return what to call each: as the user did, folders without their path if that is enough."""
    short = {
        text: (Path(text).name or text) if isinstance(source, Evaluation) else text
        for text, source in sources.items()
    }
    names = list(short.values())
    return {text: name if names.count(name) == 1 else text for text, name in short.items()}


def _folders(methods: dict[str, Method]) -> dict[str, str]:
    """Return a folder name for each method, always the same for the same command."""
    names: dict[str, str] = {}
    for text, method in methods.items():
        number, name = 1, method.label
        while name in names.values():
            number += 1
            name = f"{method.label}-{number}"
        names[text] = name
    return names


def _write(result: Comparison, output: Path | None, json: Path | None) -> list[Path]:
    """Write the files that were asked for, and return which."""
    files = [] if json is None else [json]
    if output is not None:
        write_csv(output / TABLE, result.rows)
        files.append(output / REPORT)
    for path in files:
        write_json(path, {"machine": machine(), **result.as_json()})
    return files if output is None else [output / TABLE, *files]


def _table(result: Comparison) -> Table:
    """Return a column for each method: its figures, and what sets it apart from the first."""
    table = Table("")
    summaries = []
    for one in result.evaluations:
        table.add_column(one.label, justify="right")
        summaries.append(one.summary() | {"scale": one.settings.get("scale", 1)})
    alike = len({row["scale"] for row in summaries}) == 1
    for title, key, form in (*_FIGURES, *(() if alike else (_SCALE,))):
        table.add_row(title, *(cell(row.get(key), form) for row in summaries))
    table.add_section()
    drawn = "groups" if result.clusters else "pairs"
    rows = [contrast.as_row() for contrast in result.contrasts]
    table.add_row(f"{result.metric} minus the first's", "", *_each(rows, "mean", "+.4g"))
    table.add_row(f"95 % interval over {drawn}", "", *_intervals(rows, "low", "high", "+.4g"))
    table.add_row("geometric mean of the ratios", "", *_each(rows, "ratio", ".4g"))
    table.add_row(
        f"95 % interval over {drawn}", "", *_intervals(rows, "ratio_low", "ratio_high", ".4g")
    )
    table.add_row(
        "wins / losses / ties",
        "",
        *("{wins} / {losses} / {ties}".format(**row) if row["pairs"] else "–" for row in rows),
    )
    table.add_row("verdict", "", *(row.get("verdict", "–") for row in rows))
    return table


def _each(rows: Sequence[dict[str, Any]], key: str, form: str) -> list[str]:
    return [cell(row.get(key), form) for row in rows]


def _intervals(rows: Sequence[dict[str, Any]], low: str, high: str, form: str) -> list[str]:
    ends = zip(_each(rows, low, form), _each(rows, high, form), strict=True)
    return ["–" if start == "–" else f"{start} to {end}" for start, end in ends]


def _cautions(result: Comparison) -> list[str]:
    """Return what to keep in mind with the table."""
    said = []
    pairs = {frozenset(record.pair for record in one.done) for one in result.evaluations}
    if len(pairs) > 1:
        said.append("The figures above are of the pairs that each method has, which differ.")
    note = result.evaluations[0].occlusion_note()
    if note is not None:
        said.append(note)
    return said
