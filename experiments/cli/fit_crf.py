"""``fit-crf``: the joint model's parameters for one's own image pairs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from experiments.fit_crf.fitting import FitResult, fit
from experiments.fit_crf.points import PARAMETERS, FitStep, Objective, Parameter
from hamflow.cli._options import parse_window
from hamflow.crf import CrfConfig
from hamflow.datasets.folder import FolderDataset
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

    Searches for the τ1, τ2, δ, α and c_outside that give the smallest error with a descriptor,
    starting from the paper's values, and writes them to a file of their own: the
    paper's values stay the defaults everywhere. What is fitted to a benchmark's pairs must not be
    reported on the same pairs, so keep some that the fit does not see. Ctrl-C ends the search with
    what it has found, and --resume continues it.

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
        Displacements to look at, in pixels of the reduced images: D for the square -D/2..D/2-1, or
        u0,du,v0,dv.
    descriptor
        What describes the pixels: pairs (hand-crafted), the name of a shipped model, or a file.
    budget
        How many sets of parameters to try, those of a resumed search included.
    objective
        What to minimize: relative, the geometric mean over the pairs of the capped error relative
        to that of winner takes all, so that no single pair decides; capped, the mean over the pairs
        of the capped error; or epe, that of the plain endpoint error.
    cap
        No pixel's error counts more than this many pixels (except in epe). If it is small, some
        regions may be sacrificed for others.
    parameters
        Which to fit; the others keep the paper's values.
    outer
        How often the solver goes through both planes.
    inner
        Passes over a plane, each time: 2·inner - 1.
    json
        Where each set of parameters and its errors are written as soon as they are known (a JSON
        object per line); next to the output, with the suffix .jsonl, if not given.
    resume
        Continue the search whose tries are in that file, with the same options; a larger budget
        goes on where a smaller one ended.
    """
    win = parse_window(window)
    start = CrfConfig(outer=outer, inner=inner)
    check_writable(output)
    describe = load_model(descriptor).bits
    log = output.with_suffix(".jsonl") if json is None else json
    if os.path.realpath(log) == os.path.realpath(output):
        raise InputError(f"The output and its JSON lines are the same file, {log}; name two.")
    pairs = FolderDataset(root)
    if only:
        try:
            pairs = pairs.subset(only)
        except InputError as error:
            raise InputError(f"--only: {error}") from None

    console = Console(markup=False)
    columns = (
        TextColumn("{task.description:28}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    # Only where someone may be watching; all that it shows is in the tables, too.
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
    # Before anything is printed, which may fail.
    with atomic_write(output) as file:
        file.write(result.toml().encode())
    for table in _tables(result):
        console.print(table)
    console.print(
        f"{_ENDINGS[result.ended]} Wrote {output}, and all {len(result.points)} tries to {log}.",
        highlight=False,
        soft_wrap=True,
    )
    if result.ended == "interrupted":
        raise KeyboardInterrupt


_ENDINGS = {
    "converged": "No step leads any further.",
    "budget": "The budget is spent; --resume with a larger one continues.",
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
            # What a resumed fit had done before says nothing of how long the rest takes.
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
        title="Mean endpoint error in pixels, on the pairs that were fitted to",
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
    """Winner takes all, before, after; and how much the last two differ."""
    _, before, after = row
    change = f"{after / before - 1:+.1%}" if before else ""
    return [*(f"{value:.3f}" for value in row), change]
