"""Tasks in several processes, which end together with their parent."""

from __future__ import annotations

import multiprocessing
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

from hamflow._processes import follow_parent, interrupts_held_back
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
                with interrupts_held_back():
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


_job: Job | None = None  # of this worker


def _start(job: Job) -> None:
    global _job  # noqa: PLW0603  (a worker's only state)
    follow_parent()
    job.prepare()
    _job = job


def _work(number: int) -> Any:
    assert _job is not None
    return _job(number)
