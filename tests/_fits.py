"""What the tests of the fit share."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.fit_crf import points as fit_points
from experiments.fit_crf.case import FitCase
from experiments.fit_crf.fitting import FitResult
from experiments.fit_crf.points import PARAMETERS, FitPoint
from hamflow.crf import CrfConfig
from hamflow.datasets import demo_scene

QUICK: dict[str, Any] = {"window": 20, "scale": 1, "budget": 8}


def values(point: FitPoint) -> dict[str, float]:
    return {name: getattr(point.config, name) for name in PARAMETERS}


def without_seconds(point: FitPoint) -> FitPoint:
    return replace(point, seconds=0.0)


def same(first: FitResult, second: FitResult) -> bool:
    """Whether two results agree in all but the times."""
    a, b = ([without_seconds(p) for p in (*r.points, r.best, r.wta)] for r in (first, second))
    return a == b and first.ended == second.ended


def one_pair(**changes: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"name": "it", **vars(demo_scene(40, 48)), **changes})


def bowl(monkeypatch: pytest.MonkeyPatch, **optimum: float) -> list[CrfConfig]:
    """Replace the errors by a function with a known minimum; return the points as they come."""
    asked: list[CrfConfig] = []

    def solved(config: CrfConfig, **_: Any) -> SimpleNamespace:
        asked.append(config)
        return SimpleNamespace(flow=config)

    def errors(self: FitCase, flow: Any, cap: float) -> tuple[float, float]:
        if not isinstance(flow, CrfConfig):
            return 10.0, 10.0
        away = 0.0
        for name, best in optimum.items():
            value = getattr(flow, name)
            if name == "c_outside":
                away += abs(value - best) / 16
            else:
                away += abs(math.log2((value + 1e-9) / best))
        return 1 + away, 1 + away

    monkeypatch.setattr(fit_points, "solve", solved)
    monkeypatch.setattr(FitCase, "errors", errors)
    return asked
