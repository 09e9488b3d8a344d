"""``bench pair``: compare times and errors of presets and of OpenCV's methods.

`hamflow.evaluation` measures the errors. The times are measured here: all methods run in turns, so
that a busy moment of the machine affects all of them alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.bench._measure import StepProgress, timed
from experiments.variants import ABLATION, Variant
from hamflow._memory import peak_memory
from hamflow._runtime import machine
from hamflow._types import Pixels
from hamflow.datasets.folder import FolderDataset
from hamflow.estimator import Estimator
from hamflow.evaluation import Method
from hamflow.evaluation.runner import measure


def run(
    frames: Sequence[Pixels],
    presets: Sequence[str],
    *,
    peers: Sequence[str] = (),
    pairs: FolderDataset | None = None,
    rounds: int = 3,
    ablation: bool = False,
    progress: StepProgress = lambda _: None,
) -> dict[str, Any]:
    """Measure presets and OpenCV's methods.

    Parameters
    ----------
    frames : sequence of images
        Consecutive frames, to measure times on.
    presets : sequence of str
        Presets or TOML files.
    peers : sequence of str
        OpenCV's methods, by their names in `hamflow.evaluation.method_names`.
    pairs : FolderDataset, optional
        Pairs with known flow, to measure errors on.
    rounds : int
        Repetitions; the best time counts.
    ablation : bool
        Also measure the first preset without each of its steps, on the pairs.
    progress : callable
        Called with the name of each step when it begins.
    """
    methods = {name: Method(name) for name in (*presets, *peers)}
    height, width = frames[0].shape[:2]
    report: dict[str, Any] = {
        "machine": machine(),
        "width": width,
        "height": height,
        "frames": len(frames),
        "presets": list(presets),
        "peers": list(peers),
        "seconds": _seconds(frames, presets, {p: methods[p] for p in peers}, rounds, progress),
        "peak_memory": peak_memory(),
        "rows": [] if pairs is None else _errors(pairs, methods, progress),
    }
    if ablation and pairs is not None:
        variants = {step: Variant(presets[0], step, off) for step, off in ABLATION.items()}
        report["ablation"] = by_group(_errors(pairs, variants, progress))
    return report


def by_group(
    rows: Sequence[Mapping[str, Any]], key: str = "epe_all"
) -> dict[str, dict[str, float]]:
    """Return the means over the pairs of each group: {group: {method: mean}}.

    A method that failed on a pair of the group, or has no such quantity, is left out.
    """
    values: dict[str, dict[str, list[float | None]]] = {}
    for row in rows:
        group = row["pair"].rpartition("/")[0]
        values.setdefault(group, {}).setdefault(row["method"], []).append(row[key])
    means: dict[str, dict[str, float]] = {}
    for group, methods in values.items():
        for name, found in methods.items():
            known = [value for value in found if value is not None]
            if len(known) == len(found):
                means.setdefault(group, {})[name] = float(np.mean(known))
    return means


def _errors(
    pairs: FolderDataset, methods: Mapping[str, Any], progress: StepProgress
) -> list[dict[str, Any]]:
    rows = []
    for pair in pairs:
        for name, method in methods.items():
            progress(f"{pair.name}: {name}")
            rows.append({"method": name, **measure(pair.name, pair, method).as_row()})
    return rows


def _seconds(
    frames: Sequence[Pixels],
    presets: Sequence[str],
    peers: Mapping[str, Method],
    rounds: int,
    progress: StepProgress,
) -> dict[str, dict[str, float]]:
    """Time everything in turns; a method that fails on the frames has no time."""
    estimators = {name: Estimator(name) for name in presets}
    best: dict[str, dict[str, float]] = {}

    def offer(name: str, seconds: float, stages: Mapping[str, float] | None = None) -> None:
        if seconds < best.get(name, {}).get("all", float("inf")):
            best[name] = {"all": seconds, **(stages or {})}

    for _ in range(rounds):
        for name, estimator in estimators.items():
            progress(f"{name}: a pair")
            result, seconds = timed(partial(estimator.estimate, *frames[:2]))
            offer(name, seconds, result.timings)
            progress(f"{name}: a video")
            offer(f"{name}, next pair of a video", _next_pair(estimator, frames))
        for name, method in peers.items():
            progress(f"{name}: a pair")
            try:
                offer(name, timed(partial(method, *frames[:2]))[1])
            except Exception:  # OpenCV's methods raise exceptions of their own on small frames
                best.setdefault(name, {})
    return best


def _next_pair(estimator: Estimator, frames: Sequence[Pixels]) -> float:
    """Return the mean seconds of a video's pairs after the first, as in ``hamflow video``.

    Each pair reuses its first frame, and the window of the pair before.
    """
    last = estimator.frame(frames[0])
    state = None
    spent = []
    for image in frames[1:]:

        def step(before: Any = last, known: Any = state, image: Pixels = image) -> Any:
            frame = estimator.frame(image)
            return frame, estimator.between(before, frame, previous=known)[1]

        (last, state), seconds = timed(step)
        spent.append(seconds)
    return float(np.mean(spent[1:]))
