"""How far the work is: a bar, or what the caller wants to do with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from hamflow._types import StageProgress
from hamflow.errors import InputError


@contextmanager
def stage_progress(progress: StageProgress | bool | None) -> Iterator[StageProgress | None]:
    """Give a function that is told of the progress, or None if nobody wants to know.

    True means a bar of the library rich, which is shown while the block runs: on the terminal's
    standard error, or in a notebook.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        # Imported only for this: rich takes longer to import than the rest of Hamflow.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        # In a notebook rich needs a package for a bar that moves, and is plain text without it.
        notebook = None if find_spec("ipywidgets") else False
        with Progress(
            TextColumn("{task.description:12}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True, force_jupyter=notebook),
        ) as bar:
            task = bar.add_task("", total=1.0)
            yield lambda stage, share: bar.update(task, description=stage, completed=share)
    elif callable(progress):
        yield progress
    else:
        raise InputError(
            f"progress must be True for a bar, or a function of a stage and a share, not "
            f"{progress!r}."
        )
