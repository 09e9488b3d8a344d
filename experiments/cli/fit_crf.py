"""``fit-crf``: fit the joint model's parameters to image pairs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from experiments.bench.models import find_pairs
from experiments.fit_crf.fitting import FitResult, fit
from experiments.fit_crf.points import PARAMETERS, FitStep, Objective, Parameter
from hamflow.cli._options import parse_window
from hamflow.crf import CrfConfig
from hamflow.descriptors import load_model
from hamflow.errors import InputError
from hamflow.io._atomic import atomic_write, check_writable


def fit_crf(
    root: tyro.conf.Positional[Path],
    *,
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("crf.toml"),
    only: tuple[str, ...] = (),
    scale: int = 2,
    window: str = "128",
    descriptor: str = "pairs",
    budget: int = 60,
    objective: Objective = "relative",
    cap: float = 100.0,
    parameters: tuple[Parameter, ...] = PARAMETERS,
    outer: int = 2,
    inner: int = 2,
    json: Path | None = None,
    resume: bool = False,
) -> None:
    """Fit the parameters of the joint model to image pairs with known flow.

    Searches for the τ1, τ2, δ, α and c_outside with the smallest error, starting from the paper's
    values, and writes them to a TOML file for hamflow pair --preset and hamflow evaluate
    --crf-file. Do not report errors on the pairs that were fitted to: keep some pairs held out.
    Ctrl-C ends the search with the best values so far, and --resume continues it.

    Parameters
    ----------
    root
        A tree of folders <group>/<pair>/ with frame1.png, frame2.png and flow.flo or (in KITTI's
        encoding) flow.png.
    output
        Where to write the five parameters (TOML).
    only
        Pairs or groups below that folder to fit to; all if none is named.
    scale
        Reduce the images by this whole factor first. Errors are in pixels of full resolution.
    window
        Displacements to search, in pixels of the reduced images: D for the square -D/2..D/2-1, or
        u0,du,v0,dv.
    descriptor
        What describes the pixels: pairs (hand-crafted), the name of a shipped model, or a file.
    budget
        How many sets of parameters to try, including those of a resumed search.
    objective
        What to minimize: relative, the geometric mean over the pairs of the capped error divided by
        that of winner takes all, so that no single pair decides; capped, the mean over the pairs of
        the capped error; or epe, the mean over the pairs of the endpoint error.
    cap
        The error of a pixel counts as at most this many pixels (except in epe). If the cap is
        small, the search may sacrifice some regions for others.
    parameters
        Which parameters to fit; the others keep the paper's values.
    outer
        Outer iterations of the solver.
    inner
        Inner iterations of the solver.
    json
        File to which each set of parameters and its errors are appended (one JSON object per line);
        by default next to the output, with the suffix .jsonl.
    resume
        Continue the search that is recorded in that file; the options must be the same, except
        for a larger budget.
    """
    win = parse_window(window)
    start = CrfConfig(outer=outer, inner=inner)
    check_writable(output)
    describe = load_model(descriptor).bits
    log = output.with_suffix(".jsonl") if json is None else json
    if os.path.realpath(log) == os.path.realpath(output):
        raise InputError(f"--output and --json are the same file, {log}; name two files.")
    pairs = find_pairs(root, only)

    console = Console(markup=False)
    columns = (
        TextColumn("{task.description:28}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    # Not in a file or a pipe: the tables contain everything that the bar shows.
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task("reading and matching", total=None)
        result = fit(
            pairs,
            start,
            window=win,
            scale=scale,
            parameters=parameters,
            objective=objective,
            cap=cap,
            budget=budget,
            describe=describe,
            log=log,
            resume=resume,
            callback=_Shown(bar, task, budget, len(pairs)),
        )
    # Written first, because printing may fail.
    with atomic_write(output) as file:
        file.write(result.toml().encode())
    for table in _tables(result):
        console.print(table)
    console.print(
        f"{_ENDINGS[result.ended]} Wrote {output}, and all {len(result.points)} tries to {log}. "
        f"Use it with: hamflow pair --preset {output}",
        highlight=False,
        soft_wrap=True,
    )
    if result.ended == "interrupted":
        raise KeyboardInterrupt


_ENDINGS = {
    "converged": "No step improves the result any more.",
    "budget": "The budget is used up; --resume with a larger --budget continues.",
    "interrupted": "Stopped early; --resume continues.",
}


class _Shown:
    """A progress bar over all pairs of all points."""

    def __init__(self, bar: Progress, task: TaskID, budget: int, pairs: int) -> None:
        self._bar = bar
        self._task = task
        self._budget = budget
        self._pairs = pairs
        self._started = False

    def __call__(self, step: FitStep) -> None:
        done, total = step.points * self._pairs + step.pairs, self._budget * self._pairs
        if not self._started:
            # Restart the clock: points from the log took no time, so they would distort the rest.
            self._bar.reset(self._task, completed=done, total=total)
            self._started = True
        best = "" if step.best is None else f", best {step.best.objective:.4f}"
        description = f"point {step.points + 1}/{self._budget}{best}"
        self._bar.update(self._task, completed=done, description=description)


def _tables(result: FitResult) -> list[Table]:
    values = Table("parameter", "paper", "fitted", title="Parameters")
    for parameter in PARAMETERS:
        before, after = (getattr(p.config, parameter) for p in (result.start, result.best))
        values.add_row(parameter, f"{before:g}", f"{after:g}")

    errors = Table(
        "pair",
        "winner takes all",
        "paper",
        "fitted",
        "change",
        title="Mean endpoint error in pixels on the pairs of the fit",
    )
    columns = (result.wta.epe, result.start.epe, result.best.epe)
    for name, *row in zip(result.names, *columns, strict=True):
        errors.add_row(name, *_cells(row))
    errors.add_section()
    errors.add_row("mean", *_cells([sum(column) / len(column) for column in columns]))
    points = (result.wta, result.start, result.best)
    errors.add_row(f"objective: {result.objective}", *_cells([p.objective for p in points]))
    return [values, errors]


def _cells(row: list[float]) -> list[str]:
    """Return the cells of winner takes all, before, after, and the change between the last two."""
    _, before, after = row
    change = f"{after / before - 1:+.1%}" if before else ""
    return [*(f"{value:.3f}" for value in row), change]
