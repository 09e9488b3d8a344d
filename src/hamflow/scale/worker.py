"""One worker: reads pairs, estimates their flow, writes their files, and says how each went."""

from __future__ import annotations

import os
import platform
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hamflow
from hamflow._processes import limit_memory
from hamflow._runtime import set_num_threads
from hamflow._types import Pixels
from hamflow.errors import FileError, HamflowError, InputError, file_access
from hamflow.estimator import Estimator
from hamflow.io import read_image
from hamflow.io._atomic import make_folder
from hamflow.io._identity import file_record
from hamflow.io._reading import reason
from hamflow.io.video import FrameReader, open_frames
from hamflow.pipeline.frame import Frame
from hamflow.result import FlowResult
from hamflow.scale import storage
from hamflow.scale.outputs import OUTPUTS
from hamflow.scale.pairs import ImagePair

Record = dict[str, Any]
"""How a pair went, for JSON: its ``status``, and either its ``files`` or an ``error``."""

DONE, FAILED, STOPPED = "done", "failed", "stopped"
"""The status of a pair: written; not to be estimated; not written, as no other one would be."""


@dataclass(frozen=True)
class Work:
    """What all workers of a batch do alike.

    Parameters
    ----------
    estimator : Estimator
        With its model, so that other machines need not have the file.
    output : str
        The path or URL of the output folder.
    suffix : str
        Of the flow files.
    outputs : tuple of str
        The options of `OUTPUTS` for which files are written; the last one is ``--output``.
    version : str
        Of Hamflow, which must be the same on all machines.
    """

    estimator: Estimator
    output: str
    suffix: str
    outputs: tuple[str, ...]
    version: str = hamflow.__version__

    def file(self, option: str, name: str) -> str:
        """Return the path of a file of a pair below the output folder."""
        kind = OUTPUTS[option]
        folder = "flow" if option == "--output" else option.removeprefix("--")
        return f"{folder}/{name}{self.suffix if kind.flow else kind.suffix}"


_NO_MEMORY = "There is not enough memory for a pair of this size; use fewer workers."


class Worker:
    """Does the work of a batch, one pair at a time, in a process of its own.

    Parameters
    ----------
    work : Work
        What to do.
    threads : int
        The threads of this worker.
    share : float
        The share of the memory of this machine that it may use. A pair that needs more fails.
    """

    def __init__(self, work: Work, threads: int, share: float) -> None:
        if work.version != hamflow.__version__:
            raise InputError(
                f"This machine has hamflow {hamflow.__version__}, but the batch was started with "
                f"{work.version}; install the same version everywhere."
            )
        set_num_threads(threads)
        limit_memory(share)
        self._work = work
        self._where = f"{platform.node()}:{os.getpid()}"
        # The second frame of a pair is often the first of the next one.
        self._last: tuple[object, Frame] | None = None
        self._video = _OpenVideo()

    def __call__(self, pair: ImagePair) -> Record:  # noqa: PLR0911  (a return for each failure)
        """Estimate and write a pair; a failure is told in the record."""
        record: Record = {"worker": self._where}
        started = time.perf_counter()
        try:
            inputs = [_identity(pair.image0), _identity(pair.image1)]
            first, second = self._frames(pair, inputs)
            height, width = first.shape
            record |= {"inputs": inputs, "width": width, "height": height}
            read = time.perf_counter()
            result, _ = self._work.estimator.between(first, second)
            del first, second
        except MemoryError:
            return record | _failed(_NO_MEMORY)
        except HamflowError as error:
            return record | _failed(str(error))
        except Exception as error:  # whatever it is, the other pairs must go on
            return record | _failed(f"{type(error).__name__}: {reason(error)}")
        estimated = time.perf_counter()
        try:
            files = self._write(pair, result)
        except MemoryError:
            return record | _failed(_NO_MEMORY)
        except OSError as error:
            return record | _failed(str(error)) | {"status": STOPPED}
        except HamflowError as error:
            return record | _failed(str(error))
        ended = time.perf_counter()
        return record | {
            "status": DONE,
            "gap": result.gap,
            "seconds": round(ended - started, 4),
            "seconds_read": round(read - started, 4),
            "seconds_estimate": round(estimated - read, 4),
            "seconds_write": round(ended - estimated, 4),
            "files": files,
        }

    def _frames(self, pair: ImagePair, inputs: list[Any]) -> tuple[Frame, Frame]:
        keys = [(pair.first, str(inputs[0])), (pair.second, str(inputs[1]))]
        last, self._last = self._last, None
        if last is not None and last[0] != keys[0]:
            last = None
        first = self._frame(*pair.first) if last is None else last[1]
        second = self._frame(*pair.second)
        self._last = keys[1], second
        return first, second

    def _frame(self, path: str, number: int | None) -> Frame:
        if number is not None:
            return self._work.estimator.frame(self._video.frame(path, number), path)
        with storage.local_copy(path) as file:
            return self._work.estimator.frame(read_image(file), path)

    def _write(self, pair: ImagePair, result: FlowResult) -> dict[str, Any]:
        """Write the files of a pair; return their records by their paths in the output folder."""
        output, remote = self._work.output, storage.is_url(self._work.output)
        records = {}
        with ExitStack() as stack:
            place = stack.enter_context(TemporaryDirectory(prefix="hamflow-")) if remote else output
            for option in self._work.outputs:
                name = self._work.file(option, pair.name)
                path = Path(place, name)
                make_folder(path.parent)
                OUTPUTS[option].write(path, result)
                records[name] = file_record(path)
                if remote:
                    storage.put(path, storage.join(output, name))
        return records


class _OpenVideo:
    """A video that stays open, because its next frame is probably needed next."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._reader: FrameReader | None = None
        self._held = ExitStack()

    def frame(self, path: str, number: int) -> Pixels:
        """Return a frame; going back means to decode from the beginning again."""
        if path != self._path:
            self._held.close()
            self._path = self._reader = None
            self._file = self._held.enter_context(storage.local_copy(path))
            self._path = path
        if self._reader is None or self._reader.index > number:
            self._reader = open_frames(self._file).read()
            self._held.callback(self._reader.close)
        try:
            while self._reader.index < number:
                self._pass_over(self._reader)
            return next(self._reader).image
        except StopIteration:
            raise FileError(
                f"{path}: claims more frames than the {self._reader.index} that it has; the file "
                "may be truncated."
            ) from None

    @staticmethod
    def _pass_over(reader: FrameReader) -> None:
        try:
            reader.skip()
        except FileError:
            return  # that frame is part of other pairs


@lru_cache(maxsize=8)
def _digested(path: str, _size: int, _modified: int) -> Record:
    return storage.identify(path)


def _identity(path: str) -> Record:
    """Return what tells whether an input has changed; a video is not read again for each pair."""
    if storage.is_url(path):
        return storage.identify(path)
    with file_access(path):
        status = os.stat(path)
    return _digested(path, status.st_size, status.st_mtime_ns)


def _failed(error: str) -> Record:
    return {"status": FAILED, "error": " ".join(error.split())}
