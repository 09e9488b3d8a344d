"""What the tests of ``hamflow video`` share; needs no video codec."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hamflow import Estimator, FlowResult, Window
from hamflow.cli.main import main
from hamflow.pipeline.frame import Frame

QUICK = ("--preset", "fast", "--model", "pairs")


class Calls:
    """Stands in for `Estimator.between`, quickly, and remembers what it was asked.

    The flow is (k, 0) everywhere for the k-th call of all, from 1, if `grows`, or else (3, 4).
    """

    def __init__(self) -> None:
        self.names: weakref.WeakKeyDictionary[Frame, str] = weakref.WeakKeyDictionary()
        self.pairs: list[tuple[str, str]] = []
        self.fresh: list[str] = []
        self.grows = False
        self.cuts: set[str] = set()
        self.before_call: Callable[[str], object] = lambda name: None

    def between(
        self, frame0: Frame, frame1: Frame, *, previous: Any = None, **_: Any
    ) -> tuple[FlowResult, Any]:
        first, second = self.names[frame0], self.names[frame1]
        self.before_call(first)
        self.pairs.append((first, second))
        if previous is None:
            self.fresh.append(first)
        vector = (len(self.pairs), 0) if self.grows else (3, 4)
        flow = np.broadcast_to(np.float32(vector), (*frame0.shape, 2)).copy()
        result = FlowResult(
            flow=flow,
            backward=-flow,
            occlusion=flow[..., 0] > 100,
            confidence=np.full(frame0.shape, 0.4, np.float32),
            energy=1.0,
            bound=1.0,
            gap=0.0,
            window=Window(0, 1, 0, 1),
            scale=1,
            cut=first in self.cuts,
        )
        return result, object()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    spy = Calls()
    true_frame = Estimator.frame

    def frame(self: Estimator, image: Any, name: str = "image") -> Frame:
        made = true_frame(self, image, name)
        spy.names[made] = name
        return made

    monkeypatch.setattr(Estimator, "frame", frame)
    monkeypatch.setattr(Estimator, "between", lambda self, *a, **k: spy.between(*a, **k))
    return spy


def run(*args: object) -> int:
    return main(["video", *map(str, args), *QUICK])


def files(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def firsts(calls: Calls) -> list[str]:
    return [first for first, _ in calls.pairs]


def interrupt_at(calls: Calls, name: str) -> None:
    def interrupt(first: str) -> None:
        if first == name:
            calls.before_call = lambda _: None
            raise KeyboardInterrupt

    calls.before_call = interrupt
