"""``hamflow batch``: the flow of many pairs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hamflow.cli._console import continuing, count, progress_bar, say
from hamflow.cli._data import DataOptions, PartOptions, open_pairs
from hamflow.cli._methods import USUAL_SEARCH, Preset, Search
from hamflow.cli._options import FORMAT, Number, Switch, flow_suffix, option
from hamflow.datasets import PairDataset
from hamflow.datasets.registry import DATASETS
from hamflow.errors import InputError
from hamflow.scale.batch import BatchProgress, BatchReport, EngineName
from hamflow.scale.batch import batch as run_batch
from hamflow.scale.sources import Source

SOME_FAILED = 3
"""The exit code of a batch that has ended, but with pairs that failed."""

_NAMED = 5  # failed pairs that are named at the end
_EVERY = 30.0  # seconds between two lines about the progress, if there is no terminal
_OUTPUT = tyro.conf.arg(aliases=["-o"], metavar="OUT")
_DATASETS = ", ".join(name for name in DATASETS if name != "synthetic")
_FORMAT = option("SUFFIX", FORMAT, name="format")


@dataclass(frozen=True)
class FileOptions:
    """What to write of each pair besides the flow.

    Parameters
    ----------
    viz
        Pictures of the flow (.png).
    occlusion
        Masks (.png), white where a pixel is occluded in the second image.
    confidence
        Pictures of the confidence (.png), from black (0) to white (1).
    backward
        The flow from the second image to the first.
    json
        Window, energy, bound, gap, and the seconds of each stage (.json).
    """

    viz: Switch = False
    occlusion: Switch = False
    confidence: Switch = False
    backward: Switch = False
    json: Switch = False


@dataclass(frozen=True)
class WorkerOptions:
    """Who does the work.

    Parameters
    ----------
    engine
        local: processes on this machine. ray: actors of Ray (extra 'ray').
    workers
        How many pairs to compute at the same time; by default as many as there are cores.
    threads
        Threads of each worker; by default its share of the cores, and 1 with Ray.
    address
        For Ray: address of a running cluster, such as auto or head:6379. By default Ray is
        started on this machine.
    timeout
        Seconds that a pair may take. One that takes longer fails alone.
    """

    engine: EngineName = "local"
    workers: Annotated[int | None, option("N")] = None
    threads: Annotated[int | None, option("N")] = None
    address: Annotated[str | None, option("ADDRESS")] = None
    timeout: Annotated[float | None, option("SECONDS")] = None


@dataclass(frozen=True)
class SetOptions(PartOptions):
    """If SOURCE is the folder of a data set."""

    dataset: Annotated[str | None, option("DATASET", f"One of {_DATASETS}.")] = None


_FLOW_ONLY, _NO_SET = FileOptions(), SetOptions()
_USUAL_WORKERS = WorkerOptions()


def batch(
    source: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="SOURCE ...")],
    output: Annotated[str, _OUTPUT],
    *,
    preset: Preset = "balanced",
    suffix: Annotated[str, _FORMAT] = ".flo",
    every: Number = 1,
    overwrite: bool = False,
    log_json: bool = False,
    files: tyro.conf.OmitArgPrefixes[FileOptions] = _FLOW_ONLY,
    workers: tyro.conf.OmitArgPrefixes[WorkerOptions] = _USUAL_WORKERS,
    data: tyro.conf.OmitArgPrefixes[SetOptions] = _NO_SET,
    search: Search = USUAL_SEARCH,
) -> None:
    """Compute the flow of many pairs, in several processes or on a Ray cluster.

    For example:

        hamflow batch frames -o flows --viz

    SOURCE is a folder of frames or videos, or of folders of these; a video, or several; a table
    of pairs (.csv or .parquet) with the columns image0, image1 and perhaps name; or the folder
    of a data set (--dataset). SOURCE and OUT can also be URLs such as s3://bucket/frames (extra
    'scale'). OUT gets the files of each pair as 'hamflow pair' writes them (flow/NAME.flo,
    viz/NAME.png, ...), the log run.jsonl, and the tables manifest.csv and manifest.parquet with
    the status, times, gap and error of each pair.

    A pair that cannot be estimated, that its process dies of, or that takes longer than --timeout,
    fails alone. The exit code is 3
    if some pairs failed. The same command continues an interrupted batch and tries failed pairs
    again; a folder with other settings is refused; --overwrite starts again. The files do not
    depend on the engine, the workers or the threads.

    Parameters
    ----------
    source
        One or several sources.
    output
        The folder for the results, or its URL.
    every
        In videos and folders of frames: compute the flow from each frame to the N-th after it.
    overwrite
        Start again: remove the files of an earlier batch.
    log_json
        Print the progress as lines of JSON, one for each pair.
    """
    with _shown(log_json) as show:
        try:
            report = run_batch(
                _source(source, data),
                output,
                preset,
                **search.settings(),
                outputs=[kind for kind, wanted in asdict(files).items() if wanted],
                suffix=flow_suffix("--format", suffix),
                every=every,
                **asdict(workers),
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


def _source(source: tuple[str, ...], data: SetOptions) -> Source:
    if data.dataset is None:
        if data != SetOptions():
            raise InputError("--pass, --split and --subset are for a --dataset; leave them out.")
        if not source:
            raise InputError("SOURCE is missing; give a folder, videos, or a table of pairs.")
        return source[0] if len(source) == 1 else source
    if len(source) != 1:
        raise InputError("With --dataset, SOURCE must be the one folder of the data set.")
    chosen = DataOptions(data.pass_, data.split, data.subset)
    pairs, _ = open_pairs(data.dataset, Path(source[0]), chosen)
    if not isinstance(pairs, PairDataset):
        raise InputError(
            f"The pairs of {data.dataset} are not files; write them with hamflow synth."
        )
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
