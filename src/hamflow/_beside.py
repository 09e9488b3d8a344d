"""Two things at a time: what does not use all threads by itself leaves none of them idle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native

A = TypeVar("A")
B = TypeVar("B")


_allowed = True


@contextmanager
def one_after_the_other() -> Iterator[None]:
    """Do nothing at the same time within this context, so that times add up."""
    global _allowed  # noqa: PLW0603  (a switch for measurements, of the whole process)
    _allowed = False
    try:
        yield
    finally:
        _allowed = True


def is_concurrent(stage: Any) -> bool:
    """Whether two threads may call a stage at the same time: those that say so by `concurrent`."""
    return bool(getattr(stage, "concurrent", False))


def for_each(function: Callable[[A], B], items: Sequence[A], *, at_once: bool) -> list[B]:
    """Return what a function returns for each item: for two of them at once, if that is wanted."""
    if len(items) != 2:
        return [function(item) for item in items]
    first, second = items
    return list(side_by_side(lambda: function(first), lambda: function(second), at_once=at_once))


def side_by_side(
    first: Callable[[], A], second: Callable[[], B], *, at_once: bool = True
) -> tuple[A, B]:
    """Return what two functions return, which are called at the same time.

    The kernels of both share the threads, and the whole of them when one function is done. With one
    thread the functions are called one after the other. They must not depend on each other.

    Parameters
    ----------
    first, second : callable
        The first is called in this thread, where Ctrl-C is noticed.
    at_once : bool
        Otherwise the functions are called one after the other, as if there were one thread.

    Raises
    ------
    BaseException
        What the first function raises, or else what the second does.
    """
    if not (at_once and _allowed) or _native.get_num_threads() == 1:
        return first(), second()
    answer: list[B] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answer.append(second())
        except BaseException as error:
            errors.append(error)
        finally:
            _native.add_caller(-1)

    thread = Thread(target=copy_context().run, args=(work,), name="hamflow", daemon=True)
    _native.add_caller(1)
    try:
        thread.start()
    except BaseException:
        _native.add_caller(-1)
        raise
    try:
        found = first()
    finally:
        thread.join()
    if errors:
        raise errors[0]
    return found, answer[0]
