"""``bench models``: compare descriptors, with winner takes all and with the joint model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.bench._measure import StepProgress, timed
from hamflow._runtime import machine
from hamflow._scale import downsample, upsample_nearest
from hamflow.crf import CrfConfig, solve
from hamflow.datasets import FlowPair
from hamflow.datasets.folder import FolderDataset
from hamflow.descriptors import Descriptor, load_model
from hamflow.errors import InputError
from hamflow.evaluation import epe_metrics
from hamflow.matching import min_projection

_WRONG = 10.0  # pixels of full resolution

BASE = "pairs"
"""The hand-crafted descriptor, with which the others are compared."""

# The paper's parameters, and those of a fit to other pairs (docs/decisions.md).
CONFIGS = {"paper": CrfConfig(), "fitted": CrfConfig(tau1=4.0, tau2=50.0)}


def find_pairs(root: str | os.PathLike[str], only: Sequence[str]) -> FolderDataset:
    """Return the pairs below a folder, or those of them that ``--only`` names."""
    pairs = FolderDataset(root)
    try:
        return pairs.subset(only) if only else pairs
    except InputError as error:
        raise InputError(f"--only: {error}") from None


def run(
    pairs: FolderDataset,
    models: Sequence[str],
    *,
    scale: int = 2,
    window: int = 128,
    configs: Mapping[str, CrfConfig] = CONFIGS,
    progress: StepProgress = lambda _: None,
) -> dict[str, Any]:
    """Return the errors of each model on each pair, and their ratios to those of `pairs`.

    Parameters
    ----------
    pairs : FolderDataset
        The pairs to measure on.
    models : sequence of str
        Names or files as `hamflow.load_model` takes them; the hand-crafted descriptor is added.
    scale : int
        Frames are reduced by this factor; errors are in pixels of full resolution.
    window : int
        D, at that scale.
    configs : mapping of str to CrfConfig
        Parameters of the joint model by name.
    progress : callable
        Called with the name of each step when it begins.
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
    """Return the geometric mean over the pairs of a model's error divided by that of `BASE`.

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

    A pixel is wrong if its error is above 10 px. It is like its neighbor to the right (in the
    reduced frame) if they differ by at most one label. The joint model corrects errors that are
    independent of each other, but it cannot correct a wrong flow on which neighbors agree.
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
    first, second = downsample(pair.image0, scale), downsample(pair.image1, scale)
    (bits0, bits1), seconds = timed(lambda: (model.bits(first), model.bits(second)))
    height, width = (side * scale for side in first.shape[:2])
    truth = pair.flow[:height, :width]
    occluded = None if pair.occluded is None else pair.occluded[:height, :width]

    def full(flow: Any) -> Any:
        return scale * upsample_nearest(flow, scale, (height, width))

    def errors(flow: Any) -> dict[str, float | None]:
        metrics = epe_metrics(full(flow), truth, occluded)
        return {
            "noc": None if np.isnan(metrics.epe_noc) else metrics.epe_noc,
            "all": metrics.epe_all,
        }

    row: dict[str, Any] = {"pair": pair.name, "model": name, "describe_seconds": seconds}
    flow = min_projection(bits0, bits1, window).wta()
    row["wta"] = errors(flow) | coherence(full(flow), truth, occluded, scale)
    for label, config in configs.items():
        result = solve(bits0=bits0, bits1=bits1, image=first, window=window, config=config)
        row[f"crf_{label}"] = errors(result.flow) | {"gap": result.gap}
    return row
