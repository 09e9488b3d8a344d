"""Jobs, the queue in which they wait, and the process that does them."""

from __future__ import annotations

import multiprocessing
import shutil
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

from hamflow._processes import interrupts_held_back
from hamflow.viewer.refusals import Refusal
from hamflow.viewer.source import Source, new_id, with_names
from hamflow.viewer.worker import Request, work

State = Literal["queued", "running", "done", "failed", "canceled"]
ENDED = ("done", "failed", "canceled")
_LONGEST_HISTORY = 200  # the whole of it is sent with each change
_DIED = (
    "The process that computes ended unexpectedly, probably for lack of memory; use a smaller "
    "image or window, or another preset."
)


@dataclass(eq=False)
class Job:
    """The flow of a pair, or of a stretch of a sequence, that somebody wants.

    Attributes
    ----------
    session : str
        Whose it is.
    source : Source
        The frames.
    first, pairs : int
        Number of the first frame, and how many pairs follow.
    preset, window
        As for `hamflow.Estimator`.
    state : {"queued", "running", "done", "failed", "canceled"}
        How far it is.
    stage, share : str, float
        What is being done, and how much is.
    history : list of dict
        The iterations of the joint model.
    passes : list of dict
        Its passes within the iterations, of the present pair alone.
    error : str, or None
        Why it failed.
    results : dict of int to str
        Ids of the results that are there, by the number of the first frame.
    cuts : list of int
        Those of them whose frames have nothing to do with each other.
    """

    session: str
    source: Source
    first: int
    pairs: int
    preset: str
    window: Literal["auto"] | int
    id: str = field(default_factory=new_id)
    state: State = "queued"
    stage: str | None = None
    share: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    passes: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    results: dict[int, str] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in ENDED


Keep = Callable[[Job, int, Path], str]
"""Told of the folder of a new result; returns its id."""


class JobQueue:
    """Does jobs in the order in which they come, in a process that can be ended.

    Parameters
    ----------
    keep : callable
        What keeps the results.
    new_folder : callable
        Makes folders for them.
    presets : dict of str to str
        What `hamflow.Estimator` calls each preset.
    limit : int
        How many jobs may wait or run.
    memory : int, optional
        Bytes that a job may take.
    """

    def __init__(
        self,
        keep: Keep,
        new_folder: Callable[[], Path],
        presets: dict[str, str],
        *,
        limit: int,
        memory: int | None = None,
    ) -> None:
        self._keep, self._new_folder, self._presets = keep, new_folder, presets
        self._limit, self._memory = limit, memory
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._runner = _Runner(self)  # one: it uses all cores

    def start(self) -> None:
        """Start the process, so that it is ready when the first job comes."""
        with self._changed:
            if not self._runner.is_alive() and not self._closing:
                self._runner.start()

    def add(self, job: Job) -> None:
        """Put a job at the end of the queue, unless that is full."""
        self.start()
        with self._changed:
            if len(self._waiting) + self._busy >= self._limit:
                raise Refusal(
                    429,
                    f"{self._limit} jobs are waiting or running already; wait until one is done, "
                    "or cancel one.",
                )
            self._waiting.append(job)
            self._changed.notify_all()

    def position(self, job: Job) -> int:
        """Return how many jobs are done before this one; 0 if it is running or has ended."""
        with self._changed:
            if job not in self._waiting:
                return 0
            return self._waiting.index(job) + self._busy

    @property
    def _busy(self) -> bool:
        return self._runner.job is not None

    def cancel(self, job: Job) -> None:
        """End a job at once; what it has computed so far remains."""
        with self._changed:
            if job.ended:
                return
            self._end(job, "canceled")
            with suppress(ValueError):
                self._waiting.remove(job)
            if self._runner.job is job:
                self._runner.kill()

    def close(self) -> None:
        """End the process."""
        with self._changed:
            self._closing = True
            for job in (*self._waiting, self._runner.job):
                if job is not None:
                    self._end(job, "canceled")
            self._waiting.clear()
            self._runner.kill()
            self._changed.notify_all()
        if self._runner.is_alive():
            self._runner.join()

    def next_job(self) -> Job | None:
        """Wait for a job; None if there will be none."""
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            if self._closing:
                return None
            job = self._waiting.popleft()
            job.state, self._runner.job = "running", job
            return job

    def request(self, job: Job) -> Request:
        """Return what a worker needs to know of a job."""
        frames = job.source.frames[job.first : job.first + job.pairs + 1]
        folders = tuple(self._new_folder() for _ in range(job.pairs))
        preset = self._presets[job.preset]
        return Request(tuple(frames), job.first, preset, job.window, folders, self._memory)

    def take(self, job: Job, event: str, content: Any, request: Request) -> None:
        """Note what a worker says about a job."""
        if event == "result":
            index, cut = content
            # Not while the queue is locked: who keeps it has a lock of his own.
            name = self._keep(job, index, request.folders[index - job.first])
            with self._changed:
                job.results[index] = name
                job.cuts += [index] if cut else []
            return
        with self._changed:
            if job.ended:
                return
            if event == "stage":
                job.stage, job.share = content
            elif event == "iteration":
                job.history = [*job.history[1 - _LONGEST_HISTORY :], content]
            elif event == "pass":
                # Those of the present pair; there are many.
                before = [old for old in job.passes if old["index"] == content["index"]]
                job.passes = [*before, content]
            elif event == "failed":
                self._end(job, "failed", with_names(content, job.source.file_names()))
            else:
                job.stage, job.share = "done", 1.0
                self._end(job, "done")

    def leave(self, job: Job, request: Request) -> None:
        """Note that the runner is free again, and remove what nobody has kept."""
        with self._changed:
            if not job.ended:
                self._end(job, "failed", _DIED)
            self._runner.job = None
            kept = {request.folders[index - job.first] for index in job.results}
        for folder in request.folders:
            if folder not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    @property
    def first_preset(self) -> str:
        """The preset that is likely to be asked for first."""
        return next(iter(self._presets.values()))

    @staticmethod
    def _end(job: Job, state: State, error: str | None = None) -> None:
        job.state, job.error = state, error


class _Runner(threading.Thread):
    """Keeps the process at work."""

    def __init__(self, queue: JobQueue) -> None:
        super().__init__(daemon=True, name="hamflow-jobs")
        self._queue = queue
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._killed = False
        self.job: Job | None = None

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        self._killed = True
        if self._process is not None:
            self._process.kill()

    def run(self) -> None:
        while True:
            self._ensure_process()
            job = self._queue.next_job()
            if job is None:
                break
            request = self._queue.request(job)
            self._follow(job, request)
            self._queue.leave(job, request)
        self.kill()

    def _follow(self, job: Job, request: Request) -> None:
        """Hand a job to the process, and listen to it until the job ends."""
        self._ensure_process()
        process, connection = self._process, self._connection
        assert process is not None
        assert connection is not None
        try:
            if not job.ended:
                connection.send(request)
            while not job.ended:
                if connection not in wait([connection, process.sentinel]):
                    return
                event, content = connection.recv()
                self._queue.take(job, event, content, request)
        except (EOFError, OSError):
            return  # it has ended, or was ended

    def _ensure_process(self) -> None:
        """Start the process anew if it was killed."""
        if self._process is not None:
            if self._process.is_alive() and not self._killed:
                return
            self._process.kill()
            self._process.join()
        self._killed = False
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(
            target=work, args=(other, self._queue.first_preset), daemon=True
        )
        with interrupts_held_back():
            self._process.start()
        other.close()
