"""What the commands that repeat the paper's evaluations have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hamflow._types import CountProgress
from hamflow.cli._console import pair_progress, say
from hamflow.errors import InputError

DataWords = Annotated[tuple[str, ...], tyro.conf.arg(metavar="DATASET ROOT")]
"""The option ``--data``; `parse_data` reads it."""


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
        with pair_progress(console) as progress:
            yield progress
    except KeyboardInterrupt:
        say(f"What was measured is in {folder}; --resume continues.")
        raise
