"""What the servers of the benchmarks expect: which files, of which kind, packed how."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets import FlowPair, Kitti2012Dataset, Kitti2015Dataset, SintelDataset
from hamflow.errors import InputError
from hamflow.io.flo import read_flo, write_flo
from hamflow.io.kitti import outside_kitti_range, read_kitti_flow, write_kitti_flow

Flow = NDArray[np.float32]
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
