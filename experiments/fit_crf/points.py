"""The points of a fit: sets of parameters, and their errors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

import numpy as np

from experiments.fit_crf.case import FitCase
from hamflow._resume import Record, WorkLog
from hamflow.crf.config import CrfConfig
from hamflow.crf.solver import solve
from hamflow.errors import FileError
from hamflow.matching import min_projection
from hamflow.window import Window

Parameter = Literal["tau1", "tau2", "delta", "c_outside", "alpha"]
Objective = Literal["relative", "capped", "epe"]

# In the order in which they are tried: the most important ones first.
PARAMETERS: tuple[Parameter, ...] = get_args(Parameter)

# In pixels; without it, a pair with nearly no error would outweigh all others.
_NEARLY_NOTHING = 0.01


@dataclass(frozen=True)
class FitPoint:
    """A set of parameters, and its errors.

    Attributes
    ----------
    config : CrfConfig
        The parameters, with the solver's settings.
    objective : float
        The value that is minimized.
    epe : tuple of float
        Mean endpoint error of each pair, in pixels of the full resolution.
    capped : tuple of float
        The same, but the error of a pixel counts as at most the cap.
    seconds : float
        The time to evaluate all pairs.
    """

    config: CrfConfig
    objective: float
    epe: tuple[float, ...]
    capped: tuple[float, ...]
    seconds: float


@dataclass(frozen=True)
class FitStep:
    """The progress of a fit.

    Attributes
    ----------
    points : int
        How many points are finished.
    pairs : int
        How many pairs of the next point are finished.
    best : FitPoint or None
        The best point so far.
    """

    points: int
    pairs: int
    best: FitPoint | None


class SpentError(Exception):
    """The budget is used up."""


class Evaluation:
    """The errors of each point: from the log, or computed and written to it.

    Attributes
    ----------
    points : dict
        The points that were evaluated, in order, by their parameters.
    best : FitPoint or None
        The best of them; the search sets it.
    wta : FitPoint
        The errors of the local model.
    """

    def __init__(
        self,
        cases: list[FitCase],
        *,
        window: Window,
        objective: Objective,
        cap: float,
        start: CrfConfig,
        budget: int,
        log: WorkLog | None,
        callback: Callable[[FitStep], object] | None,
    ) -> None:
        self._cases = cases
        self._window = window
        self._objective = objective
        self._cap = cap
        self._budget = budget
        self._log = log
        self._callback = callback
        self.points: dict[tuple[float, ...], FitPoint] = {}
        self.best: FitPoint | None = None

        self._known: dict[tuple[float, ...], Record] = {}
        if log is not None:
            log.begin(self._settings(start))
            points = log.records.values()
            self._known = {_logged_values(point, log, len(cases)): point for point in points}
        begin = time.perf_counter()
        errors = [
            case.errors(min_projection(case.bits0, case.bits1, window).wta(), cap) for case in cases
        ]
        self._wta_capped = np.array([capped for _, capped in errors])
        self.wta = self._point(start, errors, time.perf_counter() - begin)

    def __call__(self, config: CrfConfig) -> FitPoint:
        """Return the point of some parameters; a new point takes one unit of the budget.

        Raises
        ------
        SpentError
            If the point is new and the budget is used up.
        FileError
            If it cannot be written to the log.
        """
        values = _values(config)
        if values not in self.points:
            if len(self.points) >= self._budget:
                raise SpentError
            self.points[values] = self._from_log(config) or self._computed(config)
        return self.points[values]

    def _from_log(self, config: CrfConfig) -> FitPoint | None:
        record = self._known.get(_values(config))
        if record is None:
            return None
        errors = list(zip(record["epe"], record["capped"], strict=True))
        return self._point(config, errors, record["seconds"])

    def _computed(self, config: CrfConfig) -> FitPoint:
        begin = time.perf_counter()
        errors: list[tuple[float, float]] = []
        for case in self._cases:
            if self._callback is not None:
                self._callback(FitStep(len(self.points), len(errors), self.best))
            result = solve(
                bits0=case.bits0,
                bits1=case.bits1,
                image=case.image,
                window=self._window,
                config=config,
            )
            errors.append(case.errors(result.flow, self._cap))
        point = self._point(config, errors, time.perf_counter() - begin)
        if self._log is not None:
            values: Record = dict(zip(PARAMETERS, _values(config), strict=True))
            self._log.add(
                " ".join(f"{name}={value!r}" for name, value in values.items()),
                **values,
                objective=point.objective,
                epe=point.epe,
                capped=point.capped,
                seconds=point.seconds,
            )
        return point

    def _point(
        self, config: CrfConfig, errors: Sequence[tuple[float, float]], seconds: float
    ) -> FitPoint:
        epe, capped = (tuple(column) for column in zip(*errors, strict=True))
        if self._objective == "relative":
            ratios = (np.array(capped) + _NEARLY_NOTHING) / (self._wta_capped + _NEARLY_NOTHING)
            value = math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios))
        else:
            which = epe if self._objective == "epe" else capped
            value = math.fsum(which) / len(which)
        return FitPoint(config, value, epe, capped, seconds)

    def _settings(self, start: CrfConfig) -> Record:
        """Return everything on which the errors depend, except the parameters."""
        solver = {name: value for name, value in asdict(start).items() if name not in PARAMETERS}
        return {
            "pairs": [[case.name, case.digest()] for case in self._cases],
            "scale": self._cases[0].scale,
            "window": self._window.as_tuple(),
            "cap": self._cap,
            "solver": solver,
        }


def _values(config: CrfConfig) -> tuple[float, ...]:
    return tuple(getattr(config, name) for name in PARAMETERS)


def _logged_values(record: Record, log: WorkLog, pairs: int) -> tuple[float, ...]:
    """Check a line of the log, and return its parameters."""
    try:
        values = tuple(float(record[name]) for name in PARAMETERS)
        numbers = [*values, float(record["seconds"]), *record["epe"], *record["capped"]]
        lengths = {len(record["epe"]), len(record["capped"])}
        if lengths == {pairs} and all(math.isfinite(number) for number in numbers):
            return values
    except (KeyError, TypeError, ValueError):
        pass
    raise FileError(f"{log.path}: has a line that is not a point of this fit; remove the file.")
