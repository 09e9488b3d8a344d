"""What several commands have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hamflow._runtime import get_isa
from hamflow._types import CountProgress
from hamflow.cli._console import progress_bar, say
from hamflow.errors import InputError
from hamflow.io._text import write_json
from hamflow.window import MAX_LABELS

DataWords = Annotated[tuple[str, ...], tyro.conf.arg(metavar="DATASET ROOT")]
"""The option ``--data``; `parse_data` reads it."""

_Report = TypeVar("_Report")


def check_bench(width: int, height: int, d: int, rounds: int) -> None:
    """Raise an InputError if the sizes, or the instruction set, cannot be measured."""
    if min(width, height, rounds) < 1 or d < 8 or d % 8 or 2 * d > MAX_LABELS:
        raise InputError(
            "Sizes, rounds and steps must be positive, and --d must be a multiple of 8 up to "
            f"{MAX_LABELS // 2}."
        )
    if get_isa() == "reference":
        raise InputError("The level 'reference' has no benchmark; choose another with HAMFLOW_ISA.")


def measure(console: Console, run: Callable[[Callable[[str], None]], _Report]) -> _Report:
    """Return the report of `run`; meanwhile show the name of its current step, and the time."""
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("preparing", total=None)
        return run(lambda step: bar.update(task, description=step))


def save_json(console: Console, path: Path | None, report: dict[str, Any]) -> None:
    """Write a report if a file is given, and say so."""
    if path is not None:
        write_json(path, report)
        console.print(f"Wrote {path}", highlight=False, soft_wrap=True)


def parse_data(words: Sequence[str]) -> tuple[str, Path | None]:
    """Return the name of a data set and its folder; synthetic scenes need no folder."""
    if len(words) not in (1, 2):
        raise InputError(
            f"--data takes the name and the folder of a data set, but has {len(words)} words."
        )
    return words[0], Path(words[1]) if len(words) > 1 else None


@contextmanager
def evaluating(console: Console, folder: Path) -> Iterator[CountProgress]:
    """Show a bar over pairs; after an interrupt, say where the finished pairs are."""
    try:
        with progress_bar(console) as progress:
            yield progress
    except KeyboardInterrupt:
        say(f"The finished pairs are in {folder}; --resume continues.")
        raise
