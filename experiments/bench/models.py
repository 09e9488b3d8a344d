"""``bench models``: descriptors side by side, alone and under the joint model."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._runtime import machine
from hamflow._scale import enlarged_flow, reduced
from hamflow.crf import CrfConfig, solve
from hamflow.datasets import FlowPair
from hamflow.datasets.folder import FolderDataset
from hamflow.descriptors import Descriptor, load_model
from hamflow.evaluation import epe_metrics
from hamflow.matching import min_projection

_WRONG = 10.0  # pixels of full resolution

BASE = "pairs"
"""The hand-crafted descriptor, which the others are compared with."""

# The paper's parameters, and what a fit to other pairs (docs/decisions.md) came to.
CONFIGS = {"paper": CrfConfig(), "fitted": CrfConfig(tau1=4.0, tau2=50.0)}


def find_pairs(root: str | os.PathLike[str], only: Sequence[str]) -> FolderDataset:
    """Return the pairs below a folder, or only some of them."""
    pairs = FolderDataset(root)
    return pairs.subset(only) if only else pairs


def run(
    pairs: FolderDataset,
    models: Sequence[str],
    *,
    scale: int = 2,
    window: int = 128,
    configs: Mapping[str, CrfConfig] = CONFIGS,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the errors of each model on each pair, and how they compare.

    Parameters
    ----------
    pairs : FolderDataset
        What to measure on.
    models : sequence of str
        Names or files as `hamflow.load_model` takes them; the hand-crafted descriptor is added.
    scale : int
        Frames are reduced by this factor; errors are in pixels of full resolution.
    window : int
        D, at that scale.
    configs : mapping of str to CrfConfig
        Parameters of the joint model, by a name for each.
    progress : callable
        Told what comes next.
    """
    names = [*(name for name in models if name != BASE), BASE]
    loaded = {name: load_model(name) for name in names}
    rows = []
    for pair in pairs:
        for name, model in loaded.items():
            progress(f"{pair.name}: {name}")
            rows.append(_measured(pair, name, model, scale=scale, window=window, configs=configs))
    methods = ["wta", *(f"crf_{name}" for name in configs)]
    return {
        "machine": machine(),
        "scale": scale,
        "window": window,
        "methods": methods,
        "models": names,
        "pairs": list(pairs.names),
        "rows": rows,
        "ratios": {
            name: {
                method: {over: geometric_ratio(rows, name, method, over) for over in ("all", "noc")}
                for method in methods
            }
            for name in names
        },
    }


def geometric_ratio(
    rows: Sequence[Mapping[str, Any]], name: str, method: str, over: str
) -> float | None:
    """Return the geometric mean over the pairs of a model's error over the base's.

    Pairs without known occlusions do not count for visible pixels (noc).
    """
    errors = {(row["pair"], row["model"]): row[method][over] for row in rows}
    logs = [
        np.log(error / errors[pair, BASE])
        for (pair, model), error in errors.items()
        if model == name and error is not None
    ]
    return float(np.exp(np.mean(logs))) if logs else None


def coherence(
    flow: NDArray[np.float32],
    truth: NDArray[np.float32],
    occluded: NDArray[np.bool_] | None,
    scale: int,
) -> dict[str, float]:
    """Return the shares of visible pixels that are wrong, and that are wrong like their neighbor.

    Wrong is an error above 10 px; like the neighbor to the right (at the reduced scale), a
    difference of at most one label. The joint model corrects errors that are independent of each
    other; where neighbors agree on a wrong flow, it has no reason to.
    """
    visible = np.isfinite(truth).all(axis=2)
    if occluded is not None:
        visible &= ~occluded
    wrong = np.zeros(visible.shape, np.bool_)
    wrong[visible] = np.hypot(*(flow - truth)[visible].T) > _WRONG
    alike = np.zeros(visible.shape, np.bool_)
    steps = np.abs(flow[:, scale:] - flow[:, :-scale]).max(axis=2)
    alike[:, :-scale] = steps <= scale
    count = max(1, int(visible.sum()))
    return {
        "wrong": float(wrong.sum() / count),
        "coherently_wrong": float((wrong & alike).sum() / count),
    }


def _measured(
    pair: FlowPair,
    name: str,
    model: Descriptor,
    *,
    scale: int,
    window: int,
    configs: Mapping[str, CrfConfig],
) -> dict[str, Any]:
    first, second = reduced(pair.image0, scale), reduced(pair.image1, scale)
    started = time.perf_counter()
    bits0, bits1 = model.bits(first), model.bits(second)
    seconds = time.perf_counter() - started
    height, width = (side * scale for side in first.shape[:2])
    truth = pair.flow[:height, :width]
    occluded = None if pair.occluded is None else pair.occluded[:height, :width]

    def errors(flow: Any) -> dict[str, float | None]:
        metrics = epe_metrics(enlarged_flow(flow, scale), truth, occluded)
        return {
            "noc": None if np.isnan(metrics.epe_noc) else metrics.epe_noc,
            "all": metrics.epe_all,
        }

    row: dict[str, Any] = {"pair": pair.name, "model": name, "describe_seconds": seconds}
    flow = min_projection(bits0, bits1, window).wta()
    row["wta"] = errors(flow) | coherence(enlarged_flow(flow, scale), truth, occluded, scale)
    for label, config in configs.items():
        result = solve(bits0=bits0, bits1=bits1, image=first, window=window, config=config)
        row[f"crf_{label}"] = errors(result.flow) | {"gap": result.gap}
    return row
