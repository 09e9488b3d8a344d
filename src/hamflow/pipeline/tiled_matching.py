"""Matcher and completion, tile by tile, for a matching scale at which the whole does not fit.

Usually the matching scale is small enough for the whole images; a scale that is given may not be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hamflow._types import Field, Flow
from hamflow.pipeline.box import Box, cover
from hamflow.pipeline.tiles import Reach, Tiling, reach_of
from hamflow.stages import Completion, Match, Matcher, MatchEvidence, MatchTask
from hamflow.window import Window

# Around a tile, in pixels of the matching scale: neighbors farther away hardly matter for its
# labels; the completion goes on from matches that may be farther.
_CONTEXT, _FAR = 64, 96
# Tiles become no smaller than this, in pixels of each side: a window that was found may be wider
# than the plan assumed.
_SMALLEST = 64
SMALLEST_MATCHED = _SMALLEST + 2 * _CONTEXT
"""Pixels of each side of the smallest part that is matched at a time, without its window."""


@dataclass(frozen=True, eq=False)
class TiledMatch:
    """What was found tile by tile: without an energy, because every tile has one of its own."""

    flow: Flow
    window: Window
    margin: Field | None
    energy: None = None
    bound: None = None
    gap: None = None
    history: tuple[Any, ...] = ()


@dataclass(frozen=True)
class TiledMatcher:
    """A matcher that works tile by tile if the whole would not fit.

    Parameters
    ----------
    matcher : Matcher
        What is done in each tile.
    most : int
        Labels of both components of all pixels of a tile and its surroundings.
    """

    matcher: Matcher
    most: int
    method: ClassVar[str] = "tiled"

    def __call__(self, task: MatchTask) -> Match:
        """Match within a window; the callback is told of the iterations of every tile."""
        shape, window = task.bits[0].shape[:2], task.window
        most = self.most // (window.du + window.dv)
        if shape[0] * shape[1] <= most:
            return self.matcher(task)
        # What a tile moves to is searched as a part of it: kernels take two images of one size.
        low = _CONTEXT - min(window.u0, 0), _CONTEXT - min(window.v0, 0)
        high = (
            _CONTEXT + max(window.u0 + window.du - 1, 0),
            _CONTEXT + max(window.v0 + window.dv - 1, 0),
        )
        around = max(low + high)
        most = max(most, (_SMALLEST + 2 * around) ** 2)
        flow = np.empty((*shape, 2), np.float32)
        margin: Field | None = None
        for box in cover(shape, most, around, 1):
            outer = box.grown(low, high, 1, shape)
            found = self.matcher(task.part(outer.slices))
            inner = box.inside(outer).slices
            flow[box.slices] = found.flow[inner]
            decided = found.margin
            if decided is not None:
                margin = np.empty(shape, np.float32) if margin is None else margin
                margin[box.slices] = decided[inner]
            del found
        return TiledMatch(flow, window, margin)

    def warm_started(self) -> Matcher:
        """Return the matcher for a pair that begins with the labels of the pair before."""
        return replace(self, matcher=self.matcher.warm_started())


@dataclass(frozen=True)
class TiledCompletion:
    """A completion that works tile by tile if the whole would not fit.

    Parameters
    ----------
    completion : Completion
        What is done in each tile.
    tiling : Tiling
        How large tiles are.
    """

    completion: Completion
    tiling: Tiling
    method: ClassVar[str] = "tiled"

    def __call__(self, matches: MatchEvidence) -> tuple[Flow, Field]:
        """Return the completed flow, and how far each pixel is from the nearest match."""
        shape = matches.trusted.shape
        if shape[0] * shape[1] <= self.tiling.most:
            return self.completion(matches)
        completed, distance = np.empty((*shape, 2), np.float32), np.empty(shape, np.float32)

        def moved(box: Box) -> Reach:
            return reach_of(np.nan_to_num(matches.flow[box.slices]))

        for box, outer in self.tiling.tiles(shape, 1, moved, _FAR):
            inner = box.inside(outer).slices
            found = self.completion(matches.part(outer.slices))
            completed[box.slices], distance[box.slices] = found[0][inner], found[1][inner]
        return completed, distance
