"""The picture of a learning curve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hamflow.io._atomic import atomic_write
from hamflow.learning.log import read_curve

_COLOR = "#1f6f8b"


def plot_curve(path: Path, output: Path, *, title: str = "") -> None:
    """Draw the loss and the outliers at validation of a ``curve.csv``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    rows, name = read_curve(path), path.parent.name
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    if rows:
        steps, losses = _column(rows, "number"), _column(rows, "loss")
        left.plot(steps, losses, color=_COLOR, alpha=0.15, linewidth=0.7)
        left.plot(steps, _smoothed(losses), color=_COLOR, label=name)
        for column, label, style in (
            ("val_outlier_3px_qq", f"{name}, QQ", {"marker": "."}),
            ("val_outlier_3px_trained", "as trained", {"linestyle": ":"}),
        ):
            outliers = _column(rows, column)
            seen = np.isfinite(outliers)
            right.plot(steps[seen], 100 * outliers[seen], color=_COLOR, label=label, **style)
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
