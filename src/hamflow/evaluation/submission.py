"""Submissions to benchmark servers: files are computed, verified and packed.

**MPI-Sintel** (http://sintel.is.tue.mpg.de): 552 pairs in each of the two passes ::

    DIR/clean/SCENE/frame_0001.flo    with the name of the first frame of the pair
    DIR/final/SCENE/frame_0001.flo

Every pixel has a finite flow. The bundler, a program in the download of MPI-Sintel
(``bundler/linux-x64/bundler`` and the like), packs both for the upload:
``bundler DIR/clean DIR/final NAME.lzma``.

**KITTI** (https://www.cvlibs.net/datasets/kitti): 200 pairs in 2015, 195 in 2012 ::

    DIR/flow/000000_10.png    16-bit RGB: 64 u + 2^15, 64 v + 2^15, and 1 if valid, else 0
    DIR/flow.zip              to upload: flow/000000_10.png (2015), or 000000_10.png (2012)

Every pixel is valid, except where the flow is outside of ±512 pixels, which this format cannot
store: such a pixel is written as 0 0 0, invalid, and the server fills it from the valid pixels to
its left and right. Such a vector is wrong in any case, because the truth has the same range.

Both servers ask for the runtime per pair; it is measured without reading and writing files.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import hamflow
from hamflow._resume import LOG, Record, WorkLog, read_log
from hamflow._types import CountProgress
from hamflow.datasets import FlowPair
from hamflow.datasets._listing import check_choice
from hamflow.errors import FileError, InputError
from hamflow.evaluation._benchmarks import Benchmark, archive_fault, find_benchmark, pack
from hamflow.evaluation.fingerprint import fingerprints
from hamflow.evaluation.methods import Method
from hamflow.evaluation.runner import attempt
from hamflow.io._atomic import make_folder
from hamflow.io._identity import file_digest, file_record

ARCHIVE = "flow.zip"
_WORK = "submission"
_NAMED = 3  # files that an error message lists


class _Done(NamedTuple):
    """What the log says about a file that was written."""

    seconds: float  # for the estimate
    invalid: int  # pixels that are marked as invalid
    source: str  # fingerprint of the frames
    sha256: str  # of the file


def _done(record: Record) -> _Done:
    try:
        (file,) = record["files"].values()
        numbers = float(record["seconds"]), int(record["invalid"])
        return _Done(*numbers, str(record["source"]), str(file["sha256"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"{LOG}: the line of {record['key']} is damaged; remove that line."
        ) from error


@dataclass(frozen=True)
class Verification:
    """The result of reading all files of a submission again.

    Attributes
    ----------
    good : int
        The number of correct files.
    missing, surplus : tuple of str
        Files that are missing, and files that do not belong there; hidden files are ignored.
    damaged : tuple of str
        Files that are not correct, each with a colon and the reason.
    official : int
        How many files the server requires.
    """

    good: int
    missing: tuple[str, ...]
    surplus: tuple[str, ...]
    damaged: tuple[str, ...]
    official: int

    @property
    def faults(self) -> str:
        """All faults as a part of a sentence; "" if there are none."""
        kinds = {"missing": self.missing, "surplus": self.surplus, "damaged": self.damaged}
        return ", ".join(
            f"{len(names)} {kind} ({', '.join(names[:_NAMED])}{', ...' * (len(names) > _NAMED)})"
            for kind, names in kinds.items()
            if names
        )


@dataclass(frozen=True)
class Submission:
    """A complete and verified submission.

    Attributes
    ----------
    benchmark : str
        The name of the benchmark.
    folders : tuple of str
        The folders of the verified files: for Sintel, the passes.
    computed, known : int
        Files that were computed in this run, and in earlier runs.
    seconds : float
        Mean time of an estimate over all files.
    invalid, invalid_files : int
        Pixels that are marked as invalid, and files with such pixels.
    official : int
        How many files the server requires.
    archive : Path or None
        The file to upload; None for Sintel, whose bundler makes it.
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
        """The number of files."""
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
        The data set, laid out as it is published, with its test split.
    folder : str or os.PathLike
        Where to write the files: a new or empty folder, or an interrupted submission to continue.
    method : Method
        What computes the flow.
    passes : sequence of "clean" and "final", optional
        For Sintel; both by default, which its server requires.
    overwrite : bool
        Start again. Otherwise unchanged files of the same frames are kept, and other settings are
        refused.
    progress : callable
        Called with the name of the next file, the number of finished files, and of all files.

    Raises
    ------
    InputError
        If there is no such benchmark, or the method fails on a pair.
    FileError
        If a file cannot be read or written, the folder contains other files, another run uses it,
        or the verification finds a fault. The same call continues.
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
        # If this run fails, nobody must upload an archive of other files.
        _remove(place / ARCHIVE)
    computed = 0
    for number, (file, pair) in enumerate(pairs.items()):
        if log.find(file, _fingerprint(pair)) is None:
            progress(file, number, len(pairs))
            _compute(target, log, file, pair, method)
            computed += 1
    progress("verification", len(pairs), len(pairs))

    done = {file: _done(log.records[file]) for file in pairs}
    found = _verify(target, place, pairs, done)
    if found.faults:
        raise FileError(
            f"{place}: is not ready for upload: {found.faults}; remove files that do not belong "
            "there and start the same command again."
        )
    archive = None
    if target.archive is not None:
        archive = place / ARCHIVE
        pack(archive, {target.packed_name(file): place / file for file in done})
        fault = archive_fault(archive, _digests(target, done))
        if fault:
            raise FileError(f"{archive}: {fault}; check the disk.")
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
    """Read all files of a submission again, and compare them with the test split.

    Parameters
    ----------
    benchmark, root, folder, passes
        As for `submit`, which verifies at its end.

    Returns
    -------
    Verification
        Faults are wrong names or sizes, flow that is unknown or not finite, files that have changed
        or belong to other frames, and an archive that does not contain these files.

    Raises
    ------
    InputError
        If there is no such benchmark.
    FileError
        If the root has no test split, or the folder has no log.
    """
    target, place = find_benchmark(benchmark), Path(folder)
    pairs = target.files(root, _folders(target, passes))
    done = {record["key"]: _done(record) for record in read_log(place / LOG, _WORK)[1]}
    found = _verify(target, place, pairs, done)
    if target.archive is None:
        return found
    if not (place / ARCHIVE).exists():
        return replace(found, missing=(*found.missing, ARCHIVE))
    expected = {file: done[file] for file in pairs if file in done}
    fault = archive_fault(place / ARCHIVE, _digests(target, expected))
    return replace(found, damaged=(*found.damaged, f"{ARCHIVE}: {fault}")) if fault else found


def _folders(target: Benchmark, passes: Sequence[str] | None) -> tuple[str, ...]:
    if passes is None:
        return target.folders
    if not target.passes:
        raise InputError(f"{target.name} has no passes; leave them out.")
    if not passes:
        raise InputError(f"passes must be one or more of {', '.join(target.folders)}.")
    for pass_ in passes:
        check_choice("passes", pass_, target.folders)
    return tuple(dict.fromkeys(passes))


def _remove(archive: Path) -> None:
    try:
        archive.unlink(missing_ok=True)
    except OSError as error:
        why = "is a folder" if archive.is_dir() else f"cannot be removed ({error.strerror})"
        raise FileError(
            f"{archive}: {why}, but the archive for the upload needs this name; move it away."
        ) from error


def _compute(target: Benchmark, log: WorkLog, file: str, pair: FlowPair, method: Method) -> None:
    """Compute and write one file."""
    path, source = log.path.parent / file, _fingerprint(pair)
    # Reading is not part of the time; a copy of the pair is read, because a pair keeps its frames.
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
    log.add(file, source=source, files={file: file_record(path)}, seconds=seconds, invalid=invalid)


def _fingerprint(pair: FlowPair) -> str:
    return fingerprints([pair])(0)


def _verify(
    target: Benchmark, place: Path, pairs: dict[str, FlowPair], done: dict[str, _Done]
) -> Verification:
    expected = set(pairs)
    folders = {file.split("/", 1)[0] for file in expected}
    there = _files_below(place, folders)
    # A pass that is not verified now may be complete or not.
    known = {LOG, *target.folders, *(() if target.archive is None else (ARCHIVE,))}
    others = {name for name in set(os.listdir(place)) - known if not name.startswith(".")}
    surplus = (there - expected) | others
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


def _files_below(place: Path, folders: Iterable[str]) -> set[str]:
    """Return the paths of all files in these folders, relative to `place`, without hidden ones."""
    found = set()
    for folder in folders:
        for top, _, names in os.walk(place / folder):
            below = Path(top).relative_to(place).as_posix()
            found |= {f"{below}/{name}" for name in names if not name.startswith(".")}
    return found


def _fault(target: Benchmark, path: Path, pair: FlowPair, done: _Done | None) -> str:
    """Return what is wrong with a file, or ""."""
    if done is None:
        return "was not made by this submission"
    fault = target.fault(path, pair, done.invalid)
    if fault:
        return fault
    if done.source != _fingerprint(pair):
        return "was computed from other frames"
    return "" if done.sha256 == file_digest(path) else "was changed after it was written"


def _digests(target: Benchmark, done: dict[str, _Done]) -> dict[str, str]:
    """Return the SHA-256 of each file by its name in the archive."""
    return {target.packed_name(file): entry.sha256 for file, entry in done.items()}
