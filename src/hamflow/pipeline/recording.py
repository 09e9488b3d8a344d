"""Keeping what explains a result, for those who ask for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hamflow._types import Bits, Flow, Labels
from hamflow.crf.joint_model import JointModel
from hamflow.crf.solver import CrfPass, CrfResult, CrfStep
from hamflow.errors import InputError
from hamflow.matching._arrays import words_of
from hamflow.matching.projection import CHANCE_LEVEL
from hamflow.pipeline.explain import BITS_PER_COST, Explanation
from hamflow.prior import Prior
from hamflow.stages import Match, Matcher, MatchTask, following
from hamflow.window import Window


@dataclass(frozen=True)
class SearchIteration:
    """How far the joint model is, while the search goes on.

    Attributes
    ----------
    step : CrfStep or CrfPass
        What is known after an iteration, or after a pass within it.
    shape : (int, int)
        Height and width of the image at the scale that is searched.
    direction : int
        0 from the first image to the second, 1 back.
    """

    step: CrfStep | CrfPass
    shape: tuple[int, int]
    direction: int


IterationProgress = Callable[[SearchIteration], object]


class Recording:
    """What the last search from the first image to the second knew.

    `hamflow.Estimator.recorded_by` fills it, pair by pair.

    Parameters
    ----------
    iterations : callable, optional
        Told how far the joint model is while it runs, by a `SearchIteration`.
    """

    def __init__(self, iterations: IterationProgress | None = None) -> None:
        self._iterations = iterations
        self._searches = 0
        self._kept: dict[str, Any] = {}

    def explanation(self, scale: int) -> Explanation:
        """Return what explains the pair that was matched last.

        Parameters
        ----------
        scale : int
            At which it was matched: that of its result.
        """
        if not self._kept:
            raise InputError("No pair has been matched yet that could be explained.")
        return Explanation(scale=scale, **self._kept)

    def next_direction(self, directions: int) -> int:
        """Return which direction the next search is of: forward always comes first."""
        self._searches += 1
        return (self._searches - 1) % directions

    def listener(
        self, shape: tuple[int, int], direction: int
    ) -> Callable[[CrfStep | CrfPass], object] | None:
        """Return what the matcher has to call while it works, if anybody listens."""
        told = self._iterations
        if told is None:
            return None
        return lambda step: told(SearchIteration(step, shape, direction))

    def keep(
        self, match: Match, matcher: Matcher, bits: tuple[Bits, Bits], prior: Prior | None
    ) -> None:
        """Keep what explains a match."""
        words = words_of(bits[0])
        kept: dict[str, Any] = {"bits0": bits[0], "bits1": bits[1], "window": match.window}
        if isinstance(match, CrfResult):
            cost = matcher.c_outside if isinstance(matcher, JointModel) else 0.0
            kept["outside"] = words * (CHANCE_LEVEL + cost * BITS_PER_COST)
            kept["slack_u"], kept["slack_v"] = match.slack_u, match.slack_v
            kept["slack_unit"] = BITS_PER_COST / match.scale
            kept["u"], kept["v"] = match.u, match.v
            kept["prior"] = prior
        else:
            kept["outside"] = words * getattr(matcher, "outside", CHANCE_LEVEL)
            kept["u"], kept["v"] = _labels_of(match.flow, match.window)
        self._kept = kept


@dataclass(frozen=True, eq=False)
class RecordedMatcher:
    """A matcher that does what another one does, and lets a recording keep what it knows.

    Parameters
    ----------
    matcher : Matcher
        What does the work.
    directions : int
        How many directions each step of the search matches.
    recording : Recording
        Where what explains the result is kept.
    """

    matcher: Matcher
    directions: int
    recording: Recording
    method: ClassVar[str] = "recorded"

    def __call__(self, task: MatchTask) -> Match:
        """Match two images as the other matcher does."""
        direction = self.recording.next_direction(self.directions)
        height, width = task.image.shape[:2]
        told = task.callback or self.recording.listener((height, width), direction)
        match = self.matcher(replace(task, callback=told))
        if direction == 0:
            self.recording.keep(match, self.matcher, task.bits, task.prior)
        return match

    def warm_started(self) -> RecordedMatcher:
        """Return the same around the matcher for a pair that follows another one."""
        return replace(self, matcher=following(self.matcher))

    def streamed(self) -> RecordedMatcher:
        """Return the same around the matcher whose volumes are in temporary files."""
        return replace(self, matcher=self.matcher.streamed())


def _labels_of(flow: Flow, window: Window) -> tuple[Labels, Labels]:
    labels = np.rint(flow).astype(np.int16) - np.array([window.u0, window.v0], np.int16)
    return labels[..., 0], labels[..., 1]
