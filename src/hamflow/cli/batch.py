"""``hamflow batch``: the flow of many pairs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from hamflow.cli._console import continuing, count, progress_bar, say
from hamflow.cli._data import DATASETS, DataOptions, open_pairs
from hamflow.cli._methods import Model, Preset, Scale, Window
from hamflow.cli._options import FLOW_FORMATS, flow_suffix, parse_auto_window
from hamflow.datasets import PairDataset
from hamflow.datasets.registry import DatasetName
from hamflow.errors import InputError
from hamflow.scale.batch import BatchProgress, BatchReport
from hamflow.scale.batch import batch as run_batch
from hamflow.scale.sources import Source

SOME_FAILED = 3
"""The exit code of a batch that has ended, but with pairs that failed."""

_NAMED = 5  # failed pairs that are named at the end
_EVERY = 30.0  # seconds between two lines about the progress, if there is no terminal
_FORMAT = tyro.conf.arg(name="format", help=f"Format of the flow files: one of {FLOW_FORMATS}.")
_NO_HINT = tyro.conf.arg(help_behavior_hint="")


def batch(
    source: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="SOURCE")],
    output: Annotated[str, tyro.conf.arg(aliases=["-o"], metavar="OUT")],
    *,
    dataset: Annotated[
        DatasetName | None,
        tyro.conf.arg(
            metavar="DATASET", help=(f"SOURCE is the folder of this data set: one of {DATASETS}.")
        ),
    ] = None,
    pass_: Annotated[str | None, tyro.conf.arg(name="pass"), _NO_HINT] = None,
    split: Annotated[str | None, _NO_HINT] = None,
    subset: Annotated[tuple[str, ...], _NO_HINT] = (),
    every: int = 1,
    preset: Preset = "balanced",
    window: Window = "auto",
    scale: Scale = None,
    model: Model = None,
    suffix: Annotated[str, _FORMAT] = ".flo",
    viz: bool = False,
    occlusion: bool = False,
    confidence: bool = False,
    backward: bool = False,
    json: bool = False,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    threads: int | None = None,
    address: str | None = None,
    overwrite: bool = False,
    log_json: bool = False,
) -> None:
    """Compute the flow of many pairs, in several processes or on a Ray cluster.

    SOURCE is a folder of frames or videos, or of folders of these; a video, or several; a table
    of pairs (.csv or .parquet) with the columns image0, image1 and perhaps name; or the folder
    of a data set (--dataset). SOURCE and OUT can also be URLs such as s3://bucket/frames (extra
    'scale'). OUT gets the files of each pair as 'hamflow pair' writes them (flow/NAME.flo,
    viz/NAME.png, ...), the log run.jsonl, and the tables manifest.csv and manifest.parquet with
    the status, times, gap and error of each pair.

    A pair that cannot be estimated, or that its process dies of, fails alone. The exit code is 3
    if some pairs failed. The same command continues an interrupted batch and tries failed pairs
    again; a folder with other settings is refused; --overwrite starts again. The files do not
    depend on the engine, the workers or the threads.

    Parameters
    ----------
    source
        One or several sources.
    output
        The folder for the results, or its URL.
    pass_
        Rendering pass of the data set, if it has several: clean or final.
    split
        Part of the data set, if it has several. By default the part for training.
    subset
        Of the data set: a share such as 0.4, evenly sampled; or names of pairs or groups.
    every
        In videos and folders of frames: compute the flow from each frame to the N-th after it.
    viz
        Write pictures of the flow (.png).
    occlusion
        Write masks (.png), white where a pixel is occluded in the second image.
    confidence
        Write the confidence as pictures (.png), from black (0) to white (1).
    backward
        Write the flow from the second image to the first.
    json
        Write the window, energy, bound, gap and seconds of each stage (.json).
    engine
        'local': processes on this machine. 'ray': actors of Ray (extra 'ray').
    workers
        How many pairs to compute at the same time. By default as many as there are cores.
    threads
        Threads of each worker. By default its share of the cores.
    address
        For Ray: address of a running cluster, such as 'auto' or 'ray://head:10001'. By default
        Ray is started on this machine.
    overwrite
        Start again: remove the files of an earlier batch.
    log_json
        Print the progress as lines of JSON, one for each pair.
    """
    kinds = {
        "viz": viz,
        "occlusion": occlusion,
        "confidence": confidence,
        "backward": backward,
        "json": json,
    }
    with _shown(log_json) as show:
        try:
            report = run_batch(
                _source(source, dataset, DataOptions(pass_, split, subset)),
                output,
                preset,
                window=parse_auto_window(window),
                scale=scale,
                model=model,
                outputs=[kind for kind, wanted in kinds.items() if wanted],
                suffix=flow_suffix("--format", suffix),
                every=every,
                engine=engine,
                workers=workers,
                threads=threads,
                address=address,
                overwrite=overwrite,
                progress=show,
            )
        except KeyboardInterrupt:
            kept = f"finished pairs are kept in {output}, and {continuing(overwrite)}"
            say(f"Stopped early; {kept}.", stderr=True)
            raise
    _tell(report, output, log_json)
    if report.failed:
        raise SystemExit(SOME_FAILED)


def _source(source: tuple[str, ...], dataset: str | None, options: DataOptions) -> Source:
    if dataset is None:
        if options != DataOptions():
            raise InputError("--pass, --split and --subset are for a --dataset; leave them out.")
        if not source:
            raise InputError("SOURCE is missing; give a folder, videos, or a table of pairs.")
        return source[0] if len(source) == 1 else source
    if len(source) != 1:
        raise InputError("With --dataset, SOURCE must be the one folder of the data set.")
    pairs, _ = open_pairs(dataset, Path(source[0]), options)
    if not isinstance(pairs, PairDataset):
        raise InputError(f"The pairs of {dataset} are not files; write them with hamflow synth.")
    return pairs


@contextmanager
def _shown(as_json: bool) -> Iterator[Callable[[BatchProgress], None]]:
    """Show the progress as a bar, as a line now and then, or as JSON for each pair."""
    console = Console(stderr=True, soft_wrap=True, markup=False)
    with progress_bar(console) as bar:
        told = time.monotonic()

        def show(progress: BatchProgress) -> None:
            nonlocal told
            if as_json:
                print(json.dumps(_as_json(progress)), flush=True)
                return
            bar(_rate(progress), progress.done + progress.failed, progress.total - progress.known)
            if not console.is_terminal and time.monotonic() - told > _EVERY:
                told = time.monotonic()
                console.print(_line(progress), highlight=False)

        yield show


def _rate(progress: BatchProgress) -> str:
    rate = "" if progress.rate is None else f", {progress.rate:.2f} pairs/s"
    return f"{progress.done} done, {progress.failed} failed{rate}"


def _line(progress: BatchProgress) -> str:
    left = progress.seconds_left
    rest = "" if left is None else f", {left / 60:.0f} minutes left"
    return f"{_rate(progress)}, of {progress.total - progress.known}{rest}"


def _as_json(progress: BatchProgress) -> dict[str, object]:
    record = progress.record
    keys = ("status", "seconds", "gap", "attempts", "worker", "error")
    return {
        "event": "pair",
        "name": progress.name,
        **{key: record[key] for key in keys if key in record},
        "done": progress.done,
        "failed": progress.failed,
        "known": progress.known,
        "total": progress.total,
        "rate": progress.rate,
        "seconds_left": progress.seconds_left,
    }


def _tell(report: BatchReport, output: str, as_json: bool) -> None:
    if as_json:
        numbers = {"done": report.done, "failed": len(report.failed), "known": report.known}
        end = {"event": "end", **numbers, "total": report.total, "seconds": report.seconds}
        print(json.dumps(end | {"manifest": report.manifest}), flush=True)
        return
    said = [f"{count(report.done, 'pair')} done"]
    if report.known:
        said.append(f"{report.known} done before")
    if report.failed:
        said.append(f"{len(report.failed)} failed")
    if report.done:
        said.append(f"{report.done / report.seconds:.2f} pairs per second")
    say(f"{', '.join(said)}: {output}")
    for name, error in [*report.failed.items()][:_NAMED]:
        say(f"Failed: {name}: {error}", stderr=True)
    if len(report.failed) > _NAMED:
        say(f"Failed: more pairs, which {report.manifest[0]} lists.", stderr=True)
