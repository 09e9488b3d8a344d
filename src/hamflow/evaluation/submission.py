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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import hamflow
from hamflow._resume import LOG, Record, WorkLog, read_log
from hamflow._types import CountProgress
from hamflow.datasets import FlowPair
from hamflow.datasets._listing import check_choice
from hamflow.errors import FileError, InputError
from hamflow.evaluation._benchmarks import (
    Benchmark,
    archive_fault,
    find_benchmark,
    pack,
)
from hamflow.evaluation.fingerprint import fingerprints
from hamflow.evaluation.methods import Method
from hamflow.evaluation.runner import attempt
from hamflow.io._atomic import make_folder
from hamflow.io._identity import file_digest, file_record

ARCHIVE = "flow.zip"
_WORK = "submission"
_NAMED = 3  # files that an error message lists


@dataclass(frozen=True)
class Done:
    """What the log tells about a file: time of the estimate, invalid pixels, its frames, itself."""

    seconds: float
    invalid: int
    data: str
    sha256: str

    @classmethod
    def of(cls, record: Record) -> Done:
        """Return what a record of the log tells."""
        try:
            (file,) = record["files"].values()
            numbers = float(record["seconds"]), int(record["invalid"])
            return cls(*numbers, str(record["source"]), str(file["sha256"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FileError(
                f"{LOG}: the line of {record['key']} is damaged; remove that line."
            ) from error


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
    official : int
        How many files the server wants.
    """

    good: int
    missing: tuple[str, ...]
    surplus: tuple[str, ...]
    damaged: tuple[str, ...]
    official: int

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
    overwrite: bool = False,
    progress: CountProgress = lambda *_: None,
) -> Submission:
    """Compute the flow of all test pairs of a benchmark, and verify the files.

    Parameters
    ----------
    benchmark : str
        ``sintel``, ``kitti2012``, or ``kitti2015`` (also ``kitti``).
    root : str or os.PathLike
        The data set, laid out as it is published. Its test split is used.
    folder : str or os.PathLike
        Where to put the files, as the beginning of this module says: new, empty, or with an
        interrupted submission, which is continued.
    method : Method
        What computes the flow.
    passes : sequence of "clean" and "final", optional
        Of Sintel; both by default, as the server wants.
    overwrite : bool
        Begin anew. Otherwise files are kept if they were computed from the same frames and are
        unchanged, and other settings are refused.
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
        If a file cannot be read or written, the folder holds something else, another run is at
        work there, or the verification finds a fault. The same call continues.
    """
    target = find_benchmark(benchmark)
    pairs = target.files(root, _folders(target, passes))
    settings = {"hamflow": hamflow.__version__, "benchmark": target.name, **method.settings}
    with WorkLog.in_folder(folder, _WORK, overwrite=overwrite) as log:
        log.begin(settings)
        return _submit(target, log, pairs, method, progress)


def _submit(
    target: Benchmark,
    log: WorkLog,
    pairs: dict[str, FlowPair],
    method: Method,
    progress: CountProgress,
) -> Submission:
    place = log.path.parent
    if target.archive is not None:
        # Whatever happens from here on, nobody shall upload an archive of other files.
        _remove(place / ARCHIVE)
    computed = 0
    for number, (file, pair) in enumerate(pairs.items()):
        if log.find(file, _mark(pair)) is None:
            progress(file, number, len(pairs))
            _compute(target, log, file, pair, method)
            computed += 1
    progress("verification", len(pairs), len(pairs))

    done = {file: Done.of(log.records[file]) for file in pairs}
    found = _verify(target, place, pairs, done)
    if found.faults:
        raise FileError(
            f"{place}: is not ready for upload, with {found.faults}; remove what does not belong "
            "there and start the same command again."
        )
    archive = None if target.archive is None else _pack(target, place, done)
    return Submission(
        benchmark=target.name,
        folders=tuple(dict.fromkeys(file.split("/", 1)[0] for file in pairs)),
        computed=computed,
        known=len(pairs) - computed,
        seconds=math.fsum(entry.seconds for entry in done.values()) / len(done),
        invalid=sum(entry.invalid for entry in done.values()),
        invalid_files=sum(entry.invalid > 0 for entry in done.values()),
        official=found.official,
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
        What is there, and what is wrong: names, sizes, flow that is unknown or not finite, files
        that were changed or are of other frames, and an archive that does not hold these files.

    Raises
    ------
    InputError
        If there is no such benchmark.
    FileError
        If the root has no test split, or the folder no record.
    """
    target, place = find_benchmark(benchmark), Path(folder)
    pairs = target.files(root, _folders(target, passes))
    done = {record["key"]: Done.of(record) for record in read_log(place / LOG, _WORK)[1]}
    found = _verify(target, place, pairs, done)
    return _verify_archive(
        target, place, found, _packed(target, {file: done[file] for file in pairs if file in done})
    )


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


def _remove(archive: Path) -> None:
    try:
        archive.unlink(missing_ok=True)
    except OSError as error:
        why = "is a folder" if archive.is_dir() else f"cannot be removed ({error.strerror})"
        raise FileError(
            f"{archive}: {why}, but the archive for the upload goes there; move it away."
        ) from error


def _compute(target: Benchmark, log: WorkLog, file: str, pair: FlowPair, method: Method) -> None:
    """Write one file."""
    path, mark = log.path.parent / file, _mark(pair)
    # Read here, so that the time is that of the method; and from a copy, because a pair keeps the
    # frames that it has read, which would be all of them in the end.
    frames = replace(pair)
    image0, image1 = frames.image0, frames.image1
    started = time.perf_counter()
    estimate = attempt(pair.name, method, image0, image1)
    seconds = time.perf_counter() - started
    if isinstance(estimate, str):
        raise InputError(
            f"{method.label} failed on the pair {pair.name} ({estimate}); a submission needs all "
            "pairs, so choose another method."
        )
    make_folder(path.parent)
    invalid = target.write(path, estimate.flow)
    log.add(file, source=mark, files={file: file_record(path)}, seconds=seconds, invalid=invalid)


def _mark(pair: FlowPair) -> str:
    return fingerprints([pair])(0)


def _verify(
    target: Benchmark, place: Path, pairs: dict[str, FlowPair], done: dict[str, Done]
) -> Verification:
    expected = set(pairs)
    folders = {file.split("/", 1)[0] for file in expected}
    there = _files_below(place, folders)
    # Another pass may be complete or not; the names at the top are all known.
    known = {LOG, *target.folders, *(() if target.archive is None else (ARCHIVE,))}
    strange = set(os.listdir(place)) - known
    surplus = (there - expected) | {name for name in strange if not name.startswith(".")}
    damaged = []
    for file in sorted(expected & there):
        fault = _fault(target, place / file, pairs[file], done.get(file))
        if fault:
            damaged.append(f"{file}: {fault}")
    return Verification(
        good=len(expected & there) - len(damaged),
        missing=tuple(sorted(expected - there)),
        surplus=tuple(sorted(surplus)),
        damaged=tuple(damaged),
        official=target.official * len(folders),
    )


def _verify_archive(
    target: Benchmark, place: Path, found: Verification, digests: dict[str, str]
) -> Verification:
    """Add what is wrong with the archive, which is what will be uploaded."""
    if target.archive is None:
        return found
    if not (place / ARCHIVE).exists():
        return replace(found, missing=(*found.missing, ARCHIVE))
    fault = archive_fault(place / ARCHIVE, digests)
    return replace(found, damaged=(*found.damaged, f"{ARCHIVE}: {fault}")) if fault else found


def _files_below(place: Path, folders: Iterable[str]) -> set[str]:
    """Return the names of all files in these folders, as seen from the place; no hidden ones."""
    found = set()
    for folder in folders:
        for top, _, names in os.walk(place / folder):
            below = Path(top).relative_to(place).as_posix()
            found |= {f"{below}/{name}" for name in names if not name.startswith(".")}
    return found


def _fault(target: Benchmark, path: Path, pair: FlowPair, done: Done | None) -> str:
    """Return what is wrong with a file, or ""."""
    if done is None:
        return "was not made by this submission"
    fault = target.fault(path, pair, done.invalid)
    if fault:
        return fault
    if done.data != _mark(pair):
        return "was computed from other frames"
    return "" if done.sha256 == file_digest(path) else "was changed after it was written"


def _pack(target: Benchmark, place: Path, done: dict[str, Done]) -> Path:
    """Write the archive for the upload, and read it back."""
    path = place / ARCHIVE
    pack(path, {target.packed_name(file): place / file for file in done})
    fault = archive_fault(path, _packed(target, done))
    if fault:
        raise FileError(f"{path}: {fault}; check the disk.")
    return path


def _packed(target: Benchmark, done: dict[str, Done]) -> dict[str, str]:
    return {target.packed_name(file): entry.sha256 for file, entry in done.items()}
