"""How the bound and the energy come together, as a picture."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from hamflow.errors import InputError

if TYPE_CHECKING:
    from hamflow.crf.solver import CrfStep

_FORMATS = {".pdf": "pdf", ".png": "png", ".svg": "svg"}
# Of Okabe and Ito's palette, which the color-blind can tell apart; they differ in brightness, too.
_BLUE, _ORANGE, _GRAY = "#0072B2", "#D55E00", "#555555"
_UNITS = ((1e6, "millions"), (1e3, "thousands"))


def plot_convergence(
    history: Sequence[CrfStep], path: str | os.PathLike[str], title: str | None = None
) -> None:
    """Draw the energy E, the bound Ψ and the gap between them against the time.

    Each value holds until a better one is known, so the lines are steps.

    Parameters
    ----------
    history : sequence of CrfStep
        ``history`` of a `CrfResult`, or what a `callback` of `solve` has collected so far.
    path : str or os.PathLike
        The picture to write: ``.png``, ``.svg`` or ``.pdf``. An existing one is replaced.
    title : str, optional
        What to write above it.

    Raises
    ------
    InputError
        If the history is empty or not finite, the suffix is another, or matplotlib (of the extra
        ``plot``) is not installed.
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hamflow import crf
    >>> history = [crf.CrfStep(1, -2.1e6, -2.0e6, 0.5), crf.CrfStep(2, -2.05e6, -2.04e6, 0.9)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     crf.plot_convergence(history, Path(folder, "convergence.svg"))  # doctest: +SKIP
    """
    form = check_plot(path)
    steps = list(history)
    if not steps:
        raise InputError("history must hold at least one step.")
    if not all(math.isfinite(x) for step in steps for x in (step.bound, step.energy, step.seconds)):
        raise InputError("history must hold finite bounds, energies and seconds.")
    # The objects themselves, not pyplot: that has a state of its own, which belongs to the user.
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    from hamflow.io._atomic import atomic_write  # noqa: PLC0415  (brings Pillow)

    figure = Figure(figsize=(7.0, 5.4), layout="constrained", facecolor="white")
    canvas = FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1))
    end = _draw_values(above, steps)
    _draw_gap(below, steps, end)
    for axes in (above, below):
        axes.tick_params(labelsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
    if title is not None:
        # Above the legend; and a title is text, so that $ is no formula.
        above.set_title(title, loc="left", fontsize=12, pad=30, parse_math=False)
    with atomic_write(path) as file:
        # Without the date, equal histories give equal files.
        dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(form)
        canvas.print_figure(file, format=form, dpi=160, metadata=dated)


def check_plot(path: str | os.PathLike[str]) -> str:
    """Raise at once what `plot_convergence` would say about this path after the work.

    Returns
    -------
    str
        The format that the suffix stands for.
    """
    suffix = PurePath(path).suffix
    form = _FORMATS.get(suffix.lower())
    if form is None:
        raise InputError(
            f"{os.fspath(path)}: a plot cannot have the suffix {suffix!r}; "
            f"use one of: {', '.join(_FORMATS)}."
        )
    try:
        import matplotlib.figure  # noqa: F401, PLC0415  (an extra, and slow to import)
    except ImportError:
        raise InputError(
            "Plots need matplotlib; install it with: pip install 'hamflow[plot]'."
        ) from None
    from hamflow.io._atomic import check_writable  # noqa: PLC0415  (brings Pillow)

    check_writable(path)
    return form


def _draw_values(axes: Any, steps: list[CrfStep]) -> float:
    """Draw E and Ψ with the gap between them shaded; return where the time axis ends."""
    unit, name = _unit(steps)
    seconds = [step.seconds for step in steps]
    energies = [step.energy / unit for step in steps]
    bounds = [step.bound / unit for step in steps]
    end = _end(seconds)
    line = {"drawstyle": "steps-post", "linewidth": 1.8, "markersize": 6, "markeredgecolor": "w"}
    for values, marker, color, label in (
        (energies, "o", _ORANGE, "energy E of the best labeling"),
        (bounds, "s", _BLUE, "lower bound Ψ"),
    ):
        axes.plot(seconds, values, marker=marker, color=color, label=label, zorder=3, **line)
    axes.fill_between(
        seconds, bounds, energies, step="post", color=_GRAY, alpha=0.16, linewidth=0, label="gap"
    )
    axes.set_xlim(0, end)
    axes.margins(y=0.12)
    axes.set_ylabel(f"energy ({name})" if name else "energy", fontsize=11)
    # As read: -23.35, not -2.335e1 or an offset to add in the head.
    axes.ticklabel_format(axis="y", style="plain", useOffset=False)
    # Outside, where no line can pass under it.
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.3}
    axes.legend(ncols=3, fontsize=10, frameon=False, borderpad=0.2, columnspacing=1.8, **place)

    last = steps[-1]
    text = "gap" if last.gap is None else f"gap {_percent(last.gap)}"
    # A bracket over what is left of the gap, in the space after the last step.
    x = seconds[-1] + 0.25 * (end - seconds[-1])
    middle = (energies[-1] + bounds[-1]) / 2
    axes.plot([x, x], [bounds[-1], energies[-1]], color=_GRAY, marker="_", markersize=8, zorder=3)
    axes.annotate(
        text,
        (x, middle),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        fontsize=11,
        fontweight="bold",
        color=_GRAY,
        annotation_clip=False,
    )
    return end


def _draw_gap(axes: Any, steps: list[CrfStep], end: float) -> None:
    """Draw the gap in percent, on a logarithmic axis where it has one."""
    # At 0, a logarithm ends; without a relative gap, there is nothing to draw.
    shown = [step for step in steps if step.gap]
    axes.set_xlabel("seconds", fontsize=11)
    axes.set_ylabel("gap (%)", fontsize=11)
    if not shown:
        axes.set_yticks([0])
        return
    gaps = [100 * (step.gap or 0) for step in shown]
    axes.set_yscale("log")
    axes.plot(
        [step.seconds for step in shown],
        gaps,
        marker="D",
        color=_GRAY,
        linewidth=1.5,
        markersize=5,
        markeredgecolor="w",
        drawstyle="steps-post",
    )
    axes.set_xlim(0, end)
    # At least a factor of six, which holds two of the round numbers.
    low, high = min(gaps), max(gaps)
    room = max(1.3, math.sqrt(6 * low / high))
    low, high = low / room, high * room
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    round_numbers = [digit * 10.0**ten for ten in tens for digit in (1, 2, 5)]
    # Beyond three decades, powers of ten are enough.
    ticks = round_numbers[:: 1 if high < 1000 * low else 3]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.set_ylim(low, high)


def _unit(steps: list[CrfStep]) -> tuple[float, str]:
    """Return in what to count energies, and what it is called."""
    largest = max(abs(value) for step in steps for value in (step.bound, step.energy))
    return next(((unit, name) for unit, name in _UNITS if largest >= unit), (1.0, ""))


def _end(seconds: list[float]) -> float:
    """Return the end of the time axis, with room for what is written after the last step."""
    return seconds[-1] * 1.3 if seconds[-1] > 0 else 1.0


def _percent(gap: float) -> str:
    return f"{100 * gap:.2g} %" if gap < 0.1 else f"{100 * gap:.0f} %"
