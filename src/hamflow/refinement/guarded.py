"""Subpixel refinement that leaves what is right: the variational model, guarded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._check import check_range
from hamflow._room import empty
from hamflow._types import Field, Flow, FrameLike, Image
from hamflow.refinement.boundaries import MotionChoice, choose
from hamflow.refinement.pyramid import RefineAt
from hamflow.refinement.variational import VariationalRefinement, features_of, refine

# Before the choice of motions a boundary of the start flow may still be wrong: only a larger jump
# keeps smoothness away, and the data term counts beside it.
_LOOSE = 6.0
# Of a pair that follows another one: warps at half of the finest size, at least; and how each warp
# is solved, nearer to its optimum than for a pair by itself (docs/decisions.md).
_HALF_SIZE_WARPS = 5
_FOLLOWING = {"inner": 1, "sweeps": 20, "omega": 1.9}
# How far from a boundary pixels choose: the enlarged flow is wrong about as far.
_REACH = 2


@dataclass(frozen=True)
class GuardedRefinement(VariationalRefinement):
    """The variational refinement, kept from doing harm.

    Three guards: smoothness ends at the motion boundaries of the flow that it starts from, beside
    which the data term counts less, because features there mix two surfaces; a flow moves no
    farther than the scale that it comes from leaves open; and between two halves of the warps,
    pixels beside a motion boundary choose on which side of it they are (see
    `hamflow.refinement.choose`). A flow that already has the full size keeps its boundaries: there
    is no choice, and the strict half does all warps. Where the finished flow of the other direction
    is known, half of the warps and rounds of choice are enough.

    Parameters other than these are those of `VariationalRefinement`.

    Parameters
    ----------
    boundary : float
        Difference between the flows of neighbors, in pixels, that halves the smoothness between
        them after the choice; six times as much before it.
    near : float
        Difference that halves the data term within two pixels of it, after the choice.
    firmness : float
        Smoothness after the choice, relative to `alpha`.
    limit : float
        How far a component may move before the choice, in pixels of the scale that the flow comes
        from; half of it afterwards.
    rounds : int
        How often pixels choose.
    """

    # One update of the robust weights per warp, and sweeps that reach a little farther.
    inner: int = 1
    sweeps: int = 20
    omega: float = 1.85
    boundary: float = 0.5
    near: float = 1.0
    firmness: float = 1.7
    limit: float = 1.0
    rounds: int = 2
    method: ClassVar[str] = "guarded"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("boundary", "near"):
            check_range(self, name, 1e-6, 1e6)
        for name in ("firmness", "limit"):
            check_range(self, name, 0, 1e6)
        check_range(self, "rounds", 0, 100, whole=True)

    def _refiner(self, frames: tuple[FrameLike, FrameLike], scale: int) -> RefineAt:
        def refine_at(finer: int, start: Flow, weight: Field, near: bool) -> Flow:
            first, second = (features_of(frame, finer, self.blur) for frame in frames)
            images, flow = (first, second), start
            step = self.at_step(scale, finer)
            if near and finer > self.finest:  # details come from the opposite flow
                limit = self.limit * (scale // finer)
                return step._within(limit, images, flow, weight, min(1, self.warps), loose=True)
            warps, rounds = step._warps(near), step.rounds // 2 if near else step.rounds
            limit, strict = self.limit, warps
            if finer < scale:
                # What the coarser scale could not show: first the motions, then their boundaries.
                limit *= scale // finer if near else 2
                strict = warps // 2
                flow = step._within(limit, images, flow, weight, warps - strict, loose=True)
                choice = MotionChoice(rounds=rounds, reach=_REACH)
                flow = choose(frames[0].at(finer), *images, flow, weight, choice=choice)
            return step._within(limit / 2, images, flow, weight, strict, loose=False)

        return refine_at

    def warm_started(self) -> GuardedRefinement:
        """Return the refinement of a pair of a video that follows another one."""
        return FollowingRefinement(**vars(self))

    def at_step(self, scale: int, finer: int) -> GuardedRefinement:
        """Return what refines at one scale on the way from the matching scale to the finest."""
        return self

    def _within(
        self,
        limit: float,
        images: tuple[Image, Image],
        start: Flow,
        weight: Field,
        warps: int,
        *,
        loose: bool,
    ) -> Flow:
        """Return the refined flow, at most `limit` from where it starts."""
        if not warps:
            return start
        right, down, guarded = (empty(weight.shape, np.float32) for _ in range(3))
        boundary = self.boundary * (_LOOSE if loose else 1)
        _native.guards(start, weight, boundary, 0.0 if loose else self.near, right, down, guarded)
        alpha = self.alpha * (1 if loose else self.firmness)
        config = replace(self, warps=warps, alpha=alpha)
        return refine(*images, start, guarded, config=config, edges=(right, down), limit=limit)


@dataclass(frozen=True)
class FollowingRefinement(GuardedRefinement):
    """The same with fewer warps at the finest scale, as the next pair of a video has it.

    Warps at half of its size cost a quarter: so that scale is never left out, and half of the
    warps are enough at the finest one. Where the flow of the other direction is known, one warp at
    half size is enough. The robust weights are updated once per warp.
    """

    twice: ClassVar[bool] = True

    def at_step(self, scale: int, finer: int) -> GuardedRefinement:
        """Return what refines at one scale on the way from the matching scale to the finest."""
        values = vars(self) | _FOLLOWING
        finest, fewer = min(self.finest, scale), (self.warps + 1) // 2
        if finer == finest < scale:
            # A single round of choice would take a twentieth of the time for .7 % of the error.
            values |= {"warps": fewer, "rounds": self.rounds if self.rounds > 1 else 0}
        elif finer == 2 * finest and self.warps:
            values["warps"] = max(_HALF_SIZE_WARPS, fewer)
        return GuardedRefinement(**values)
