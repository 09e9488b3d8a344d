"""The parameters of the joint model, fitted to image pairs with known flow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from experiments.fit_crf.case import FitCase, Pair
from experiments.fit_crf.points import (
    PARAMETERS,
    Evaluation,
    FitPoint,
    FitStep,
    Objective,
    Parameter,
    SpentError,
)
from hamflow._resume import WorkLog
from hamflow.crf.config import CrfConfig, _finite, _whole
from hamflow.descriptors import pair_bits
from hamflow.errors import FileError, InputError
from hamflow.matching._arrays import Describe
from hamflow.window import Window, WindowLike

# The first step of each parameter (a factor, or for c_outside a summand), and where it goes first.
_FACTORS = {"tau1": 4.0, "tau2": 2.0, "alpha": 2.0}
_SUMMAND = 16.0
_SIGNS: dict[Parameter, int] = {"tau1": 1, "tau2": 1, "delta": 1, "c_outside": -1, "alpha": 1}
# A factor does not lead away from 0, so it counts as these.
_SMALLEST = {"tau1": 0.0625, "tau2": 1.0, "alpha": 0.5}
_DELTAS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
# Costs are from -64 to 64, so there is nothing to be found beyond.
_LARGEST_OUTSIDE = 64.0
# Lengths of steps, in parts of the first one. All places are multiples of the last, so that steps
# of any lengths lead to few different points.
_LENGTHS = (4, 2, 1)
# Less than this is not worth leaving the value at which a parameter is: it is noise.
_LEAST_GAIN = 1e-3


@dataclass(frozen=True)
class FitResult:
    """The fitted parameters, and every point that was looked at on the way.

    Attributes
    ----------
    best : FitPoint
        The fitted parameters. A point that is better by less than 0.1 % does not replace them.
    start : FitPoint
        Where the search started.
    points : tuple of FitPoint
        All points in the order in which they were looked at, from `start` on.
    names : tuple of str
        The pairs' names, in the order of the errors of each point.
    wta : FitPoint
        The errors of the local model (winner takes all); its config is that of `start`.
    objective : {"relative", "capped", "epe"}
        What was minimized.
    ended : {"converged", "budget", "interrupted"}
        Whether no step led any further, the budget was spent, or the user stopped the fit.
    """

    best: FitPoint
    start: FitPoint
    points: tuple[FitPoint, ...]
    names: tuple[str, ...]
    wta: FitPoint
    objective: Objective
    ended: Literal["converged", "budget", "interrupted"]

    def toml(self) -> str:
        """Return the five fitted parameters as a TOML document."""
        lines = [f"{name} = {getattr(self.best.config, name)!r}" for name in PARAMETERS]
        pairs = "one image pair" if len(self.names) == 1 else f"{len(self.names)} image pairs"
        return "\n".join(
            [
                f"# Fitted to {pairs} ({self.objective} error {self.best.objective:.4g}, before "
                f"{self.start.objective:.4g}).",
                "# Results on these pairs say nothing about others.",
                *lines,
                "",
            ]
        )


def fit(
    pairs: Iterable[Pair],
    start: CrfConfig | None = None,
    *,
    window: WindowLike = 128,
    scale: int = 2,
    parameters: Sequence[Parameter] = PARAMETERS,
    objective: Objective = "relative",
    cap: float = 100.0,
    budget: int = 60,
    describe: Describe = pair_bits,
    log: str | os.PathLike[str] | None = None,
    resume: bool = False,
    callback: Callable[[FitStep], object] | None = None,
) -> FitResult:
    """Fit the parameters of the joint model to pairs with known flow.

    What is fitted to a benchmark's pairs must not be reported on the same pairs.

    Parameters
    ----------
    pairs : iterable of FlowPair
        A `hamflow.datasets.folder.FolderDataset`, or anything with name, image0, image1 and flow.
    start : CrfConfig, optional
        Where to start, and the solver's settings; by default the paper's parameters and a short
        schedule, ``CrfConfig(outer=2, inner=2)``.
    window : Window or int or tuple
        Displacements to look at, in pixels of the reduced images.
    scale : int
        The images are reduced to the means of boxes of so many pixels to the side. Errors are those
        of full resolution, where each pixel has the flow of its box.
    parameters : sequence of {"tau1", "tau2", "delta", "c_outside", "alpha"}
        Which to fit; the others stay as they are in `start`.
    objective : {"relative", "capped", "epe"}
        What to minimize: see the notes.
    cap : float
        No pixel's error counts more than this, in pixels of full resolution (except in "epe").
    budget : int
        How many points to look at, those of a resumed fit included.
    describe : callable
        What gives every pixel of a reduced image its 64 bits: the hand-crafted descriptor, or the
        ``bits`` of a `hamflow.load_model`.
    log : path, optional
        A JSON-lines file to which each point is appended as soon as it is evaluated.
    resume : bool
        Take the points that `log` holds from there. The search itself is repeated, so the result
        is that of a fit that was never interrupted.
    callback : callable, optional
        Called with a `FitStep` before each pair is solved.

    Returns
    -------
    FitResult
        Also after an interrupt (Ctrl-C), with the points that were evaluated until then; before the
        first one is, the interrupt is raised as usual.

    Raises
    ------
    InputError
        If an argument or a pair cannot be worked with.
    FileError
        If a pair cannot be read, the log cannot be written, or it is another fit's.

    Notes
    -----
    "relative" is the geometric mean over the pairs of (capped error / capped error of winner takes
    all). Relative, because one hard pair would otherwise outweigh all easy ones; geometric,
    because then ten percent less error counts the same on every pair, and which of two points is
    better does not depend on what the errors are compared with. "capped" is the mean over the pairs
    of the capped error, "epe" that of the plain error.

    The cap keeps few pixels with errors beyond all measure, where something gets hidden or leaves
    the frame, from deciding for a whole pair. It has to be generous: what is beyond it costs
    nothing more, and with a cap of 20 pixels the search made c_outside so small that it sent whole
    regions out of the image, for a slightly better rest.

    The search goes along one parameter after another: τ1, τ2 and α by factors, δ along 2, 3, 4, 6,
    8, 12, 16, and c_outside by summands. It goes on in a direction as long as that gains at least
    0.1 %; once no direction does, the steps are halved (factors in the logarithm), twice in all. It
    has no random part.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from hamflow import crf
    >>> from hamflow.datasets import demo_scene
    >>> pair = SimpleNamespace(name="demo", **vars(demo_scene(64, 96)))
    >>> result = crf.fit([pair], window=16, scale=1, budget=5)
    >>> len(result.points), result.best.objective <= result.start.objective < 1
    (5, True)
    """
    start = CrfConfig(outer=2, inner=2) if start is None else start
    window, scale, cap, budget = _checked(window, scale, cap, budget)
    _check_choices(parameters, objective)
    if resume and log is None:
        raise InputError("resume needs a log to take the points from.")
    with ExitStack() as stack:
        record = None
        if log is not None:
            record = stack.enter_context(WorkLog(log, "fit", remedy="or choose another place"))
            if record.records and not resume:
                raise FileError(
                    f"{record.path}: holds the points of an earlier fit already; resume that fit, "
                    "choose another place, or remove it."
                )
        cases = [FitCase.of(pair, scale, describe) for pair in pairs]
        if not cases:
            raise InputError("pairs must hold at least one.")
        evaluation = Evaluation(
            cases,
            window=window,
            objective=objective,
            cap=cap,
            start=start,
            budget=budget,
            log=record,
            callback=callback,
        )
        search = _Search(evaluation, start, parameters)
        ended: Literal["converged", "budget", "interrupted"] = "converged"
        try:
            search.run()
        except SpentError:
            ended = "budget"
        except KeyboardInterrupt:
            if evaluation.best is None:
                raise
            ended = "interrupted"
    assert evaluation.best is not None
    points = tuple(evaluation.points.values())
    return FitResult(
        best=evaluation.best,
        start=points[0],
        points=points,
        names=tuple(case.name for case in cases),
        wta=evaluation.wta,
        objective=objective,
        ended=ended,
    )


def _checked(
    window: WindowLike, scale: int, cap: float, budget: int
) -> tuple[Window, int, float, int]:
    scale, budget, cap = _whole("scale", scale), _whole("budget", budget), _finite("cap", cap)
    for name, value in (("scale", scale), ("budget", budget)):
        if value < 1:
            raise InputError(f"{name} must be at least 1, but is {value}.")
    if cap <= 0:
        raise InputError(f"cap must be a positive number of pixels, but is {cap}.")
    return Window.of(window), scale, cap, budget


def _check_choices(parameters: Sequence[Parameter], objective: Objective) -> None:
    if objective not in get_args(Objective):
        choices = ", ".join(repr(choice) for choice in get_args(Objective))
        raise InputError(f"objective must be one of {choices}, not {objective!r}.")
    unknown = [name for name in parameters if name not in PARAMETERS]
    if unknown or not parameters:
        choices = ", ".join(repr(choice) for choice in PARAMETERS)
        which = f"not {unknown[0]!r}" if unknown else "but there is none"
        raise InputError(f"parameters must be some of {choices}, {which}.")


class _Search:
    """Along one parameter after another, with steps that shrink.

    A place is how many of the smallest steps each parameter is away from the start.
    """

    def __init__(
        self, evaluation: Evaluation, start: CrfConfig, parameters: Sequence[Parameter]
    ) -> None:
        self._evaluation = evaluation
        self._start = start
        self._parameters = [name for name in PARAMETERS if name in parameters]
        self._signs = _SIGNS.copy()
        self._deltas = sorted({*_DELTAS, start.delta})
        self._place = dict.fromkeys(PARAMETERS, 0)

    def run(self) -> None:
        """Search until no step leads any further."""
        self._evaluation.best = self._evaluation(self._start)
        for length in _LENGTHS:
            # A list, so that every parameter has its turn.
            while any([self._moved(name, length) for name in self._parameters]):
                pass

    def _moved(self, name: Parameter, length: int) -> bool:
        """Go along one parameter as long as that helps; return whether it did."""
        for sign in (self._signs[name], -self._signs[name]):
            # δ has no smaller steps than from one value to the next.
            step = sign if name == "delta" else sign * length
            steps = 0
            while self._improved({**self._place, name: self._place[name] + step}):
                steps += 1
            if steps:
                self._signs[name] = sign
                return True
        return False

    def _improved(self, place: dict[Parameter, int]) -> bool:
        """Go to a place if it is better; return whether it is."""
        config = self._config(place)
        if config is None:
            return False
        best, point = self._evaluation.best, self._evaluation(config)
        assert best is not None
        if point.objective >= (1 - _LEAST_GAIN) * best.objective:
            return False
        self._evaluation.best, self._place = point, place
        return True

    def _config(self, place: dict[Parameter, int]) -> CrfConfig | None:
        """Return the parameters at a place; None where the model has none."""
        moved: dict[str, Any] = {name: self._value(name, place[name]) for name in PARAMETERS}
        if None in moved.values() or moved["tau2"] < moved["tau1"]:
            return None
        return replace(self._start, **moved)

    def _value(self, name: Parameter, steps: int) -> float | None:
        start: float = getattr(self._start, name)
        if steps == 0:
            return start
        if name == "delta":
            index = self._deltas.index(start) + steps
            return self._deltas[index] if 0 <= index < len(self._deltas) else None
        share = steps / _LENGTHS[0]
        if name == "c_outside":
            value = start + share * _SUMMAND
            return value if abs(value) <= _LARGEST_OUTSIDE else None
        value = max(start, _SMALLEST[name]) * _FACTORS[name] ** share
        return float(f"{value:.3g}")  # nobody wants to type more
