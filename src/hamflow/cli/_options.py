"""Arguments that several commands take, and how they are checked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from hamflow.cli._help import default_hint
from hamflow.errors import FileError, InputError
from hamflow.io import FLOW_SUFFIXES, READABLE_SUFFIXES
from hamflow.io._lock import locked
from hamflow.io.video import VIDEO_SUFFIXES
from hamflow.window import Window

STDOUT = "-"
"""What stands for the standard input and output."""
FLOW_FORMATS = ", ".join(FLOW_SUFFIXES)
"""The suffixes of all flow formats to write, for help texts."""

FlowFile = Annotated[
    tyro.conf.Positional[Path],
    tyro.conf.arg(metavar="FLOW", help=f"The flow file ({', '.join(READABLE_SUFFIXES)})."),
]
OutputFile = Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")]
OutputFolder = Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FOLDER")]
FORMAT = f"Format of the flow files: one of {FLOW_FORMATS}."
"""The description of ``--format``."""
Overwrite = Annotated[bool, tyro.conf.arg(help="Replace existing files.")]


def option(metavar: str, description: str | None = None, **more: Any) -> Any:
    """Return how the help page shows an option: what stands for its value, and what it does.

    Without a description the page has the one of the docstring. The default is shown if it tells
    something; options in groups need this function for that.
    """
    return tyro.conf.arg(metavar=metavar, help=description, help_behavior_hint=default_hint, **more)


# What stands for a value on the help page; a bare type would be shown as INT, STR or PATH.
Number = Annotated[int, option("N")]
Pixels = Annotated[int, option("PIXELS")]
Share = Annotated[float, option("SHARE")]
Switch = Annotated[bool, option("")]
OptionalFile = Annotated[Path | None, option("FILE")]
OptionalFolder = Annotated[Path | None, option("FOLDER")]


def flow_suffix(option: str, text: str, known: tuple[str, ...] = FLOW_SUFFIXES) -> str:
    """Return the suffix of a flow format that the user may have typed without its dot."""
    suffix = f".{text.lower().removeprefix('.')}"
    if suffix not in known:
        raise InputError(f"{option} must be one of {', '.join(known)}, not {text!r}.")
    return suffix


# A name with such a suffix is probably not meant to be a folder.
_FILES = (*READABLE_SUFFIXES, ".csv", ".gif", ".m4v", ".mpg", ".ogv", ".txt", ".wmv", ".y4m")
_KINDS = {
    "folder": "a folder",
    "film": f"a video ending in one of {', '.join(VIDEO_SUFFIXES)}",
    "stdout": "- for the standard output",
}


def output_kind(option: str, path: str | Path, takes: tuple[str, ...]) -> str:
    """Return whether a path is a "folder", a "film" or "stdout", if the option takes that."""
    suffix = Path(path).suffix.lower()
    kind = "folder"
    if path == STDOUT:
        kind = "stdout"
    elif not Path(path).is_dir():
        kind = "film" if suffix in VIDEO_SUFFIXES else "file" if suffix in _FILES else "folder"
    if kind not in takes:
        possible = ", or ".join(_KINDS[one] for one in takes)
        raise InputError(f"{option} must be {possible}, not {path}.")
    return kind


def parse_window(text: str) -> Window:
    """Return the window that ``128`` or ``u0,du,v0,dv`` describes."""
    numbers = _numbers(text)
    if len(numbers) == 1:
        return Window.of(numbers[0])
    if len(numbers) == 4:
        return Window(*numbers)
    raise InputError(
        "--window must be one number D or four, u0,du,v0,dv, such as -100,140,-20,40; "
        f"not {text!r}."
    )


def parse_auto_window(text: str) -> Window | Literal["auto"]:
    """Return the window that ``auto``, ``128`` or ``u0,du,v0,dv`` describes."""
    return "auto" if text == "auto" else parse_window(text)


def parse_region(text: str) -> tuple[int, ...]:
    """Return the numbers that ``x,y,w,h`` consists of."""
    numbers = _numbers(text)
    if len(numbers) != 4:
        raise InputError(
            f"--region must be x,y,w,h in whole pixels, such as 0,0,64,48, not {text}."
        )
    return numbers


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        return ()


def check_new(paths: Iterable[Path | None], overwrite: bool) -> None:
    """Raise a FileError if a file exists and the user has not allowed to replace it."""
    for path in paths:
        if path is not None and path.exists() and not overwrite:
            raise FileError(f"{path}: already exists; add --overwrite to replace it.")


@contextmanager
def claimed(paths: Iterable[Path | None], overwrite: bool) -> Iterator[None]:
    """Keep other runs away from files while the block makes them.

    Otherwise two runs could leave files of both, and each could replace what the other has made
    since it looked. Raise a FileError if another run has claimed one of them, or if one exists and
    the user has not allowed to replace it.
    """
    files = [path for path in paths if path is not None]
    with ExitStack() as stack:
        for path in files:
            stack.enter_context(locked(path))
        check_new(files, overwrite)
        yield


def check_distinct(inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Raise an InputError if an output is the same file as an input or another output.

    Parameters
    ----------
    inputs, outputs : mapping from str to Path or None
        The files of a command by the names of its arguments.
    """
    seen = {os.path.realpath(path): name for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is not None:
            other = seen.setdefault(os.path.realpath(path), name)
            if other != name:
                raise InputError(f"{name} and {other} are the same file, {path}; name two files.")


def check_targets(
    targets: Mapping[str, Path | None],
    *,
    files: Iterable[str | os.PathLike[str] | None],
    root: Path | None = None,
) -> None:
    """Raise an InputError if a command would write to a file that it also needs otherwise.

    Parameters
    ----------
    targets : mapping from str to Path or None
        The files to write, by the names of their options.
    files : iterable of path or None
        Other files that the command reads or writes; they need not exist.
    root : Path, optional
        The folder of a data set, in which nothing may be written.
    """
    check_distinct({}, targets)
    kept = {os.path.realpath(file) for file in files if file is not None}
    for name, path in targets.items():
        if path is None:
            continue
        real = os.path.realpath(path)
        if real in kept:
            raise InputError(
                f"{name}: the command needs the file {path} itself; name another file."
            )
        if root is not None and Path(real).is_relative_to(os.path.realpath(root)):
            raise InputError(
                f"{name}: {path} is inside of the data set {root}; name a file elsewhere."
            )
