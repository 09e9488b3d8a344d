"""Where the pairs of a batch come from: folders, videos, data sets and tables of pairs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from hamflow.datasets import PairDataset
from hamflow.errors import FileError, InputError, missing_file
from hamflow.io._decoding import require_av
from hamflow.io._frames import IMAGE_SUFFIXES, natural_key
from hamflow.io.video import open_frames
from hamflow.scale import storage
from hamflow.scale.manifest import TABLE_SUFFIXES, read_table
from hamflow.scale.pairs import ImagePair

Path = str | os.PathLike[str]
Source = Path | Sequence[Path] | PairDataset

_VIDEO_SUFFIXES = (
    *(".avi", ".flv", ".gif", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ogv", ".webm"),
    ".wmv",
)
# Beside the two frames of a pair, as the data set `folder` has them.
_PAIR, _BESIDE = {"frame1", "frame2"}, {"flow", "flow_noc", "occ", "invalid"}
_LONGEST = 200  # characters of a part of a name, to which a suffix is added


def open_source(source: Source, every: int = 1) -> tuple[list[ImagePair], dict[str, Any]]:
    """Return the pairs of a source, and a description of it for JSON.

    Parameters
    ----------
    source : path, sequence of paths, or PairDataset
        A folder, a video, a ``.csv`` or ``.parquet`` table, several of these, or a data set. Paths
        can also be URLs.
    every : int
        In videos and folders of frames, how many frames later the second one of a pair comes.

    Raises
    ------
    HamflowError
        If there are no pairs, two have the same name, or a name cannot be that of a file. A video
        that cannot be decoded is a pair that fails later.
    """
    if every < 1:
        raise InputError(f"every must be at least 1, not {every}.")
    if isinstance(source, PairDataset):
        place = storage.absolute
        pairs = [ImagePair(p.name, place(p.image0_path), place(p.image1_path)) for p in source]
        described: dict[str, Any] = {"dataset": type(source).__name__}
    else:
        given = [source] if isinstance(source, str | os.PathLike) else list(source)
        paths = [storage.absolute(path) for path in given]
        alone = len(paths) == 1
        pairs = [pair for path in paths for pair in _of_path(path, every, alone)]
        described = {"input": [_base(path) for path in paths], "every": every}
    if not pairs:
        raise InputError(f"{', '.join(map(str, described.get('input', ['It'])))}: has no pairs.")
    _check_names(pairs)
    return pairs, described


def _of_path(path: str, every: int, alone: bool) -> Iterable[ImagePair]:
    if path.lower().endswith(TABLE_SUFFIXES):
        return _of_table(path)
    if storage.is_folder(path):
        return _of_folder(path, "" if alone else f"{_base(path)}/", every)
    if not storage.exists(path):
        raise missing_file(path)
    return _of_video(path, PurePosixPath(_base(path)).stem, every)


def _of_table(path: str) -> Iterator[ImagePair]:
    """Yield the rows of a table; files are relative to its folder."""
    folder = storage.parent(path)
    rows = read_table(path)
    digits = max(4, len(str(len(rows))))
    for number, row in enumerate(rows, 1):
        name = row.get("name") or f"pair_{number:0{digits}}"
        for column in ("image0", "image1"):
            if not row[column]:
                raise FileError(f"{path}: row {number} has no {column}; complete the table.")
        first, second = (storage.join(folder, row[column]) for column in ("image0", "image1"))
        yield ImagePair(name, first, second)


def _of_folder(folder: str, prefix: str, every: int) -> Iterator[ImagePair]:
    """Yield the pairs of all videos and folders of frames in a folder and its subfolders."""
    images: dict[str, list[str]] = {}
    for name in sorted(storage.files_below(folder), key=natural_key):
        suffix = PurePosixPath(name).suffix.lower()
        if suffix in IMAGE_SUFFIXES:
            images.setdefault(os.path.dirname(name), []).append(name)
        elif suffix in _VIDEO_SUFFIXES:
            stem = str(PurePosixPath(name).with_suffix(""))
            yield from _of_video(storage.join(folder, name), prefix + stem, every)
    for below, names in images.items():
        stems = {PurePosixPath(name).stem: name for name in names}
        if _PAIR <= set(stems) <= _PAIR | _BESIDE:
            image0, image1 = (storage.join(folder, stems[stem]) for stem in sorted(_PAIR))
            yield ImagePair(f"{prefix}{below}".rstrip("/") or _base(folder), image0, image1)
            continue
        for first, second in zip(names, names[every:], strict=False):
            stem = str(PurePosixPath(first).with_suffix(""))
            yield ImagePair(
                prefix + stem, storage.join(folder, first), storage.join(folder, second)
            )


def _of_video(path: str, name: str, every: int) -> Iterator[ImagePair]:
    """Yield the pairs of a video; one that cannot be decoded has one pair, which will fail."""
    require_av(path)
    try:
        with storage.local_copy(path) as file:
            frames = open_frames(file)
            count = frames.count if frames.count is not None else _counted(file)
            names = [frames.name_of(number) for number in range(max(0, count - every))]
    except FileError:
        yield ImagePair(name, path, path, 0, every)
        return
    for number, frame in enumerate(names):
        yield ImagePair(f"{name}/{frame}", path, path, number, number + every)


def _counted(file: str) -> int:
    """Return how many frames a video has that does not announce it."""
    with open_frames(file).read() as reader:
        while True:
            try:
                reader.skip()
            except StopIteration:
                return reader.index
            except FileError:
                continue


def _check_names(pairs: Sequence[ImagePair]) -> None:
    seen: set[str] = set()
    for pair in pairs:
        parts = pair.name.split("/")
        if any(not p or p.startswith(".") or len(p) > _LONGEST or "\0" in p for p in parts):
            raise InputError(
                f"The name of a pair, {pair.name[:_LONGEST]!r}, cannot be that of a file; use "
                "relative paths without a suffix."
            )
        if pair.name in seen:
            raise InputError(f"Two pairs have the name {pair.name!r}; rename one of them.")
        seen.add(pair.name)


def _base(path: str) -> str:
    return os.path.basename(path.rstrip("/"))
