"""The files that each benchmark server expects: names, format, and archive."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hamflow._types import Flow
from hamflow.datasets import FlowPair, PairDataset, open_dataset
from hamflow.errors import FileError, InputError
from hamflow.io._atomic import atomic_write
from hamflow.io._identity import digest
from hamflow.io._reading import open_regular, reason
from hamflow.io.flo import read_flo, write_flo
from hamflow.io.kitti import outside_kitti_range, read_kitti_flow, write_kitti_flow


def _write_sintel(path: Path, flow: Flow) -> int:
    write_flo(path, flow)
    return 0


def _write_kitti(path: Path, flow: Flow) -> int:
    outside = outside_kitti_range(flow)
    write_kitti_flow(path, np.where(outside[:, :, None], np.float32(np.nan), flow))
    return int(np.count_nonzero(outside))


@dataclass(frozen=True)
class Benchmark:
    """The conventions of a benchmark; by default those of KITTI."""

    name: str  # of the benchmark and of its data set
    official: int  # files of a complete submission, in each folder
    archive: str | None  # folder of the files in the archive to upload; None if there is no archive
    folders: tuple[str, ...] = ("flow",)  # folders of the files: the passes of Sintel
    write: Callable[[Path, Flow], int] = _write_kitti  # returns the number of invalid pixels
    read: Callable[[Path], Flow] = read_kitti_flow
    suffix: str = ".png"
    passes: bool = False  # whether the folders are the passes of the data set

    def files(self, root: str | os.PathLike[str], folders: tuple[str, ...]) -> dict[str, FlowPair]:
        """Return the pairs of the test split by the files that their flow is written to.

        Raises
        ------
        FileError
            If the root has no test split, or a frame is missing.
        """
        found: dict[str, FlowPair] = {}
        for folder in folders:
            options = {"pass_": folder} if self.passes else {}
            pairs = open_dataset(self.name, root, split="test", **options)
            assert isinstance(pairs, PairDataset)
            found |= {f"{folder}/{pair.name}{self.suffix}": pair for pair in pairs}
        return found

    def fault(self, path: Path, pair: FlowPair, invalid: int) -> str:
        """Read the file of a pair again; return what is wrong with it, or "".

        Raises
        ------
        FileError
            If the first frame of the pair, whose size the file must have, cannot be read.
        """
        try:
            flow = self.read(path)
        except FileError as error:
            return str(error).removeprefix(f"{path}: ").removesuffix(".")
        # A copy of the pair, because a pair keeps the frames that it has read.
        rows, columns = replace(pair).image0.shape[:2]
        height, width = flow.shape[:2]
        if (width, height) != (columns, rows):
            return f"has {width} × {height} pixels, not {columns} × {rows}"
        # The readers return NaN for pixels that are invalid, unknown, infinite or too large.
        unknown = int(np.isnan(flow).any(axis=2).sum())
        return "" if unknown == invalid else f"has no flow at {unknown} pixels, not {invalid}"

    def packed_name(self, file: str) -> str:
        """Return the name of a file in the archive."""
        return f"{self.archive}{file.rpartition('/')[2]}"


BENCHMARKS = {
    "sintel": Benchmark(
        "sintel", 552, None, ("clean", "final"), _write_sintel, read_flo, ".flo", passes=True
    ),
    "kitti2012": Benchmark("kitti2012", 195, ""),
    "kitti2015": Benchmark("kitti2015", 200, "flow/"),
}
_ALIASES = {"kitti": "kitti2015"}


def find_benchmark(name: str) -> Benchmark:
    """Return the benchmark of this name; ``kitti`` means that of 2015."""
    found = BENCHMARKS.get(_ALIASES.get(name, name))
    if found is None:
        raise InputError(
            f"There is no benchmark {name!r} to submit to; choose one of {', '.join(BENCHMARKS)}."
        )
    return found


def pack(path: Path, files: Mapping[str, Path]) -> None:
    """Write files to an archive, given their names in it."""
    with atomic_write(path) as target, zipfile.ZipFile(target, "w") as archive:
        for name, file in files.items():
            # Without the date of the files, so that equal files make equal archives.
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o644 << 16
            with open_regular(file) as content:
                # Without compression, because PNG files are compressed.
                archive.writestr(entry, content.read())


def archive_fault(path: Path, digests: Mapping[str, str]) -> str:
    """Read an archive again; return what is wrong with it, or "".

    `digests` has the SHA-256 of each file by its name in the archive, in the same order.
    """
    try:
        with open_regular(path) as source, zipfile.ZipFile(source) as archive:
            if archive.namelist() != list(digests):
                return "contains other files"
            for name, expected in digests.items():
                with archive.open(name) as file:
                    if digest(file) != expected:
                        return f"contains another {name}"
    # Damaged archives raise exceptions of many unrelated kinds.
    except Exception as error:
        return f"cannot be read ({reason(error)})"
    return ""
