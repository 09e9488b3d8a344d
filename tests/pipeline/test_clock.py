"""Seconds and progress."""

from __future__ import annotations

from typing import Any

import pytest
from numpy.typing import NDArray

from hamflow.pipeline.clock import Clock

Array = NDArray[Any]


def test_the_clock_adds_up() -> None:
    calls: list[tuple[str, float]] = []
    clock = Clock(lambda name, share: calls.append((name, share)))
    for name, share in (("a", 0.1), ("b", 0.5), ("a", 0.3), ("c", 0.9)):
        with clock.stage(name, share):
            pass
    assert list(clock.seconds) == ["a", "b", "c"]
    assert min(clock.seconds.values()) >= 0
    assert calls == [("a", 0.1), ("b", 0.5), ("a", 0.5), ("c", 0.9)]
    clock.finish()
    assert calls[4:] == [("done", 1.0)]


def test_the_clock_counts_what_failed() -> None:
    clock = Clock()
    with pytest.raises(KeyError), clock.stage("a", 0.1):
        raise KeyError
    assert list(clock.seconds) == ["a"]
