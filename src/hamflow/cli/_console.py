"""What several commands show alike."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from hamflow._types import CountProgress


def say(sentence: str) -> None:
    """Print a sentence as it is, on one line."""
    # Names of files need not be proper Unicode.
    shown = sentence.encode(errors="replace").decode()
    Console(soft_wrap=True, markup=False).print(shown, highlight=False)


def cell(value: float | None, form: str) -> str:
    """Return a figure as it is shown, or a dash for what is not known."""
    unit = "°" if form.endswith("°") else ""
    return "–" if value is None else format(value, form.removesuffix("°")) + unit


@contextmanager
def pair_progress(console: Console) -> Iterator[CountProgress]:
    """Show a bar over pairs on a terminal; yields what to tell it.

    Meanwhile SIGTERM ends the work as Ctrl-C does.
    """
    columns = (
        TextColumn("{task.description:36}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeRemainingColumn(),
    )
    quiet = not console.is_terminal
    with (
        terminable(),
        Progress(*columns, console=console, transient=True, disable=quiet) as bar,
    ):
        task = bar.add_task("", total=1)
        started = False

        def progress(name: str, done: int, total: int) -> None:
            nonlocal started
            if not started:
                # Pairs of an earlier run say nothing of how long the rest takes.
                bar.reset(task, completed=done, total=total)
                started = True
            bar.update(task, description=name, completed=done, total=total)

        yield progress


@contextmanager
def says_how_to_continue(place: Path, overwrite: bool) -> Iterator[None]:
    """When the user interrupts the block, say that what is done is kept, and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"Stopped early; what is done is kept in {place}, and {continuing(overwrite)}.")
        raise


def continuing(overwrite: bool) -> str:
    """Return how to continue, as a part of a sentence."""
    return f"the same command{' without --overwrite' if overwrite else ''} continues"


def named(progress: CountProgress, title: str) -> CountProgress:
    """Put a title before the names of the pairs."""
    return lambda name, done, total: progress(f"{title} {name}", done, total)


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does.

    Ctrl-C itself stays as it is: a shell that starts a command in the background of a script has it
    ignore Ctrl-C, which is then meant for other commands. SIGTERM ends it all the same.
    """

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        # None: not set by Python, so not to be had back.
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)
