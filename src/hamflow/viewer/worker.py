"""The process that estimates flow for the page: its end is the way to cancel a job.

The native code does not return in the middle of a search, so a job is canceled by ending its
process, and another one takes its place. Results come back in files.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hamflow._processes import follow_parent, limit_memory
from hamflow._types import Flow, Pixels
from hamflow.crf.solver import CrfStep
from hamflow.errors import HamflowError, InputError
from hamflow.estimator import Estimator
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.matches import Matches
from hamflow.pipeline.recording import Recording, SearchIteration
from hamflow.result import FlowResult
from hamflow.viewer.kept_result import write_result
from hamflow.viewer.methods import PEERS, settings
from hamflow.viewer.source import read_frame
from hamflow.window import Window

_KEPT_ESTIMATORS = 4
_NICENESS = 5  # the page answers first, although all cores compute
_NO_MEMORY = "There is not enough memory; use a smaller image or window, or another preset."


@dataclass(frozen=True)
class Request:
    """What a worker has to do: the flow of some pairs, each from one frame to the next.

    Attributes
    ----------
    frames : tuple of Path
        The files of all frames, one more than there are pairs.
    first : int
        Number of the first of them in the source.
    preset : str
        Name of a preset, or a file that the user of the command line named.
    window : "auto" or int
        As for `hamflow.Estimator`.
    folders : tuple of Path
        Empty folders, one for the result of each pair.
    memory : int, optional
        Bytes that it may take; then nothing explains the results.
    """

    frames: tuple[Path, ...]
    first: int
    preset: str
    window: Literal["auto"] | int
    folders: tuple[Path, ...]
    memory: int | None = None


Message = tuple[str, Any]
"""What a worker says: the name of an event, and what belongs to it.

``"stage"``: (stage, share); ``"iteration"`` and ``"pass"``: a dict; ``"result"``: (index, cut);
``"failed"``: a sentence; ``"done"``: None.
"""


def work(connection: Connection, preset: str) -> None:
    """Do one request after the other until the connection ends; the main function of the process.

    Parameters
    ----------
    connection : Connection
        Where requests come from, and where messages go.
    preset : str
        The one that is likely to be asked for first.
    """
    follow_parent()
    limit_memory(1.0)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    worker = _Worker(connection)
    try:
        worker.prepare(preset)
        while True:
            request: Request = connection.recv()
            worker.answer(request)
    except (EOFError, BrokenPipeError):
        os._exit(0)


class _Worker:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._estimators: OrderedDict[tuple[object, ...], Estimator] = OrderedDict()

    def prepare(self, preset: str) -> None:
        """Load the model of a preset before anybody waits for it."""
        with suppress(HamflowError, OSError, MemoryError):  # whoever asks for it will be told
            self._estimator(preset, "auto", None)

    def answer(self, request: Request) -> None:
        """Do what is asked for, and say how it went."""
        try:
            self._estimate(request)
        except MemoryError:
            self._say("failed", _NO_MEMORY)
        except HamflowError as error:
            self._say("failed", str(error))
        except OSError as error:
            self._say("failed", f"The disk does not take the results ({error.strerror or error}).")
        else:
            self._say("done", None)

    def _estimate(self, request: Request) -> None:
        pairs = len(request.folders)
        done = 0
        full: tuple[int, int] = (0, 0)

        def on_stage(stage: str, share: float) -> None:
            if share < 1:
                self._say("stage", (stage, (done + share) / pairs))

        def on_iteration(found: SearchIteration) -> None:
            known = {
                "index": request.first + done,
                "iteration": found.step.iteration,
                "bound": found.step.bound,
                "scale": max(1, round(full[1] / found.shape[1])),
                "direction": "backward" if found.direction else "forward",
            }
            if isinstance(found.step, CrfStep):
                self._say("iteration", known | {"energy": found.step.energy})
            else:
                self._say("pass", known)

        self._say("stage", ("reading", 0.0))
        if request.preset in PEERS:
            self._compare(request)
            return
        recording = Recording(on_iteration)
        estimator = self._estimator(request.preset, request.window, request.memory)
        if len(request.folders) > 1:
            estimator = estimator.for_videos()
        explained = request.memory is None
        if explained:
            estimator = estimator.recorded_by(recording)
        second = self._frame(estimator, request, 0)
        matches: Matches | None = None
        for number, folder in enumerate(request.folders):
            done = number
            first, second = second, self._frame(estimator, request, number + 1)
            full = first.shape
            result, matches = estimator.between(first, second, previous=matches, progress=on_stage)
            self._say("stage", ("saving", (done + 0.99) / pairs))
            why = recording.explanation(result.scale) if explained else None
            write_result(folder, result, why)
            self._say("result", (request.first + number, result.cut))

    def _compare(self, request: Request) -> None:
        """Estimate by a method of OpenCV."""
        from hamflow.evaluation.methods import Method  # noqa: PLC0415  (an extra)

        method, pairs = Method(request.preset), len(request.folders)
        for number, folder in enumerate(request.folders):
            self._say("stage", ("matching", number / pairs))
            images = [read_frame(path) for path in request.frames[number : number + 2]]
            check_one_size(*images)
            start = time.perf_counter()
            flow = method(*images).flow
            timings = {"matching": time.perf_counter() - start}
            write_result(folder, _alone(flow, timings), None)
            self._say("result", (request.first + number, False))

    def _frame(self, estimator: Estimator, request: Request, number: int) -> Frame:
        name = f"frame {request.first + number}"
        return estimator.frame(read_frame(request.frames[number]), name)

    def _estimator(
        self, preset: str, window: Literal["auto"] | int, memory: int | None
    ) -> Estimator:
        key = (preset, window, memory)
        if key not in self._estimators:
            self._estimators[key] = Estimator(settings(preset), window=window, max_memory=memory)
        self._estimators.move_to_end(key)
        while len(self._estimators) > _KEPT_ESTIMATORS:
            self._estimators.popitem(last=False)
        return self._estimators[key]

    def _say(self, event: str, content: Any) -> None:
        message: Message = (event, content)
        self._connection.send(message)


def check_one_size(first: Pixels, second: Pixels) -> None:
    """Raise an InputError if two images differ in size; OpenCV would say it in its own words."""
    if first.shape != second.shape:
        sizes = [f"{image.shape[1]}×{image.shape[0]}" for image in (first, second)]
        raise InputError(f"The two images must have one size, but are {' and '.join(sizes)}.")


def _alone(flow: Flow, timings: dict[str, float]) -> FlowResult:
    """Return a flow of which nothing else is known as a result."""
    flow = np.nan_to_num(flow, nan=0.0, posinf=0.0, neginf=0.0)
    low = np.floor(flow.min(axis=(0, 1))).astype(int)
    count = np.ceil(flow.max(axis=(0, 1))).astype(int) - low + 1
    window = Window(int(low[0]), int(count[0]), int(low[1]), int(count[1]))
    return FlowResult(flow, None, None, None, None, None, None, window, 1, timings=timings)
