"""What several commands parse alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hamflow.errors import InputError
from hamflow.window import Window


def parse_window(text: str) -> Window:
    """Return the window of ``128`` or ``u0,du,v0,dv``."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return Window.of(numbers[0])
    if len(numbers) == 4:
        return Window(*numbers)
    raise InputError(
        "--window must be one number D or four, u0,du,v0,dv, such as -100,140,-20,40; "
        f"not {text!r}."
    )


def check_distinct(inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Refuse to write over an input, or two things to one file.

    Parameters
    ----------
    inputs, outputs : mapping from str to Path or None
        The files of a command, by the names of its arguments.

    Raises
    ------
    InputError
        If an output is the same file as an input or as another output.
    """
    seen = {os.path.realpath(path): name for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        other = seen.setdefault(os.path.realpath(path), name)
        if other != name:
            raise InputError(f"{name} and {other} are the same file, {path}; name two.")


def check_targets(
    targets: Mapping[str, Path | None],
    *,
    files: Iterable[str | os.PathLike[str] | None],
    root: Path | None = None,
) -> None:
    """Refuse to write over files that a command reads or keeps.

    Parameters
    ----------
    targets : mapping from str to Path or None
        What is to be written, by the names of the options.
    files : iterable of path or None
        Files that the command reads, or writes by itself. Names that are no files do no harm.
    root : Path, optional
        Folder of a data set: nothing is written into it.

    Raises
    ------
    InputError
        If a target is one of these, or two targets are the same file.
    """
    check_distinct({}, targets)
    kept = {os.path.realpath(file) for file in files if file is not None}
    for name, path in targets.items():
        if path is None:
            continue
        real = os.path.realpath(path)
        if real in kept:
            raise InputError(f"{name}: {path} is a file of this command itself; name another.")
        if root is not None and Path(real).is_relative_to(os.path.realpath(root)):
            raise InputError(f"{name}: {path} is inside of the data set {root}; name another.")


def chosen_method(preset: str | None, method: str | None) -> str:
    """Return the name of what ``--preset`` or ``--method`` ask for; balanced if neither does.

    Raises
    ------
    InputError
        If both are given, one of them is empty, or one is of the other kind.
    """
    from hamflow.config import PRESETS  # noqa: PLC0415  (loads the joint model)

    if preset is not None and method is not None:
        raise InputError("--preset and --method exclude each other; give one.")
    if preset is not None:
        if preset not in PRESETS and not preset.endswith(".toml"):
            raise InputError(
                f"There is no preset {preset!r}; choose one of {', '.join(PRESETS)}, name a .toml "
                "file, or give another method by --method."
            )
        return preset
    if method is not None and (method in PRESETS or not method):
        raise InputError(f"There is no method {method!r}; presets are given by --preset.")
    return "balanced" if method is None else method


def parse_auto_window(text: str) -> Window | Literal["auto"]:
    """Return the window of ``auto``, ``128`` or ``u0,du,v0,dv``."""
    return "auto" if text == "auto" else parse_window(text)


@contextmanager
def stage_progress() -> Iterator[Callable[[str, float], None]]:
    """Show a bar with the stage of the estimator on a terminal; yields what to tell it."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=1.0)

        def progress(stage: str, share: float) -> None:
            bar.update(task, description=stage, completed=share)

        yield progress
