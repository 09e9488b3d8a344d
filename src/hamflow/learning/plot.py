"""The picture of a learning curve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hamflow.errors import InputError
from hamflow.io._atomic import atomic_write
from hamflow.learning.log import read_curve

_COLORS = ("#1f6f8b", "#d1495b", "#66a182", "#8d6a9f", "#edae49")


def plot_curve(
    path: Path | Sequence[Path],
    output: Path,
    *,
    labels: Sequence[str] = (),
    title: str = "",
) -> None:
    """Draw the loss and the outliers at validation of one or several ``curve.csv``.

    The labels are the names of the runs; by default those of their folders.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    paths = [path] if isinstance(path, Path) else list(path)
    names = list(labels) or [p.parent.name for p in paths]
    if len(names) != len(paths):
        raise InputError(
            f"labels must have one entry for each of the {len(paths)} curves, not {len(names)}."
        )
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for number, (file, name) in enumerate(zip(paths, names, strict=True)):
        color = _COLORS[number % len(_COLORS)]
        rows = read_curve(file)
        if not rows:
            continue
        steps, losses = _column(rows, "number"), _column(rows, "loss")
        left.plot(steps, losses, color=color, alpha=0.15, linewidth=0.7)
        left.plot(steps, _smoothed(losses), color=color, label=name)
        outliers = _column(rows, "val_outlier_3px_qq")
        trained = _column(rows, "val_outlier_3px_trained")
        seen = np.isfinite(outliers)
        right.plot(steps[seen], 100 * outliers[seen], color=color, marker=".", label=f"{name}, QQ")
        seen = np.isfinite(trained)
        right.plot(steps[seen], 100 * trained[seen], color=color, linestyle=":", label="as trained")
    left.set(xlabel="step", ylabel="loss (nats per pixel, u and v)", title=title)
    right.set(xlabel="step", ylabel="outliers above 3 px, %", title="validation, winner takes all")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=8)
        axes.set_ylim(bottom=0)
    with atomic_write(output) as picture:
        figure.savefig(picture, format="png", dpi=110)


def _column(rows: list[dict[str, str]], name: str) -> NDArray[np.float64]:
    return np.array([float(row[name]) if row[name] else np.nan for row in rows])


def _smoothed(values: NDArray[np.float64], length: int = 50) -> NDArray[np.float64]:
    """Return the running means over the last `length` values."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - length, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))
