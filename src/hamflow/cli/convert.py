"""``hamflow convert``: flow files from one format to another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hamflow.cli._console import say
from hamflow.cli._options import check_distinct
from hamflow.errors import FileError, HamflowError, InputError
from hamflow.io import FLOW_SUFFIXES, check_flow_path, read_flow, write_flow
from hamflow.io._atomic import make_folder
from hamflow.io.kitti import outside_kitti_range

_KITTI = ".png"


def convert(
    source: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IN")],
    target: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")],
    *,
    to: str | None = None,
    only: Annotated[str | None, tyro.conf.arg(name="from")] = None,
    overwrite: bool = False,
    clip_invalid: bool = False,
) -> None:
    """Convert a flow file, or all flow files of a folder, to another format.

    The end of the name tells the format: .flo (Middlebury, Sintel), .png (KITTI's 16 bits, which
    round to 1/64 pixel), .pfm (FlyingThings3D), .flo5 (Spring; needs the extra 'flo5'), .npy, and
    also .npz (with an array called flow). Unknown pixels stay unknown. A folder is converted with
    all folders below it; Ctrl-C ends the work, and the same command continues it.

    Parameters
    ----------
    source
        The flow file, or a folder of them.
    target
        The file to write, or the folder for the new files, which is made if it is missing.
    to
        For a folder: the format of the new files, such as .flo.
    only
        For a folder: convert only files of this format, such as .png. Otherwise all formats are
        converted, and a .png that is no flow but a picture counts as broken.
    overwrite
        Write over files that are there already. Otherwise a single one is an error, and in a
        folder they are skipped.
    clip_invalid
        To .png only: mark vectors beyond KITTI's range, -512 to 511.98 pixels, as unknown.
        Otherwise they are an error.
    """
    if source.is_dir():
        if to is None:
            raise InputError(
                f"{source} is a folder, so the format must be given: --to and one of "
                f"{', '.join(FLOW_SUFFIXES)}."
            )
        wanted = _suffix("--to", to)
        _check_clip(clip_invalid, wanted)
        known = FLOW_SUFFIXES if only is None else (_suffix("--from", only),)
        _convert_folder(_plan(source, target, wanted, known), target, overwrite, clip_invalid)
        return
    if source.exists() and (to is not None or only is not None):
        raise InputError(f"--to and --from are for folders, but {source} is a file.")
    if target.is_dir():
        raise FileError(f"{target}: is a folder; give the path of a file to write.")
    check_flow_path(target)
    check_distinct({"IN": source}, {"OUT": target})
    _check_clip(clip_invalid, target.suffix.lower())
    if target.exists() and not overwrite:
        raise FileError(f"{target}: is there already; add --overwrite to replace it.")
    clipped = _convert_file(source, target, clip_invalid)
    say(f"Wrote {target}{_clipped(clipped)}.")


def _suffix(option: str, text: str) -> str:
    suffix = f".{text.lower().removeprefix('.')}"
    if suffix not in FLOW_SUFFIXES:
        raise InputError(f"{option} must be one of {', '.join(FLOW_SUFFIXES)}, not {text!r}.")
    return suffix


def _check_clip(clip_invalid: bool, suffix: str) -> None:
    if clip_invalid and suffix != _KITTI:
        raise InputError(f"--clip-invalid is for {_KITTI} files; leave it away for {suffix}.")


def _convert_file(source: Path, target: Path, clip_invalid: bool) -> int:
    """Return how many pixels were marked as unknown because of KITTI's range."""
    flow = read_flow(source)
    clipped = 0
    if clip_invalid:
        outside = outside_kitti_range(flow)
        clipped = int(np.count_nonzero(outside))
        flow[outside] = np.nan
    try:
        write_flow(target, flow)
    except InputError as error:
        hint = ", or add --clip-invalid" if target.suffix.lower() == _KITTI else ""
        raise InputError(f"{source}: {str(error).removesuffix('.')}{hint}.") from error
    return clipped


def _plan(source: Path, target: Path, to: str, known: tuple[str, ...]) -> dict[Path, Path]:
    """Return which file becomes which, the sources in the order of their names."""
    if target.exists() and not target.is_dir():
        raise FileError(f"{target}: is a file; give the path of a folder for the new files.")
    plan: dict[Path, Path] = {}
    sources: dict[Path, Path] = {}
    for path in _files(source, target):
        if path.suffix.lower() not in known:
            continue
        new = (target / path.relative_to(source)).with_suffix(to)
        if new in sources:
            raise InputError(
                f"{sources[new]} and {path} would both become {new}; convert one format at a "
                "time with --from."
            )
        sources[new] = path
        plan[path] = new
    if not plan:
        raise FileError(f"{source}: holds no flow files, that is {', '.join(known)}.")
    make_folder(target)
    # For all of them: may files be written there, and is the package there that they need?
    check_flow_path(target / f"flow{to}")
    return plan


def _files(source: Path, target: Path) -> Iterator[Path]:
    """Yield the files below `source`, but not what an earlier run wrote to a `target` in there."""
    written = os.path.realpath(target)
    inside = written != os.path.realpath(source)
    for folder, folders, names in os.walk(source):
        folders.sort()
        if inside:
            folders[:] = [n for n in folders if os.path.realpath(Path(folder, n)) != written]
        yield from (Path(folder, name) for name in sorted(names))


def _convert_folder(
    plan: dict[Path, Path], target: Path, overwrite: bool, clip_invalid: bool
) -> None:
    console = Console(stderr=True, soft_wrap=True, markup=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    written = skipped = clipped = 0
    broken: list[str] = []
    # Only where someone may be watching.
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        for old, new in bar.track(plan.items(), len(plan), description="converting"):
            # A file that would replace itself is in the right format already.
            if new.exists() and (not overwrite or os.path.realpath(old) == os.path.realpath(new)):
                skipped += 1
                continue
            try:
                make_folder(new.parent)
                clipped += _convert_file(old, new, clip_invalid)
                written += 1
            except HamflowError as error:
                broken.append(str(error))
    there = f"; {skipped} {'was' if skipped == 1 else 'were'} there already" if skipped else ""
    files = "file" if written == 1 else "files"
    say(f"Wrote {written} {files} to {target}{_clipped(clipped)}{there}.")
    if broken:
        for sentence in broken:
            console.print(sentence, highlight=False)
        raise InputError(f"{len(broken)} of {len(plan)} files could not be converted, see above.")


def _clipped(pixels: int) -> str:
    count = f"{pixels} {'pixel' if pixels == 1 else 'pixels'}"
    return f", with {count} beyond KITTI's range marked as unknown" if pixels else ""
