"""What several commands of the laboratory have in common."""

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
from hamflow.evaluation.records import write_json
from hamflow.window import MAX_LABELS

DataWords = Annotated[tuple[str, ...], tyro.conf.arg(metavar="DATASET ROOT")]
"""The option ``--data``; `parse_data` reads it."""

_Report = TypeVar("_Report")


def check_bench(width: int, height: int, d: int, rounds: int) -> None:
    """Raise at once where nothing can be measured."""
    if min(width, height, rounds) < 1 or d < 8 or d % 8 or 2 * d > MAX_LABELS:
        raise InputError(
            f"The sizes and rounds must be positive, and D a multiple of 8 up to {MAX_LABELS // 2}."
        )
    if get_isa() == "reference":
        raise InputError("The level 'reference' has no benchmark; choose another with HAMFLOW_ISA.")


def measure(console: Console, run: Callable[[Callable[[str], None]], _Report]) -> _Report:
    """Return what `run` finds; meanwhile show the step that it names, and the time."""
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("preparing", total=None)
        return run(lambda step: bar.update(task, description=step))


def save_json(console: Console, path: Path | None, report: dict[str, Any]) -> None:
    """Write every figure of a report if a file is named, and say so."""
    if path is not None:
        write_json(path, report)
        console.print(f"Wrote {path}", highlight=False, soft_wrap=True)


def parse_data(words: Sequence[str]) -> tuple[str, Path | None]:
    """Return the name of a data set and its folder, which synthetic scenes can do without."""
    if len(words) not in (1, 2):
        raise InputError(
            f"--data takes the name and the folder of a data set, not {len(words)} words."
        )
    return words[0], Path(words[1]) if len(words) > 1 else None


@contextmanager
def evaluating(console: Console, folder: Path) -> Iterator[CountProgress]:
    """Show a bar over pairs; if that is interrupted, say where those that are done are."""
    try:
        with progress_bar(console) as progress:
            yield progress
    except KeyboardInterrupt:
        say(f"What was measured is in {folder}; --resume continues.")
        raise
