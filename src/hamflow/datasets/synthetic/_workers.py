"""Tasks in several processes, which end together with their parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for
from typing import Any, Protocol

from hamflow.errors import HamflowError


class Job(Protocol):
    """What a worker does: `prepare` once, then a call for each number."""

    def prepare(self) -> None: ...
    def __call__(self, number: int) -> Any: ...


def run(job: Job, numbers: Sequence[int], workers: int) -> Generator[tuple[int, Any], None, None]:
    """Call a job, which can be pickled, with each number; yield numbers and results when done.

    With one worker, everything is done in this process. After an error or an interrupt, tasks that
    have begun are finished and the others are not started.
    """
    if workers <= 1:
        if numbers:
            job.prepare()
        for number in numbers:
            yield number, job(number)
        return
    # Not forked: the caller may have threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=_start, initargs=(job,))
    try:
        waiting: dict[Future[Any], int] = {}
        left = iter(numbers)
        while True:
            # Only a few in advance: after an error, the others would have to be canceled.
            for number in left:
                with _interrupts_held_back():
                    waiting[pool.submit(_work, number)] = number
                if len(waiting) >= 2 * workers:
                    break
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), future.result()
    except BrokenProcessPool as error:
        raise HamflowError(
            "A worker process was killed, perhaps for lack of memory; use fewer workers."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Start processes that never get Ctrl-C, because their parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_job: Job | None = None  # of this worker


def _start(job: Job) -> None:
    global _job  # noqa: PLW0603  (a worker's only state)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job.prepare()
    _job = job


def _end_with_parent() -> None:
    """End with the parent: if it is killed, it cannot end its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _work(number: int) -> Any:
    assert _job is not None
    return _job(number)
