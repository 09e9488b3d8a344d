"""Fit the parameters of the joint model to image pairs with known flow."""

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

# The first step of each parameter (a factor, or a summand for c_outside), and its first sign.
_FACTORS = {"tau1": 4.0, "tau2": 2.0, "alpha": 2.0}
_SUMMAND = 16.0
_SIGNS: dict[Parameter, int] = {"tau1": 1, "tau2": 1, "delta": 1, "c_outside": -1, "alpha": 1}
# Multiplying 0 by a factor changes nothing, so smaller values count as these.
_SMALLEST = {"tau1": 0.0625, "tau2": 1.0, "alpha": 0.5}
_DELTAS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
# Costs are from -64 to 64, so larger values make no difference.
_LARGEST_OUTSIDE = 64.0
# Lengths of steps, in units of the smallest one. All places are multiples of it, so that different
# ways lead to the same few points.
_LENGTHS = (4, 2, 1)
# A smaller relative gain is noise and does not change a parameter.
_LEAST_GAIN = 1e-3


@dataclass(frozen=True)
class FitResult:
    """The fitted parameters, and every point of the search.

    Attributes
    ----------
    best : FitPoint
        The fitted parameters. A point that is better by less than 0.1 % does not replace them.
    start : FitPoint
        The first point of the search.
    points : tuple of FitPoint
        All points in the order in which they were evaluated, beginning with `start`.
    names : tuple of str
        The pairs' names, in the order of the errors of each point.
    wta : FitPoint
        The errors of the local model (winner takes all); its config is that of `start`.
    objective : {"relative", "capped", "epe"}
        What was minimized.
    ended : {"converged", "budget", "interrupted"}
        Whether no step improved the result, the budget was used up, or the user stopped the fit.
    """

    best: FitPoint
    start: FitPoint
    points: tuple[FitPoint, ...]
    names: tuple[str, ...]
    wta: FitPoint
    objective: Objective
    ended: Literal["converged", "budget", "interrupted"]

    def toml(self) -> str:
        """Return the fitted parameters as a preset file: the table ``[matcher]`` in TOML."""
        pairs = "one image pair" if len(self.names) == 1 else f"{len(self.names)} image pairs"
        lines = [
            f"# Fitted to {pairs} ({self.objective} error {self.best.objective:.4g}, before the "
            f"fit {self.start.objective:.4g}).",
            "# Errors on these pairs do not tell how good the parameters are on others.",
            "[matcher]",
            *(f"{name} = {getattr(self.best.config, name)!r}" for name in PARAMETERS),
        ]
        return "\n".join(lines) + "\n"


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

    Do not report errors on the pairs that were fitted to.

    Parameters
    ----------
    pairs : iterable of FlowPair
        A `hamflow.datasets.folder.FolderDataset`, or anything with name, image0, image1 and flow.
    start : CrfConfig, optional
        The first point, and the solver's settings; by default the paper's parameters and a short
        schedule, ``CrfConfig(outer=2, inner=2)``.
    window : Window or int or tuple
        Displacements to search, in pixels of the reduced images.
    scale : int
        The images are reduced by this factor, to the means of square boxes. Errors are measured at
        full resolution, where each pixel has the flow of its box.
    parameters : sequence of {"tau1", "tau2", "delta", "c_outside", "alpha"}
        Which to fit; the others stay as they are in `start`.
    objective : {"relative", "capped", "epe"}
        What to minimize; see the notes.
    cap : float
        The error of a pixel counts as at most this many pixels (except in "epe").
    budget : int
        How many points to evaluate, including those of a resumed fit.
    describe : callable
        Returns the 64 bits of every pixel of a reduced image: the hand-crafted descriptor, or the
        method ``bits`` of a model of `hamflow.load_model`.
    log : path, optional
        A JSON-lines file to which each point is appended as soon as it is evaluated.
    resume : bool
        Take points from `log` instead of evaluating them again. The result is that of a fit without
        interruption.
    callback : callable, optional
        Called with a `FitStep` before each pair is solved.

    Returns
    -------
    FitResult
        After an interrupt (Ctrl-C) it has the points until then; if there is none, the interrupt is
        raised.

    Raises
    ------
    InputError
        If an argument or a pair cannot be used.
    FileError
        If a pair cannot be read, the log cannot be written, or the log belongs to another fit.

    Notes
    -----
    "relative" is the geometric mean over the pairs of (capped error / capped error of winner takes
    all). It is relative because one hard pair would otherwise outweigh all easy ones. It is a
    geometric mean so that ten percent less error counts the same on every pair, and so that the
    better of two points does not depend on the baseline. "capped" is the mean over the pairs of the
    capped error, "epe" that of the error without a cap.

    Without the cap, a few pixels with huge errors, which are occluded or leave the frame, would
    decide for a whole pair. The cap must be large, because errors beyond it cost nothing more: with
    20 pixels the search made c_outside so small that whole regions were matched to targets outside
    of the image, for slightly smaller errors elsewhere.

    The search changes one parameter after another: τ1, τ2 and α by factors, δ along 2, 3, 4, 6, 8,
    12, 16, and c_outside by summands. It continues in a direction as long as the objective falls by
    at least 0.1 %. When no direction helps, the steps are halved (factors in the logarithm), twice
    in all. There is no randomness.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from experiments.fit_crf.fitting import fit
    >>> from hamflow.datasets import demo_scene
    >>> pair = SimpleNamespace(name="demo", **vars(demo_scene(64, 96)))
    >>> result = fit([pair], window=16, scale=1, budget=5)
    >>> len(result.points), result.best.objective <= result.start.objective < 1
    (5, True)
    """
    start = CrfConfig(outer=2, inner=2) if start is None else start
    window, scale, cap, budget = _checked(window, scale, cap, budget)
    _check_choices(parameters, objective)
    if resume and log is None:
        raise InputError("resume needs a log; give its file.")
    with ExitStack() as stack:
        record = None
        if log is not None:
            record = stack.enter_context(WorkLog(log, "fit", remedy="or choose another file"))
            if record.records and not resume:
                raise FileError(
                    f"{record.path}: contains the points of an earlier fit; resume that fit, "
                    "choose another file, or remove it."
                )
        cases = [FitCase.of(pair, scale, describe) for pair in pairs]
        if not cases:
            raise InputError("pairs must contain at least one pair.")
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
        which = f"not {unknown[0]!r}" if unknown else "but are empty"
        raise InputError(f"parameters must be some of {choices}, {which}.")


class _Search:
    """Search along one parameter after another, with steps that become smaller.

    A place is the distance of each parameter from the start, in smallest steps.
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
        """Search until no step improves the result."""
        self._evaluation.best = self._evaluation(self._start)
        for length in _LENGTHS:
            # A list, so that every parameter is tried, also after one has moved.
            while any([self._moved(name, length) for name in self._parameters]):
                pass

    def _moved(self, name: Parameter, length: int) -> bool:
        """Move along one parameter as long as that helps; return whether it did."""
        for sign in (self._signs[name], -self._signs[name]):
            # The smallest step of δ is from one of its values to the next.
            step = sign if name == "delta" else sign * length
            steps = 0
            while self._improved({**self._place, name: self._place[name] + step}):
                steps += 1
            if steps:
                self._signs[name] = sign
                return True
        return False

    def _improved(self, place: dict[Parameter, int]) -> bool:
        """Move to a place if it is better; return whether it is."""
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
        """Return the parameters at a place; None if the model does not permit them."""
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
        return float(f"{value:.3g}")  # more digits make no difference
