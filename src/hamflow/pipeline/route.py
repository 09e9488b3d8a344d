"""The two ways through the stages behind the descriptors: with whole images, or tile by tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hamflow import _native
from hamflow._types import Field, Flow, Mask
from hamflow.pipeline import tiles
from hamflow.pipeline.box import cover
from hamflow.pipeline.canvas import MemoryCanvas, NewCanvas
from hamflow.pipeline.fitting import FittingMatcher
from hamflow.pipeline.frame import Frame, LargeFrame
from hamflow.pipeline.matches import Matches
from hamflow.pipeline.plan import Plan
from hamflow.refinement import assess_with, assessed_at, surroundings
from hamflow.stages import Matcher, Refinement

Frames = tuple[Frame, Frame]
Surroundings = NDArray[np.float32]

_STRIP = 2**22  # pixels that are filled at a time


class Route(Protocol):
    """How each stage is run."""

    @property
    def whole(self) -> bool:
        """Whether every stage gets the whole images."""

    @property
    def at_once(self) -> bool:
        """Whether there is room for two stages, or both directions of one, at a time."""

    def tidy(self) -> None:
        """Give back memory that is kept for reuse, if it is scarce; called between stages."""

    def matcher(self, matcher: Matcher) -> Matcher:
        """Return what matches."""

    def refined(
        self, refinement: Refinement, frames: Frames, matches: Matches, opposite: Flow | None
    ) -> Flow:
        """Return the flow at full size: forward, or backward if the opposite flow is known."""

    def surroundings(self, frames: Frames, matches: Matches) -> Surroundings:
        """Return what the matches say about the flow, before it is refined."""

    def assessed(
        self,
        refinement: Refinement,
        frames: Frames,
        matches: Matches,
        flows: Sequence[Flow],
        around: Surroundings,
    ) -> tuple[Mask, Field]:
        """Return what is hidden, and the confidence."""

    def filled(self, name: str, shape: tuple[int, ...], value: np.generic) -> NDArray[Any]:
        """Return a field of the result, by its name, that is the same everywhere."""


class WholeImages:
    """Every stage gets the whole images.

    Parameters
    ----------
    plan : Plan, optional
        How many labels are matched at once: a window that is found may be wider than expected.
    """

    whole = True

    def __init__(self, plan: Plan | None = None) -> None:
        self._plan = plan
        self.at_once = plan is None  # with a plan, memory is scarce
        if plan is not None:
            _native.release_kept()  # a larger pair without one may have left more than is planned

    def tidy(self) -> None:
        """Do nothing: what is kept is part of the plan."""

    def matcher(self, matcher: Matcher) -> Matcher:
        """Return the matcher itself, or one that has in files what does not fit."""
        return matcher if self._plan is None else FittingMatcher(matcher, self._plan.matched_labels)

    def refined(
        self, refinement: Refinement, frames: Frames, matches: Matches, opposite: Flow | None
    ) -> Flow:
        """Return the flow at full size."""
        found = matches.directions[0 if opposite is None else 1]
        return refinement(frames, found.completed, found.trusted, matches.scale, opposite)

    def surroundings(self, frames: Frames, matches: Matches) -> Surroundings:
        """Return what the matches say about the flow, before it is refined."""
        bits = frames[0].bits(matches.scale), frames[1].bits(matches.scale)
        return surroundings(frames, bits, matches.directions, matches.scale)

    def assessed(
        self,
        refinement: Refinement,
        frames: Frames,
        matches: Matches,
        flows: Sequence[Flow],
        around: Surroundings,
    ) -> tuple[Mask, Field]:
        """Return what is hidden, and the confidence."""
        finest = assessed_at(getattr(refinement, "finest", 1), matches.scale)
        return assess_with(
            frames, flows, around, matches.scale, finest=finest, completion=matches.completion
        )

    def filled(self, name: str, shape: tuple[int, ...], value: np.generic) -> NDArray[Any]:
        """Return a field that is the same everywhere."""
        return np.full(shape, value)


class Tiles:
    """Matches are those of the whole images; behind them, every stage works tile by tile.

    Parameters
    ----------
    plan : Plan
        How large tiles are.
    canvas : callable, optional
        Makes the fields of the result, by default in memory.
    """

    whole = at_once = False

    def __init__(self, plan: Plan, canvas: NewCanvas = MemoryCanvas) -> None:
        self._plan = plan
        self._tiling = plan.tiling
        self._canvas = canvas
        self.tidy()  # of what larger pairs without a plan have left

    def tidy(self) -> None:
        """Give back memory that is kept for reuse."""
        _native.release_kept()

    def matcher(self, matcher: Matcher) -> Matcher:
        """Return a matcher that has in files what does not fit."""
        return FittingMatcher(matcher, self._plan.matched_labels)

    def refined(
        self, refinement: Refinement, frames: Frames, matches: Matches, opposite: Flow | None
    ) -> Flow:
        """Return the flow at full size."""
        found = matches.directions[0 if opposite is None else 1]
        return tiles.refined(
            refinement,
            _large(frames),
            (found.completed, found.trusted),
            matches.scale,
            opposite,
            name="flow" if opposite is None else "backward",
            tiling=self._tiling,
            canvas=self._canvas,
        )

    def surroundings(self, frames: Frames, matches: Matches) -> Surroundings:
        """Return what the matches say about the flow, before it is refined."""
        large = _large(frames)
        return tiles.surroundings_of(large, matches.directions, matches.scale, self._tiling)

    def assessed(
        self,
        refinement: Refinement,
        frames: Frames,
        matches: Matches,
        flows: Sequence[Flow],
        around: Surroundings,
    ) -> tuple[Mask, Field]:
        """Return what is hidden, and the confidence."""
        large, scale = _large(frames), matches.scale
        finest = assessed_at(getattr(refinement, "finest", 1), scale)
        how = tiles.Assessment(finest, matches.completion, self._tiling, self._canvas)
        return tiles.assessed(large, flows, around, scale, how)

    def filled(self, name: str, shape: tuple[int, ...], value: np.generic) -> NDArray[Any]:
        """Return a field that is the same everywhere."""
        field = self._canvas(name, shape, type(value))
        for box in cover(shape[:2], _STRIP, 0, 1):
            field.write(box, np.full((box.height, box.width, *shape[2:]), value))
        return field.array


def _large(frames: Frames) -> tuple[LargeFrame, LargeFrame]:
    first, second = frames
    assert isinstance(first, LargeFrame)
    assert isinstance(second, LargeFrame)
    return first, second
