"""``hamflow bench pair``: whole pairs, beside OpenCV's methods on the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._memory import peak_memory
from hamflow.bench._measure import machine
from hamflow.config import EstimatorConfig, preset_config
from hamflow.datasets import FlowPair, FolderDataset, demo_scene
from hamflow.estimator import Estimator
from hamflow.evaluation import epe_metrics, opencv_methods, sparsification
from hamflow.evaluation.peers import Method
from hamflow.evaluation.runner import occlusion_f1
from hamflow.flow import endpoint_error
from hamflow.visualize import to_bytes

Progress = Callable[[str], None]

STEPS: dict[str, dict[str, Any]] = {
    "all": {},
    "one scale of matching": {"levels": 1},
    "without the check of both directions": {"both": False},
    "without filling": {"filling": False},
    "without the variational refinement": {"fractions": False},
    "whole pixels of the matching scale": {"filling": False, "fractions": False},
}
"""What the ablation leaves out."""


def steps(pairs: int, presets: int, peers: int, rounds: int, *, ablation: bool) -> int:
    """Return how often `run` reports progress."""
    return (presets + peers) * (rounds + pairs) + (len(STEPS) * pairs if ablation else 0)


def run(
    pairs: FolderDataset | None,
    presets: Sequence[str],
    *,
    peers: Sequence[str] | None = None,
    rounds: int = 3,
    ablation: bool = False,
    progress: Progress = lambda _: None,
) -> dict[str, Any]:
    """Measure presets and OpenCV's methods: seconds on a rendered scene, errors on real pairs.

    Parameters
    ----------
    pairs : FolderDataset or None
        Pairs with known flow, for the errors.
    presets : sequence of str
        Presets or TOML files.
    peers : sequence of str, optional
        Which of OpenCV's methods; all by default, none for an empty sequence.
    rounds : int
        Seconds are the best of so many runs.
    ablation : bool
        Also measure the first preset with each of its steps left out.
    progress : callable
        Told what comes next.
    """
    methods = opencv_methods() if peers is None or peers else {}
    if peers is not None:
        methods = {name: methods[name] for name in peers}
    ours = {name: Estimator(name) for name in presets}
    report: dict[str, Any] = {
        "machine": machine(),
        "presets": list(presets),
        "peers": list(methods),
        "seconds": _seconds(ours, methods, rounds, progress),
        "peak_memory": peak_memory(),
        "rows": [],
    }
    for pair in pairs or ():
        for name, estimator in ours.items():
            progress(f"{pair.name}: {name}")
            report["rows"].append({"pair": pair.name, "method": name} | _ours(pair, estimator))
        for name, method in methods.items():
            progress(f"{pair.name}: {name}")
            report["rows"].append({"pair": pair.name, "method": name} | _theirs(pair, method))
    if ablation and pairs is not None:
        report["ablation"] = _ablation(pairs, preset_config(presets[0]), progress)
    return report


def by_group(rows: Sequence[Mapping[str, Any]], key: str = "epe") -> dict[str, dict[str, float]]:
    """Return the means over the pairs of each group: {group: {method: mean}}.

    A method that failed on one of them, or does not know the quantity, is left out.
    """
    values: dict[str, dict[str, list[float | None]]] = {}
    for row in rows:
        group = row["pair"].rpartition("/")[0]
        values.setdefault(group, {}).setdefault(row["method"], []).append(row.get(key))
    means: dict[str, dict[str, float]] = {}
    for group, methods in values.items():
        for name, found in methods.items():
            known = [value for value in found if value is not None]
            if len(known) == len(found):
                means.setdefault(group, {})[name] = float(np.mean(known))
    return means


def _seconds(
    ours: Mapping[str, Estimator],
    methods: Mapping[str, Callable[..., Any]],
    rounds: int,
    progress: Progress,
) -> dict[str, Any]:
    """Time everything on one rendered scene, in turns, so that all share good and bad moments."""
    scene = demo_scene(width=1024, height=436)
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for name, estimator in ours.items():
            progress(f"rendered scene: {name}")
            result, seconds = _timed(partial(estimator.estimate, scene.image0, scene.image1))
            if name not in best or seconds < best[name]["all"]:
                best[name] = {"all": seconds, **result.timings}
        for name, method in methods.items():
            progress(f"rendered scene: {name}")
            _, seconds = _timed(partial(method, scene.image0, scene.image1))
            if name not in best or seconds < best[name]["all"]:
                best[name] = {"all": seconds}
    return best | _second_pair(ours, scene, rounds)


def _second_pair(ours: Mapping[str, Estimator], scene: Any, rounds: int) -> dict[str, Any]:
    """Time the second pair of a video: frames known, window of the pair before."""
    found = {}
    for name, estimator in ours.items():
        if not estimator.config.both:
            continue
        best = np.inf
        for _ in range(rounds):
            first, second = (estimator.frame(i) for i in (scene.image0, scene.image1))
            matched = estimator.between(first, second)[1]
            # Back again: the same work as going on, with exactly known frames.
            third = estimator.frame(scene.image0)
            back = replace(matched, directions=matched.directions[::-1])
            _, seconds = _timed(partial(estimator.between, second, third, previous=back))
            best = min(best, seconds)
        found[f"{name}, next pair of a video"] = {"all": float(best)}
    return found


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def _ours(pair: FlowPair, estimator: Estimator) -> dict[str, Any]:
    result, seconds = _timed(lambda: estimator.estimate(pair.image0, pair.image1))
    row = _errors(pair, result.flow) | {"seconds": seconds, "gap": result.gap}
    if result.confidence is not None:
        error = endpoint_error(result.flow, pair.flow)
        row["ause"] = sparsification(error, result.confidence).ause
    known = np.asarray(np.isfinite(pair.flow).all(axis=2))
    f1 = occlusion_f1(result.occlusion, pair.occluded, known)
    if f1 is not None:
        row["occlusion_f1"] = f1
    return row


def _theirs(pair: FlowPair, method: Method) -> dict[str, Any]:
    try:
        flow, seconds = _timed(partial(method, to_bytes(pair.image0), to_bytes(pair.image1)))
    except Exception as trouble:  # some give up on some pairs, with exceptions of their own
        return {"epe": None, "noc": None, "seconds": None, "failed": str(trouble)}
    if not np.isfinite(flow).all():
        return {"epe": None, "noc": None, "seconds": seconds, "failed": "undefined flow"}
    return _errors(pair, flow) | {"seconds": seconds}


def _errors(pair: FlowPair, flow: NDArray[np.float32]) -> dict[str, Any]:
    metrics = epe_metrics(flow, pair.flow, pair.occluded)
    return {
        "epe": metrics.epe_all,
        "noc": None if np.isnan(metrics.epe_noc) else metrics.epe_noc,
    }


def _ablation(
    pairs: FolderDataset, config: EstimatorConfig, progress: Progress
) -> dict[str, dict[str, float]]:
    rows = []
    for step, without in STEPS.items():
        estimator = Estimator(replace(config, **without))
        for pair in pairs:
            progress(f"{pair.name}: {step}")
            flow = estimator.estimate(pair.image0, pair.image1).flow
            rows.append({"pair": pair.name, "method": step} | _errors(pair, flow))
    return by_group(rows)
