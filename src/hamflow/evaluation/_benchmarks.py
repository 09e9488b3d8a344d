"""What the servers of the benchmarks expect: which files, of which kind, packed how."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hamflow._types import Flow
from hamflow.datasets import FlowPair
from hamflow.datasets.kitti import Kitti2012Dataset, Kitti2015Dataset
from hamflow.datasets.sintel import SintelDataset
from hamflow.errors import FileError, InputError
from hamflow.io._atomic import atomic_write
from hamflow.io._reading import open_regular, reason
from hamflow.io.flo import read_flo, write_flo
from hamflow.io.kitti import outside_kitti_range, read_kitti_flow, write_kitti_flow

SINTEL_PASSES = ("clean", "final")


@dataclass(frozen=True)
class Benchmark:
    """The conventions of one benchmark.

    Attributes
    ----------
    name : str
    official : int
        How many files a complete submission has, for each of the folders.
    folders : tuple of str
        The folders of the files: the passes of Sintel.
    archive : str or None
        What the files have before their names in the archive to upload; None if there is none.
    list_pairs : callable
        Given the root and one of the folders, yields the pairs of the test split.
    write, read : callable
        Of one file. Writing returns how many pixels are marked as invalid.
    suffix : str
        Of the files.
    """

    name: str
    official: int
    folders: tuple[str, ...]
    archive: str | None
    list_pairs: Callable[[str | os.PathLike[str], str], Iterator[FlowPair]]
    write: Callable[[Path, Flow], int]
    read: Callable[[Path], Flow]
    suffix: str

    def files(self, root: str | os.PathLike[str], folders: tuple[str, ...]) -> dict[str, FlowPair]:
        """Return the pairs of the test split by the files that they become.

        Raises
        ------
        FileError
            If the root has no test split, or a frame is missing.
        """
        return {
            f"{folder}/{pair.name}{self.suffix}": pair
            for folder in folders
            for pair in self.list_pairs(root, folder)
        }

    def fault(self, path: Path, pair: FlowPair, invalid: int) -> str:
        """Read the file of a pair back; return what is wrong with it, or "".

        Raises
        ------
        FileError
            If the first frame of the pair, whose size the file must have, cannot be read.
        """
        try:
            flow = self.read(path)
        except FileError as error:
            return str(error).removeprefix(f"{path}: ").removesuffix(".")
        # Of a copy, because a pair keeps the frames that it has read.
        rows, columns = replace(pair).image0.shape[:2]
        height, width = flow.shape[:2]
        if (width, height) != (columns, rows):
            return f"has {width} × {height} pixels, not {columns} × {rows}"
        # The readers have NaN for what is invalid, unknown, not finite or too large.
        unknown = int(np.isnan(flow).any(axis=2).sum())
        return "" if unknown == invalid else f"has no flow at {unknown} pixels, not {invalid}"

    def packed_name(self, file: str) -> str:
        """Return how a file is called in the archive."""
        return f"{self.archive}{file.rpartition('/')[2]}"


def _sintel(root: str | os.PathLike[str], pass_: str) -> Iterator[FlowPair]:
    options: dict[str, Any] = {"split": "test", "pass_": pass_}
    yield from SintelDataset(root, **options)


def _write_sintel(path: Path, flow: Flow) -> int:
    write_flo(path, flow)
    return 0


def _write_kitti(path: Path, flow: Flow) -> int:
    outside = outside_kitti_range(flow)
    write_kitti_flow(path, np.where(outside[:, :, None], np.float32(np.nan), flow))
    return int(np.count_nonzero(outside))


BENCHMARKS = {
    "sintel": Benchmark(
        "sintel", 552, SINTEL_PASSES, None, _sintel, _write_sintel, read_flo, ".flo"
    ),
    "kitti2012": Benchmark(
        "kitti2012",
        195,
        ("flow",),
        "",
        lambda root, _: iter(Kitti2012Dataset(root, split="test")),
        _write_kitti,
        read_kitti_flow,
        ".png",
    ),
    "kitti2015": Benchmark(
        "kitti2015",
        200,
        ("flow",),
        "flow/",
        lambda root, _: iter(Kitti2015Dataset(root, split="test")),
        _write_kitti,
        read_kitti_flow,
        ".png",
    ),
}
_ALIASES = {"kitti": "kitti2015"}


def find_benchmark(name: str) -> Benchmark:
    """Return a benchmark by its name; ``kitti`` is that of 2015.

    Raises
    ------
    InputError
        If there is none.
    """
    found = BENCHMARKS.get(_ALIASES.get(name, name))
    if found is None:
        raise InputError(
            f"There is no benchmark {name!r} to submit to; known are {', '.join(BENCHMARKS)}."
        )
    return found


def pack(path: Path, files: Mapping[str, Path]) -> None:
    """Write files to an archive by the names that they have there.

    Raises
    ------
    FileError
        If a file cannot be read, or the archive not written.
    """
    with atomic_write(path) as target, zipfile.ZipFile(target, "w") as archive:
        for name, file in files.items():
            # The date of the files says nothing, and the same files make the same archive.
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o644 << 16
            with open_regular(file) as content:
                # Stored: PNG is compressed already.
                archive.writestr(entry, content.read())


def archive_fault(path: Path, digests: Mapping[str, str]) -> str:
    """Read an archive back; return what is wrong with it, or "".

    Parameters
    ----------
    path : Path
        The archive.
    digests : mapping of str to str
        SHA-256 of its files by their names, in their order.
    """
    try:
        with open_regular(path) as source, zipfile.ZipFile(source) as archive:
            if archive.namelist() != list(digests):
                return "holds other files than these"
            for name, expected in digests.items():
                with archive.open(name) as file:
                    content: Any = file  # which has all that is needed, whatever its type says
                    if hashlib.file_digest(content, "sha256").hexdigest() != expected:
                        return f"holds another {name}"
    # Damage is met with exceptions of many unrelated kinds.
    except Exception as error:
        return f"cannot be read ({reason(error)})"
    return ""
