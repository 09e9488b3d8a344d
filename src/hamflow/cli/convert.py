"""``hamflow convert``: flow files in another format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console

from hamflow.cli._console import count, progress_bar, say
from hamflow.cli._options import FLOW_FORMATS, Overwrite, check_distinct, claimed, flow_suffix
from hamflow.errors import FileError, HamflowError, InputError
from hamflow.io import READABLE_SUFFIXES, check_flow_path, read_flow, split_flow_name, write_flow
from hamflow.io._atomic import make_folder
from hamflow.io._lock import locked
from hamflow.io.kitti import outside_kitti_range

_KITTI = "kitti"
_SUFFIX = tyro.conf.arg(
    metavar="FORMAT",
    help=(
        f"The format of the new files: one of {FLOW_FORMATS}; or kitti for the same as .kitti.png, "
        "but in files that end in a plain .png, as KITTI's own do. A single file needs it only for "
        "kitti."
    ),
)


def convert(
    source: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IN")],
    target: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")],
    *,
    to: Annotated[str | None, _SUFFIX] = None,
    only: Annotated[str | None, tyro.conf.arg(name="from", metavar="SUFFIX")] = None,
    overwrite: Overwrite = False,
    clip_invalid: bool = False,
) -> None:
    """Convert a flow file, or all flow files of a folder, to another format.

    The suffix of a file is its format; .kitti.png is KITTI's format with 16 bits, which rounds to
    1/64 pixel; a plain .png is read as that, too. Unknown pixels stay unknown. A folder is
    converted with all folders in it. Files that exist already are kept there, unless --overwrite is
    given: so the same command continues an interrupted run.

    For example:

        hamflow convert flow.flo flow.pfm
        hamflow convert flows/ converted/ --to .npy

    Parameters
    ----------
    source
        The flow file, or a folder of flow files.
    target
        The file to write, or the folder for the new files, which is created if necessary.
    only
        For a folder: convert only files of this suffix. By default files of all formats are
        converted, and a .png file that is an ordinary picture is reported as an error.
    clip_invalid
        For KITTI's format only: mark vectors outside of its range, -512 to 511.98 pixels, as
        unknown. Without it, they are an error.
    """
    if source.is_dir():
        if to is None:
            raise InputError(
                f"{source} is a folder; give the format of the new files with --to: one of "
                f"{FLOW_FORMATS}, {_KITTI}."
            )
        # KITTI's own files end like pictures.
        wanted = ".png" if to.lower() == _KITTI else flow_suffix("--to", to)
        _check_clip(clip_invalid, wanted)
        known = READABLE_SUFFIXES
        if only is not None:
            known = (flow_suffix("--from", only, READABLE_SUFFIXES),)
        _convert_folder(_plan(source, target, wanted, known), target, overwrite, clip_invalid)
        return
    if source.exists() and (only is not None or (to is not None and to.lower() != _KITTI)):
        raise InputError(
            f"{source} is a file; leave out --from and --to, which are for folders (only --to "
            f"{_KITTI} is for files, too)."
        )
    if target.is_dir():
        raise FileError(f"{target}: is a folder; give the path of a file to write.")
    check_flow_path(target, _KITTI if to else None)
    check_distinct({"IN": source}, {"OUT": target})
    _check_clip(clip_invalid, split_flow_name(target)[1])
    with claimed([target], overwrite):
        clipped = _convert_file(source, target, clip_invalid)
    say(f"Wrote {target}{_clipped(clipped)}.")


def _format(path: Path) -> str | None:
    """Return the format to write; a plain .png has passed the checks only as KITTI's."""
    return _KITTI if path.suffix.lower() == ".png" else None


def _check_clip(clip_invalid: bool, suffix: str) -> None:
    if clip_invalid and not suffix.endswith(".png"):
        raise InputError(f"--clip-invalid is for KITTI's format; leave it out for {suffix}.")


def _convert_file(source: Path, target: Path, clip_invalid: bool) -> int:
    """Return how many pixels were marked as unknown because of KITTI's range."""
    flow = read_flow(source)
    clipped = 0
    if clip_invalid:
        outside = outside_kitti_range(flow)
        clipped = int(np.count_nonzero(outside))
        flow[outside] = np.nan
    try:
        write_flow(target, flow, format=_format(target))
    except InputError as error:
        hint = ", or add --clip-invalid" if _format(target) == _KITTI else ""
        raise InputError(f"{source}: {str(error).removesuffix('.')}{hint}.") from error
    return clipped


def _plan(source: Path, target: Path, to: str, known: tuple[str, ...]) -> dict[Path, Path]:
    """Return the new file for each file to convert, sorted by name."""
    if target.exists() and not target.is_dir():
        raise FileError(f"{target}: is a file; give the path of a folder for the new files.")
    sources: dict[Path, Path] = {}
    for path in _files(source, target):
        stem, suffix = split_flow_name(path)
        if not suffix.endswith(known):  # .kitti.png also if .png is asked for
            continue
        new = target / path.relative_to(source).with_name(f"{stem}{to}")
        if new in sources:
            raise InputError(
                f"{sources[new]} and {path} would both become {new}; convert one format at a "
                "time with --from."
            )
        sources[new] = path
    if not sources:
        raise FileError(
            f"{source}: contains no flow files ({', '.join(known)}); name another folder."
        )
    make_folder(target)
    check_flow_path(target / f"flow{to}", _format(Path(f"flow{to}")))
    return {path: new for new, path in sources.items()}


def _files(source: Path, target: Path) -> Iterator[Path]:
    """Yield the files in `source`, without those in a `target` that is a folder in it."""
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
    written = skipped = clipped = 0
    broken: list[str] = []
    with locked(target), progress_bar(Console(stderr=True)) as show:
        for number, (old, new) in enumerate(plan.items()):
            show("converting", number, len(plan))
            # A file that would replace itself has the right format.
            if new.exists() and (not overwrite or os.path.realpath(old) == os.path.realpath(new)):
                skipped += 1
                continue
            try:
                make_folder(new.parent)
                clipped += _convert_file(old, new, clip_invalid)
                written += 1
            except HamflowError as error:
                broken.append(str(error))
    existing = f"; {count(skipped, 'file')} already existed" if skipped else ""
    say(f"Wrote {count(written, 'file')} to {target}{_clipped(clipped)}{existing}.")
    if broken:
        for sentence in broken:
            say(sentence, stderr=True)
        raise InputError(
            f"{len(broken)} of {len(plan)} files could not be converted; the reasons are above."
        )


def _clipped(pixels: int) -> str:
    if not pixels:
        return ""
    return f", with {count(pixels, 'pixel')} outside of KITTI's range marked as unknown"
