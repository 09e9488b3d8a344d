"""One method on all pairs of a data set, resumable."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import hamflow
from hamflow._memory import peak_memory, reset_peak_memory
from hamflow._resume import WorkLog
from hamflow._types import CountProgress
from hamflow.errors import FileError, HamflowError, InputError
from hamflow.evaluation.fingerprint import fingerprints
from hamflow.evaluation.methods import Estimate, Method
from hamflow.evaluation.metrics import epe_metrics
from hamflow.evaluation.records import ERROR_EDGES, Evaluation, PairRecord
from hamflow.evaluation.sparsification import sparsification
from hamflow.flow import endpoint_error

WORK = "evaluation"
"""What the log of `evaluate` calls its work."""

_EVERY = 5  # of the points of a sparsification curve


class Pair(Protocol):
    """Two frames and the truth about them; `hamflow.datasets` has such pairs."""

    @property
    def image0(self) -> NDArray[Any]:
        """The first frame."""

    @property
    def image1(self) -> NDArray[Any]:
        """The second frame."""

    @property
    def flow(self) -> NDArray[np.float32]:
        """The true flow, NaN where it is unknown."""

    @property
    def occluded(self) -> NDArray[np.bool_] | None:
        """Which pixels of the first frame are hidden in the second."""


def pair_names(pairs: Sequence[Pair]) -> list[str]:
    """Return the names of the pairs of a data set; scenes that are rendered get numbers."""
    names: Sequence[str] | None = getattr(pairs, "names", None)
    return [f"scene_{number:05}" for number in range(len(pairs))] if names is None else list(names)


def evaluate(
    pairs: Sequence[Pair],
    method: Method,
    *,
    data: Mapping[str, Any] | None = None,
    log: str | os.PathLike[str] | WorkLog | None = None,
    overwrite: bool = False,
    progress: CountProgress = lambda *_: None,
) -> Evaluation:
    """Measure a method on all pairs of a data set.

    Parameters
    ----------
    pairs : sequence of pairs
        A data set of `hamflow.datasets`, with known flow.
    method : Method
        What to measure.
    data : mapping, optional
        What the data set is, for the settings.
    log : str or os.PathLike, optional
        A file (JSON Lines) to which each pair is written as soon as it is measured. Pairs that it
        holds already are not measured again, unless their files were changed. The command line
        gives a log that is open already.
    overwrite : bool
        Begin that file anew.
    progress : callable
        Called with the name of the next pair, the number of pairs that are done, and of all.

    Returns
    -------
    Evaluation
        Pairs on which the method gave up (as OpenCV's sometimes do) are marked as failed.

    Raises
    ------
    HamflowError
        If a file of the data set cannot be used, or the log is of another data set or method, or
        another process is writing it. What was measured is in the log.
    """
    names = pair_names(pairs)
    settings = {
        "hamflow": hamflow.__version__,
        "data": dict(data or {}),
        "pairs": names,
        **method.settings,
    }
    with _opened(log, overwrite) as store:
        if store is not None:
            store.begin(settings)
        records = []
        fingerprint = fingerprints(pairs)
        for number, name in enumerate(names):
            mark = fingerprint(number)
            record = None if store is None else _known(store, name, mark)
            if record is None:
                progress(name, number, len(names))
                record = replace(measure(name, pairs[number], method), data=mark)
                if store is not None:
                    store.add(**record.as_json())
            records.append(record)
    progress("", len(names), len(names))
    return Evaluation(method.label, settings, tuple(records))


def measure(name: str, pair: Pair, method: Method) -> PairRecord:
    """Measure a method on one pair."""
    # Read here, so that the time is that of the method.
    image0, image1, truth, occluded = pair.image0, pair.image1, pair.flow, pair.occluded
    if np.isnan(truth).any(axis=2).all():
        raise InputError(f"The true flow of {name} is unknown everywhere; leave this pair out.")
    with suppress(OSError):
        reset_peak_memory()
    started = time.perf_counter()
    estimate = attempt(name, method, image0, image1)
    seconds = time.perf_counter() - started
    if isinstance(estimate, str):
        return PairRecord(name, None, seconds, peak_memory(), failed=estimate)
    return judge(name, estimate, truth, occluded, seconds=seconds, memory=peak_memory())


def attempt(
    name: str, method: Method, image0: NDArray[Any], image1: NDArray[Any]
) -> Estimate | str:
    """Return the estimate of a method, or in one line why it gave up.

    Raises
    ------
    HamflowError
        If it is our own, with the name of the pair.
    """
    try:
        estimate = method(image0, image1)
    except HamflowError as trouble:
        raise type(trouble)(f"{name}: {trouble}") from trouble
    except (MemoryError, OSError):
        raise
    except Exception as trouble:  # OpenCV's methods give up with exceptions of their own
        return " ".join(str(trouble).split()) or type(trouble).__name__
    return estimate if np.isfinite(estimate.flow).all() else "undefined flow"


def judge(
    name: str,
    estimate: Estimate,
    truth: NDArray[np.float32],
    occluded: NDArray[np.bool_] | None,
    *,
    seconds: float,
    memory: int | None,
) -> PairRecord:
    """Return the measurements of an estimate that was made."""
    error = endpoint_error(estimate.flow, truth)
    known = error[~np.isnan(error)]
    ause: float | None = None
    curve: tuple[float, ...] = ()
    oracle: tuple[float, ...] = ()
    if estimate.confidence is not None:
        found = sparsification(error, estimate.confidence)
        ause = found.ause
        curve, oracle = (
            tuple(float(value) for value in line[::_EVERY]) for line in (found.error, found.oracle)
        )
    return PairRecord(
        name,
        epe_metrics(estimate.flow, truth, occluded),
        seconds,
        memory,
        ause=ause,
        gap=estimate.gap,
        occlusion_f1=occlusion_f1(estimate.occlusion, occluded, ~np.isnan(error)),
        histogram=tuple(np.histogram(known, (*ERROR_EDGES, np.inf))[0].tolist()),
        curve=curve,
        oracle=oracle,
    )


def _opened(
    log: str | os.PathLike[str] | WorkLog | None, overwrite: bool
) -> AbstractContextManager[WorkLog | None]:
    if log is None or isinstance(log, WorkLog):
        return nullcontext(log)
    return WorkLog(log, WORK, overwrite=overwrite)


def _known(log: WorkLog, name: str, source: str) -> PairRecord | None:
    record = log.find(name, source)
    try:
        return None if record is None else PairRecord.from_json(record)
    except (KeyError, TypeError, ValueError):
        raise FileError(f"{log.path}: the line of {name} is damaged; remove that line.") from None


def occlusion_f1(
    found: NDArray[np.bool_] | None, true: NDArray[np.bool_] | None, known: NDArray[np.bool_]
) -> float | None:
    """Return the F1 of occlusions among the pixels of known flow; None where nothing is known."""
    if found is None or true is None:
        return None
    both = (found & true & known).sum()
    either = (found & known).sum() + (true & known).sum()
    return float(2 * both / either) if either else 1.0
