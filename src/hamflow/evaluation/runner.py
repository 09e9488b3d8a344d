"""The evaluation of a method on all pairs of a data set, which can be interrupted."""

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
from hamflow.evaluation.records import DAMAGED, ERROR_EDGES, Evaluation, PairRecord
from hamflow.evaluation.sparsification import sparsification
from hamflow.flow import endpoint_error

WORK = "evaluation"
"""The name of this work in its log."""

_EVERY = 5  # every fifth point of a sparsification curve is kept


class Pair(Protocol):
    """Two frames and their true flow, as the data sets of `hamflow.datasets` contain them."""

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
        """Which pixels of the first frame are occluded in the second; None if that is unknown."""


def pair_names(pairs: Sequence[Pair]) -> list[str]:
    """Return the names of the pairs of a data set; rendered scenes are numbered."""
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
        A description of the data set, for the settings.
    log : str or os.PathLike, optional
        A file (JSON Lines) that gets the measurements of each pair at once. Pairs in it are not
        measured again, unless their files have changed. It can also be an open `WorkLog`.
    overwrite : bool
        Start again with an empty log.
    progress : callable
        Called with the name of the next pair, the number of finished pairs, and of all pairs.

    Returns
    -------
    Evaluation
        Pairs on which the method failed (as OpenCV's methods sometimes do) are marked as failed.

    Raises
    ------
    HamflowError
        If a file of the data set cannot be used, the log belongs to another data set or method, or
        another process uses it. Finished pairs stay in the log.
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
            source = fingerprint(number)
            record = None if store is None else _known(store, name, source)
            if record is None:
                progress(name, number, len(names))
                record = replace(measure(name, pairs[number], method), data=source)
                if store is not None:
                    store.add(**record.as_json())
            records.append(record)
    progress("", len(names), len(names))
    return Evaluation(method.label, settings, tuple(records))


def measure(name: str, pair: Pair, method: Method) -> PairRecord:
    """Measure a method on one pair."""
    # The files are read here, because that is not part of the time.
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
    """Return the estimate of a method, or in one line why a method of OpenCV failed.

    Raises
    ------
    HamflowError
        If a method of Hamflow failed; the message begins with the name of the pair.
    """
    try:
        estimate = method(image0, image1)
    except HamflowError as trouble:
        raise type(trouble)(f"{name}: {trouble}") from trouble
    except (MemoryError, OSError):
        raise
    except Exception as trouble:  # OpenCV's methods raise exceptions of their own
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
    """Return the measurements of an estimate."""
    error = endpoint_error(estimate.flow, truth)
    known = error[~np.isnan(error)]
    by_confidence: dict[str, Any] = {}
    if estimate.confidence is not None:
        found = sparsification(error, estimate.confidence)
        curve, oracle = (tuple(line[::_EVERY].tolist()) for line in (found.error, found.oracle))
        by_confidence = {"ause": found.ause, "curve": curve, "oracle": oracle}
    return PairRecord(
        name,
        epe_metrics(estimate.flow, truth, occluded),
        seconds,
        memory,
        gap=estimate.gap,
        occlusion_f1=occlusion_f1(estimate.occlusion, occluded, ~np.isnan(error)),
        histogram=tuple(np.histogram(known, (*ERROR_EDGES, np.inf))[0].tolist()),
        **by_confidence,
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
    except DAMAGED:
        raise FileError(f"{log.path}: the line of {name} is damaged; remove that line.") from None


def occlusion_f1(
    found: NDArray[np.bool_] | None, true: NDArray[np.bool_] | None, known: NDArray[np.bool_]
) -> float | None:
    """Return the F1 score of the occlusion where the flow is known; None without both masks."""
    if found is None or true is None:
        return None
    both = (found & true & known).sum()
    either = (found & known).sum() + (true & known).sum()
    return float(2 * both / either) if either else 1.0
