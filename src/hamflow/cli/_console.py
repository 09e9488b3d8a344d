"""What several commands print in the same way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table

from hamflow._types import CountProgress


def say(sentence: str, *, stderr: bool = False) -> None:
    """Print a sentence as it is, on one line."""
    # The name of a file need not be valid Unicode.
    shown = sentence.encode(errors="replace").decode()
    Console(stderr=stderr, soft_wrap=True, markup=False).print(shown, highlight=False)


def count(number: int, noun: str) -> str:
    """Return a number and what is counted, such as "1 pair" or "2 pairs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def table_of(first: str, *others: str, title: str | None = None) -> Table:
    """Return an empty table of names and numbers that also fits a narrow screen.

    Its first column has names, the others have numbers. Where there is no room, headings and cells
    are broken into lines, never cut.
    """
    names = Column(first, overflow="fold")
    table = Table(names, title=title, box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for heading in others:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def cell(value: float | None, form: str) -> str:
    """Return a number for a table, or a dash if it is not known."""
    return "–" if value is None or math.isnan(value) else format(value, form)


@contextmanager
def progress_bar(
    console: Console, title: str = "", *, counted: bool = True
) -> Iterator[Callable[[str, float, float | None], None]]:
    """Show a progress bar while the block runs, if the console is a terminal.

    Yields a function that moves the bar: it takes a description, how much is done, and of how much
    (None if that is not known). With `counted`, the bar shows these numbers and the remaining time,
    otherwise the elapsed time.
    """
    times = (MofNCompleteColumn(), TimeRemainingColumn()) if counted else (TimeElapsedColumn(),)
    with Progress(
        TextColumn("{task.description:36}"),
        BarColumn(),
        *times,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        speed_estimate_period=600,  # a single pair may take minutes
    ) as bar:
        task = bar.add_task(title, total=None)
        started = False

        def show(description: str, done: float, total: float | None) -> None:
            nonlocal started
            if not started:
                # What an earlier run has done says nothing about the time that the rest takes.
                bar.reset(task, completed=int(done), total=total)
                started = True
            bar.update(task, description=description, completed=done, total=total)

        yield show


@contextmanager
def says_how_to_continue(place: Path, overwrite: bool) -> Iterator[None]:
    """If the user interrupts the block, say that finished work is kept, and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"Stopped early; finished work is kept in {place}, and {continuing(overwrite)}.")
        raise


def continuing(overwrite: bool) -> str:
    """Return how to continue, as a part of a sentence."""
    return f"the same command{' without --overwrite' if overwrite else ''} continues"


def named(progress: CountProgress, title: str) -> CountProgress:
    """Put a title before the descriptions that a progress bar shows."""
    return lambda name, done, total: progress(f"{title} {name}", done, total)
