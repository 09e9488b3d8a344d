"""Where the time of a pair goes: by stage, and there by native function and in Python."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hamflow import _native
from hamflow._beside import one_after_the_other
from hamflow._types import Pixels
from hamflow.estimator import Estimator

PYTHON = "Python, numpy and other libraries"

Profile = dict[str, dict[str, float]]
"""Seconds by stage and function."""


def profile(
    estimator: Estimator, image0: Pixels, image1: Pixels, rounds: int = 3
) -> tuple[Profile, float]:
    """Return the seconds of the best of several runs by stage and function, and of all.

    What a stage takes outside of native functions is under `PYTHON`; what is in no stage is
    under the stage "between". Nothing is done side by side here, or the times would not add up.
    """
    best: tuple[Profile, float] = {}, float("inf")
    for _ in range(rounds):
        found: Profile = defaultdict(lambda: defaultdict(float))
        stage = ["between"]
        with (
            one_after_the_other(),
            _counted(lambda name, spent, found=found, s=stage: _add(found, s[-1], name, spent)),
        ):
            start = time.perf_counter()
            result = estimator.estimate(image0, image1, progress=lambda s, _: stage.append(s))  # noqa: B023
            whole = time.perf_counter() - start
        outside = whole - sum(result.timings.values())
        for name, seconds in (*result.timings.items(), ("between", outside)):
            functions = found[name]
            functions[PYTHON] = max(0.0, seconds - sum(functions.values()))
        if whole < best[1]:
            best = {name: dict(functions) for name, functions in found.items()}, whole
    return best


def _add(found: Profile, stage: str, name: str, spent: float) -> None:
    found[stage][name] += spent


@contextmanager
def _counted(add: Callable[[str, float], None]) -> Iterator[None]:
    """Time all calls of native functions."""
    functions = {
        name: value
        for name, value in vars(_native).items()
        if callable(value) and not isinstance(value, type) and not name.startswith("_")
    }

    def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                add(name, time.perf_counter() - start)

        return call

    for name, function in functions.items():
        setattr(_native, name, wrapped(name, function))
    try:
        yield
    finally:
        for name, function in functions.items():
            setattr(_native, name, function)
