"""The flow of many pairs, which can be interrupted: ``hamflow.batch``."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from tempfile import gettempdir
from typing import Any, Literal, get_args

from hamflow._processes import usable_cores
from hamflow.config import EstimatorConfig
from hamflow.errors import FileError, HamflowError, InputError
from hamflow.estimator import Auto, Estimator
from hamflow.io import check_flow_path
from hamflow.scale import storage
from hamflow.scale.engine import Engine, run
from hamflow.scale.local import LocalEngine
from hamflow.scale.outputs import OUTPUTS, check_directions, estimator_settings
from hamflow.scale.pairs import ImagePair
from hamflow.scale.sources import Source, open_source
from hamflow.scale.store import Store
from hamflow.scale.worker import DONE, STOPPED, Record, Work
from hamflow.window import WindowLike

EngineName = Literal["local", "ray"]

_RECENT = 200  # pairs over which the rate is measured
_EXTRAS = tuple(option.removeprefix("--") for option in OUTPUTS if option != "--output")


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch is, after each pair.

    Attributes
    ----------
    name : str
        The pair that is finished.
    record : dict
        How it went: ``status`` ("done" or "failed"), ``seconds``, ``gap``, ``error``, and more.
    total, known, done, failed : int
        All pairs; those that were complete before; those done and failed now.
    rate : float or None
        Pairs per second, over the last ones; None if that is not known yet.
    """

    name: str
    record: Record
    total: int
    known: int
    done: int
    failed: int
    rate: float | None

    @property
    def seconds_left(self) -> float | None:
        """How long the rest will take."""
        left = self.total - self.known - self.done - self.failed
        return None if self.rate is None else left / self.rate


@dataclass(frozen=True)
class BatchReport:
    """What a batch has done.

    Attributes
    ----------
    total, known, done : int
        All pairs; those that were complete before; those done now.
    failed : dict of str to str
        The reasons for which pairs failed, by their names.
    seconds : float
        How long it took.
    manifest : list of str
        The tables that tell how each pair went.
    """

    total: int
    known: int
    done: int
    failed: dict[str, str]
    seconds: float
    manifest: list[str]


def batch(
    source: Source,
    output: str | os.PathLike[str],
    preset: str | os.PathLike[str] | EstimatorConfig = "balanced",
    *,
    window: WindowLike | Auto = "auto",
    scale: int | None = None,
    model: str | None = None,
    max_memory: int | str | None = None,
    outputs: Iterable[str] = (),
    suffix: str = ".flo",
    every: int = 1,
    engine: EngineName = "local",
    workers: int | None = None,
    threads: int | None = None,
    address: str | None = None,
    timeout: float | None = None,
    overwrite: bool = False,
    progress: Callable[[BatchProgress], object] | None = None,
) -> BatchReport:
    """Estimate the flow of many pairs in several processes, or on a Ray cluster.

    The folder gets the files of each pair as ``hamflow pair`` writes them (``flow/NAME.flo``,
    ``viz/NAME.png`` and so on), a log (``run.jsonl``), and at the end a table of all pairs with
    their status, times, gap and error (``manifest.csv`` and, if pyarrow is installed,
    ``manifest.parquet``). The files do not depend on the engine, workers or threads. The same
    call continues an interrupted batch and tries failed pairs again; other settings are refused.

    A script must call this under ``if __name__ == "__main__":``, because each worker process
    imports the script.

    Parameters
    ----------
    source : path, sequence of paths, or PairDataset
        A folder of frames, of videos, or of folders of these; a video; a ``.csv`` or ``.parquet``
        table with the columns ``image0``, ``image1`` and perhaps ``name``; several of these; or a
        data set of `hamflow.datasets`. Paths can also be URLs of fsspec (extra ``scale``).
    output : path or URL
        A folder: new, empty, or that of an interrupted batch.
    preset, window, scale, model
        As for `Estimator`.
    max_memory : int or str, optional
        As for `Estimator`: what each worker may take.
    outputs : iterable of str
        What to write besides the flow: "viz", "backward", "occlusion", "confidence", "json".
    suffix : str
        The format of the flow files; see `hamflow.write_flow`.
    every : int
        In videos and folders of frames, how many frames later the second one of a pair comes.
    engine : {"local", "ray"}
        Processes on this machine, or actors of Ray (extra ``ray``).
    workers : int, optional
        How many pairs are estimated at the same time: by default as many as there are cores.
    threads : int, optional
        The threads of each worker: by default its share of the cores.
    address : str, optional
        For Ray: the address of a running cluster. By default Ray is started on this machine.
    timeout : float, optional
        Seconds that a pair may take, reading and writing included. One that takes longer fails;
        its worker is ended and replaced.
    overwrite : bool
        Start again, and remove the files of an earlier batch in that folder.
    progress : callable, optional
        Called with a `BatchProgress` after each pair.

    Returns
    -------
    BatchReport

    Raises
    ------
    HamflowError
        If the source or the settings are wrong, the output cannot be written, or no worker can
        start. A pair that fails is told in the report instead.

    Examples
    --------
    >>> import hamflow, os, tempfile, numpy as np
    >>> image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.mkdir(f"{folder}/frames")
    ...     for k in range(3):
    ...         hamflow.write_image(f"{folder}/frames/{k}.png", np.roll(image, k, axis=1))
    ...     report = hamflow.batch(f"{folder}/frames", f"{folder}/out", "fast", workers=1)
    ...     report.done, report.failed
    (2, {})
    """
    _check_engine(engine, workers, threads, address)
    if timeout is not None and not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
        raise InputError(f"timeout must be a number of seconds above 0, not {timeout!r}.")
    options = _options(outputs)
    pairs, described = open_source(source, every)
    place = storage.absolute(output)
    _check_place(place, source)
    estimator = Estimator(preset, window=window, scale=scale, model=model, max_memory=max_memory)
    check_directions(options, estimator.config, str(preset))
    check_flow_path(os.path.join(gettempdir(), f"hamflow-check{suffix}"))  # the suffix
    work = Work(estimator, place, suffix, options)
    began = time.monotonic()
    with Store(place, _settings(work, described), overwrite=overwrite) as store:
        todo = store.missing(pairs)
        tally = _Tally(len(pairs), len(pairs) - len(todo), progress)
        try:
            if todo:
                chosen = _engine(
                    engine, work, len(todo), workers=workers, threads=threads, address=address
                )
                try:
                    _work_off(chosen, todo, store, tally, timeout)
                finally:
                    chosen.close()
                    store.sweep()
        except BaseException:
            with suppress(HamflowError):  # the first trouble is the one to tell
                store.write_manifest(pairs)
            raise
        tables = store.write_manifest(pairs)
    seconds = time.monotonic() - began
    return BatchReport(tally.total, tally.known, tally.done, tally.failed, seconds, tables)


@dataclass
class _Tally:
    total: int
    known: int
    progress: Callable[[BatchProgress], object] | None
    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    times: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def add(self, pair: ImagePair, record: Record) -> None:
        if record["status"] == DONE:
            self.done += 1
        else:
            self.failed[pair.name] = record["error"]
        self.times.append(time.monotonic())
        if self.progress is not None:
            spent = self.times[-1] - self.times[0]
            self.progress(
                BatchProgress(
                    pair.name,
                    record,
                    self.total,
                    self.known,
                    self.done,
                    len(self.failed),
                    (len(self.times) - 1) / spent if spent else None,
                )
            )


def _work_off(
    engine: Engine,
    todo: Sequence[ImagePair],
    store: Store,
    tally: _Tally,
    timeout: float | None,
) -> None:
    for finished in run(engine, todo, timeout):
        stopped = [record["error"] for _, record in finished if record["status"] == STOPPED]
        kept = [item for item in finished if item[1]["status"] != STOPPED]
        store.add(kept)
        for pair, record in kept:
            tally.add(pair, record)
        if stopped:
            raise FileError(f"{stopped[0].removesuffix('.')} (finished pairs are kept).")


def _check_engine(
    engine: str, workers: int | None, threads: int | None, address: str | None
) -> None:
    if engine not in get_args(EngineName):
        raise InputError(f"engine must be 'local' or 'ray', not {engine!r}.")
    for option, value in (("workers", workers), ("threads", threads)):
        if value is not None and (type(value) is not int or value < 1):
            raise InputError(f"{option} must be a whole number of at least 1, not {value!r}.")
    if address is not None and engine != "ray":
        raise InputError("address is for the engine 'ray'; leave it out.")


def _engine(
    name: str,
    work: Work,
    pairs: int,
    *,
    workers: int | None,
    threads: int | None,
    address: str | None,
) -> Engine:
    if name == "ray":
        try:
            from hamflow.scale.ray import RayEngine  # noqa: PLC0415  (an extra)
        except ModuleNotFoundError:
            raise InputError(
                "The engine 'ray' needs the package ray: pip install 'hamflow[ray]'."
            ) from None
        return RayEngine(work, pairs, workers, threads or 1, address)
    cores = usable_cores()
    workers = min(workers or cores, pairs)
    return LocalEngine(work, workers, threads or max(1, cores // workers))


def _options(outputs: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of `OUTPUTS`, that of the flow as the last one."""
    wanted = {*outputs}
    for name in wanted - {*_EXTRAS}:
        raise InputError(f"outputs must be some of {', '.join(_EXTRAS)}, not {name!r}.")
    return (*(f"--{name}" for name in _EXTRAS if name in wanted), "--output")


def _check_place(output: str, source: Source) -> None:
    """Raise an InputError if the output would become a part of the source."""
    if not isinstance(source, str | os.PathLike) or storage.is_url(output):
        return
    folder = storage.plain(source)
    if os.path.isdir(folder):
        real = os.path.realpath(output)
        if os.path.commonpath([real, os.path.realpath(folder)]) == os.path.realpath(folder):
            raise InputError(f"{output}: is inside of {folder}; choose a folder elsewhere.")


def _settings(work: Work, described: dict[str, Any]) -> dict[str, Any]:
    """Return what the files depend on, apart from the images."""
    return {
        **described,
        **estimator_settings(work.estimator),
        "suffix": work.suffix,
        "outputs": [option.removeprefix("--") for option in work.outputs[:-1]],
    }
