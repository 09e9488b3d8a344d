"""The local engine: worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from hamflow._processes import follow_parent, interrupts_held_back
from hamflow.errors import HamflowError
from hamflow.scale.engine import Died, Event, Finished, Ready
from hamflow.scale.pairs import ImagePair
from hamflow.scale.worker import Work, Worker

_LIBRARIES = ("HAMFLOW_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_READY = "ready"
_PATIENCE = 5.0  # seconds that a worker gets to end by itself


class LocalEngine:
    """Worker processes on this machine, each with its own threads.

    Parameters
    ----------
    work : Work
        What to do.
    workers : int
        How many processes.
    threads : int
        The threads of each.
    """

    def __init__(self, work: Work, workers: int, threads: int) -> None:
        self.slots = workers
        self._work, self._threads = work, threads
        # Not forked: the caller may have threads.
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, tuple[SpawnProcess, Connection]] = {}

    def start(self, slot: int) -> None:
        """Start a process."""
        here, there = self._context.Pipe()
        process = self._context.Process(
            target=_serve,
            args=(there, self._work, self._threads, 1 / self.slots),
            name=f"hamflow-worker-{slot}",
            daemon=True,
        )
        with interrupts_held_back(), _threads_of_libraries(self._threads):
            process.start()
        there.close()  # so that the end of the process is the end of the pipe
        self._workers[slot] = process, here

    def send(self, slot: int, pair: ImagePair) -> None:
        """Give a pair to a process; if it has just died, `wait` tells."""
        with suppress(OSError):
            self._workers[slot][1].send(pair)

    def wait(self, seconds: float | None) -> list[Event]:
        """Wait for results, and for the end of processes."""
        slots = {pipe: slot for slot, (_, pipe) in self._workers.items()}
        ready = wait(list(slots), seconds)
        return [self._event(slots[pipe]) for pipe in ready]  # type: ignore[index]

    def stop(self, slot: int) -> None:
        """Kill a process: one that hangs may not listen."""
        process, pipe = self._workers.pop(slot)
        process.kill()
        process.join()
        pipe.close()

    def _event(self, slot: int) -> Event:
        process, pipe = self._workers[slot]
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            process.join()
            pipe.close()
            return Died(slot, _end_of(process.exitcode))
        if isinstance(message, HamflowError):
            raise message
        return Ready(slot) if message == _READY else Finished(slot, message)

    def close(self) -> None:
        """End all processes."""
        for process, pipe in self._workers.values():
            pipe.close()
            process.terminate()
        for process, _ in self._workers.values():
            process.join(_PATIENCE)
            if process.exitcode is None:
                process.kill()
                process.join()
        self._workers = {}


def _serve(pipe: Connection, work: Work, threads: int, share: float) -> None:
    """Work in a process of its own until the pipe is closed."""
    follow_parent()
    try:
        worker = Worker(work, threads, share)
    except HamflowError as error:  # the same in every process
        pipe.send(error)
        return
    pipe.send(_READY)
    while True:
        try:
            pair = pipe.recv()
        except EOFError:
            return
        pipe.send(worker(pair))


@contextmanager
def _threads_of_libraries(threads: int) -> Iterator[None]:
    """Let a process that is started see how many threads it has, before it loads libraries."""
    before = {name: os.environ.get(name) for name in _LIBRARIES}
    os.environ.update(dict.fromkeys(_LIBRARIES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _end_of(code: int | None) -> str:
    if code is None or code >= 0:
        return f"it ended with the exit code {code}"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else str(-code)
    killed = name == "SIGKILL"
    return f"it was ended by {name}{', perhaps for lack of memory' if killed else ''}"
