"""Files as the servers of the benchmarks want them, computed, verified and packed.

**MPI-Sintel** (http://sintel.is.tue.mpg.de): 552 pairs in each of the two passes ::

    DIR/clean/SCENE/frame_0001.flo    called as the first frame of the pair
    DIR/final/SCENE/frame_0001.flo

Every pixel has a finite flow. The bundler, a program in the download of MPI-Sintel
(``bundler/linux-x64/bundler`` and the like), packs both for the upload:
``bundler DIR/clean DIR/final NAME.lzma``.

**KITTI** (https://www.cvlibs.net/datasets/kitti): 200 pairs in 2015, 195 in 2012 ::

    DIR/flow/000000_10.png    16-bit RGB: 64 u + 2^15, 64 v + 2^15, and 1 if valid, else 0
    DIR/flow.zip              to upload: flow/000000_10.png (2015), or 000000_10.png (2012)

Every pixel is valid, except where the flow is outside ±512 pixels, which this encoding cannot hold:
such a pixel is written as 0 0 0, invalid. The server fills it from the valid pixels to its left and
right; a vector that long is wrong in any case (the truth has the same range), and one that is cut
to the range would be as wrong.

Both servers ask for the runtime of a pair, which is measured, without reading and writing files.
"""

from __future__ import annotations

import math
import os
import time
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import hamflow
from hamflow.datasets import FlowPair
from hamflow.datasets._listing import check_choice
from hamflow.errors import FileError, HamflowError, InputError
from hamflow.evaluation._benchmarks import Benchmark, find_benchmark
from hamflow.evaluation._submission_record import (
    RECORD,
    Done,
    SubmissionRecord,
    known_files,
)
from hamflow.evaluation.methods import Method
from hamflow.io._atomic import atomic_write, make_folder

Progress = Callable[[str, int, int], None]

ARCHIVE = "flow.zip"
_NAMED = 3  # files that an error message lists


@dataclass(frozen=True)
class Verification:
    """What was found when all files of a submission were read back.

    Attributes
    ----------
    good : int
        Files that are as they should be.
    missing : tuple of str
        Files that should be there.
    surplus : tuple of str
        Files that should not; hidden ones do not count.
    damaged : tuple of str
        Files that are not as they should be, each with a colon and what is wrong.
    """

    good: int
    missing: tuple[str, ...] = ()
    surplus: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def faults(self) -> str:
        """All that is wrong, as a part of a sentence; "" if nothing is."""
        kinds = {"missing": self.missing, "surplus": self.surplus, "damaged": self.damaged}
        return ", ".join(
            f"{len(names)} {kind} ({', '.join(names[:_NAMED])}{', ...' * (len(names) > _NAMED)})"
            for kind, names in kinds.items()
            if names
        )


@dataclass(frozen=True)
class Submission:
    """A submission that is complete and verified.

    Attributes
    ----------
    benchmark : str
    folders : tuple of str
        Those of the files that were verified: for Sintel, the passes.
    computed, known : int
        Files that were computed now, and that were there already.
    seconds : float
        Mean time of an estimate, over all files.
    invalid, invalid_files : int
        Pixels that are marked as invalid, and how many files have such.
    official : int
        How many files the server wants.
    archive : Path or None
        What to upload; None for Sintel, whose bundler makes it.
    """

    benchmark: str
    folders: tuple[str, ...]
    computed: int
    known: int
    seconds: float
    invalid: int
    invalid_files: int
    official: int
    archive: Path | None

    @property
    def files(self) -> int:
        """How many files there are."""
        return self.computed + self.known


def submit(
    benchmark: str,
    root: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    method: Method,
    *,
    passes: Sequence[str] | None = None,
    resume: bool = False,
    progress: Progress = lambda *_: None,
) -> Submission:
    """Compute the flow of all test pairs of a benchmark, and verify the files.

    Parameters
    ----------
    benchmark : str
        ``sintel``, ``kitti2012``, or ``kitti2015`` (also ``kitti``).
    root : str or os.PathLike
        The data set, laid out as it is published. Its test split is used.
    folder : str or os.PathLike
        Where to put the files, as the beginning of this module says; new, empty, or to be resumed.
    method : Method
        What computes the flow.
    passes : sequence of "clean" and "final", optional
        Of Sintel; both by default, as the server wants.
    resume : bool
        Keep the files that an earlier run with the same settings wrote and recorded, if they are
        good.
    progress : callable
        Called with the name of the next file, the number of files that are done, and of all.

    Returns
    -------
    Submission
        What came of it.

    Raises
    ------
    InputError
        If there is no such benchmark, or the method fails on a pair.
    FileError
        If a file cannot be read or written, the folder holds something else, or the verification
        finds a fault. The folder can be resumed.
    """
    target, place = find_benchmark(benchmark), Path(folder)
    folders = _folders(target, passes)
    pairs = target.files(root, folders)
    settings = {"hamflow": hamflow.__version__, "benchmark": target.name, **method.settings}
    record = SubmissionRecord(place, settings, resume=resume)
    # Whatever happens from here on, nobody shall upload an archive of other files.
    (place / ARCHIVE).unlink(missing_ok=True)
    computed = 0
    for number, (file, pair) in enumerate(pairs.items()):
        if file in record.done and not _fault(target, place / file, record.done[file]):
            continue
        progress(file, number, len(pairs))
        record.add(file, _compute(target, place / file, pair, method))
        computed += 1
    progress("verification", len(pairs), len(pairs))

    found = _verify(target, place, pairs, record.done)
    if found.faults:
        raise FileError(
            f"{place}: is not ready for upload, with {found.faults}; remove what does not belong "
            "there and resume the submission."
        )
    done = [record.done[file] for file in pairs]
    archive = None if target.archive is None else _pack(place, list(pairs), target.archive)
    return Submission(
        benchmark=target.name,
        folders=folders,
        computed=computed,
        known=len(pairs) - computed,
        seconds=math.fsum(entry.seconds for entry in done) / len(done),
        invalid=sum(entry.invalid for entry in done),
        invalid_files=sum(entry.invalid > 0 for entry in done),
        official=target.official * len(folders),
        archive=archive,
    )


def verify_submission(
    benchmark: str,
    root: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    passes: Sequence[str] | None = None,
) -> Verification:
    """Read back all files of a submission, and compare them with the test split.

    Parameters
    ----------
    benchmark, root, folder, passes
        As for `submit`, which verifies at its end.

    Returns
    -------
    Verification
        What is there, and what is wrong: names, sizes, flow that is unknown or not finite.

    Raises
    ------
    InputError
        If there is no such benchmark.
    FileError
        If the root has no test split, or the folder no record.
    """
    target, place = find_benchmark(benchmark), Path(folder)
    pairs = target.files(root, _folders(target, passes))
    return _verify(target, place, pairs, known_files(place))


def _folders(target: Benchmark, passes: Sequence[str] | None) -> tuple[str, ...]:
    if passes is None:
        return target.folders
    if target.name != "sintel":
        raise InputError(f"{target.name} has no passes; leave them away.")
    if not passes:
        raise InputError("passes must be clean, final, or both.")
    for pass_ in passes:
        check_choice("passes", pass_, target.folders)
    return tuple(dict.fromkeys(passes))


def _compute(target: Benchmark, path: Path, pair: FlowPair, method: Method) -> Done:
    """Write one file."""
    # Read here, so that the time is that of the method.
    image0, image1 = pair.image0, pair.image1
    started = time.perf_counter()
    flow = _estimate(method, image0, image1, pair.name)
    seconds = time.perf_counter() - started
    make_folder(path.parent)
    invalid = target.write(path, flow)
    height, width = image0.shape[:2]
    return Done(seconds, width, height, invalid)


def _estimate(
    method: Method, image0: NDArray[np.generic], image1: NDArray[np.generic], name: str
) -> NDArray[np.float32]:
    try:
        flow = method(image0, image1).flow
        trouble = "" if np.isfinite(flow).all() else "undefined flow"
    except (HamflowError, MemoryError, OSError):
        raise
    except Exception as error:  # OpenCV's methods give up with exceptions of their own
        trouble = " ".join(str(error).split()) or type(error).__name__
    if trouble:
        raise InputError(
            f"{method.label} failed on the pair {name} ({trouble}); a submission needs all pairs, "
            "so choose another method."
        )
    return flow


def _verify(
    target: Benchmark, place: Path, files: Iterable[str], done: dict[str, Done]
) -> Verification:
    expected = set(files)
    there = _files_below(place, {file.split("/", 1)[0] for file in expected})
    # Another pass may be complete or not; the names at the top are all known.
    strange = set(os.listdir(place)) - {RECORD, ARCHIVE, *target.folders}
    surplus = (there - expected) | {name for name in strange if not name.startswith(".")}
    damaged = []
    for file in sorted(expected & there):
        fault = _fault(target, place / file, done.get(file))
        if fault:
            damaged.append(f"{file}: {fault}")
    return Verification(
        len(expected & there) - len(damaged),
        tuple(sorted(expected - there)),
        tuple(sorted(surplus)),
        tuple(damaged),
    )


def _files_below(place: Path, folders: Iterable[str]) -> set[str]:
    """Return the names of all files in these folders, as seen from the place; no hidden ones."""
    found = set()
    for folder in folders:
        for top, _, names in os.walk(place / folder):
            below = Path(top).relative_to(place).as_posix()
            found |= {f"{below}/{name}" for name in names if not name.startswith(".")}
    return found


def _fault(target: Benchmark, path: Path, done: Done | None) -> str:
    """Read a file back; return what is wrong with it, or ""."""
    if done is None:
        return "was not made by this submission"
    try:
        flow = target.read(path)
    except FileError as error:
        return str(error).removeprefix(f"{path}: ").removesuffix(".")
    height, width = flow.shape[:2]
    if (width, height) != (done.width, done.height):
        return f"has {width} × {height} pixels, not {done.width} × {done.height}"
    # The readers have NaN for what is invalid, unknown, not finite or too large.
    unknown = int(np.isnan(flow).any(axis=2).sum())
    if unknown != done.invalid:
        return f"has no flow at {unknown} pixels, not {done.invalid}"
    return ""


def _pack(place: Path, files: Sequence[str], prefix: str) -> Path:
    """Write the archive for the upload, and read it back."""
    path = place / ARCHIVE
    names = {file: prefix + file.rpartition("/")[2] for file in files}
    with atomic_write(path) as target, zipfile.ZipFile(target, "w") as archive:
        for file, name in names.items():
            # The date of the files says nothing, and the same files make the same archive.
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o644 << 16
            # Stored: PNG is compressed already.
            archive.writestr(entry, (place / file).read_bytes())
    with zipfile.ZipFile(path) as archive:
        if archive.namelist() != list(names.values()) or archive.testzip() is not None:
            raise FileError(f"{path}: cannot be read back; check the disk.")
    return path
