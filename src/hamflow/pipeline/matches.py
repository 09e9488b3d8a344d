"""What the search has found, and what the check and the completion made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import ReferenceType

import numpy as np

from hamflow._scale import upsample_linear
from hamflow._types import Field, Flow, Mask
from hamflow.errors import InputError
from hamflow.pipeline.frame import Frame
from hamflow.stages import Match, MatchEvidence, Tracks
from hamflow.window import Window

# Margins, in units of cost: the one from which on a match is clearly better than all others, and
# the one beyond which a larger one says no more.
_CLEAR = 2.0
_FAR = 60.0
# A match that is at least so decided, from 0 to 1, counts as a clear one.
_HALF = 0.5


@dataclass(frozen=True, eq=False)
class Certificate:
    """What the matcher knows about its result; its volumes are too large to keep."""

    energy: float | None
    bound: float | None
    gap: float | None
    window: Window
    history: tuple[Any, ...]

    @classmethod
    def of(cls, match: Match) -> Certificate:
        """Keep what is small."""
        return cls(match.energy, match.bound, match.gap, match.window, tuple(match.history))


class Found(NamedTuple):
    """What the matcher found in one direction: the flow, and what it knows about it.

    Attributes
    ----------
    flow : (H, W, 2) array of float32
        In whole pixels.
    certificate : Certificate
        Energy, bound, window and history.
    decided : (H, W) array of float32
        From 0, where another displacement is as good, to 1, where it would be clearly worse.
    """

    flow: Flow
    certificate: Certificate
    decided: Field

    @classmethod
    def of(cls, match: Match) -> Found:
        """Keep what is small."""
        margin = match.margin
        if margin is None:
            decided = np.ones(match.flow.shape[:2], np.float32)
        else:
            decided = np.clip(_mean_around(np.clip(margin, -_FAR, _FAR)) / _CLEAR, 0, 1)
        return cls(match.flow, Certificate.of(match), decided)


def _mean_around(values: Field) -> Field:
    """Return the means over 3×3 pixels."""
    padded = np.pad(values, 1, mode="edge")
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    means: Field = (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) * np.float32(1 / 9)
    return means


def match_evidence(
    frames: tuple[Frame, Frame],
    found: Sequence[Found],
    trusted: Sequence[Mask],
    scale: int,
    coarser: Matches | None = None,
) -> list[MatchEvidence]:
    """Return what a completion gets to know of each direction that was matched."""
    both = [(match.flow, mask) for match, mask in zip(found, trusted, strict=True)]
    images = frames[0].at(scale), frames[1].at(scale)
    coarse: list[Flow | None] = [None] * len(both)
    if coarser is not None and coarser.scale > scale:
        coarse = [
            enlarged_flow(d.completed, coarser.scale // scale, images[0].shape[:2])
            for d in coarser.directions
        ]
    return [
        MatchEvidence(
            images[k],
            (frames[k].bits(scale), frames[1 - k].bits(scale)),
            *both[k],
            both[1 - k] if len(both) == 2 else None,
            images[1 - k],
            found[k].decided,
            coarse[k],
        )
        for k in range(len(both))
    ]


def enlarged_flow(flow: Flow, factor: int, shape: tuple[int, int]) -> Flow:
    """Return a flow of a coarser scale in pixels of a finer one."""
    return upsample_linear(flow, factor, shape) * np.float32(factor)


@dataclass(frozen=True, eq=False)
class DirectedMatches:
    """The matches of one direction, at the matching scale and in its pixels.

    Attributes
    ----------
    flow : (H, W, 2) array of float32
        As the matcher found it, in whole pixels.
    trusted : (H, W) array of bool
        Where it passed the forward-backward check.
    completed : (H, W, 2) array of float32
        The flow after the completion.
    distance : (H, W) array of float32
        How far each pixel is from the nearest trusted match; see `hamflow.refinement.complete`.
    certificate : Certificate
        Energy, bound, window and history.
    decided : (H, W) array of float32
        From 0, where another displacement is as good, to 1, where it would be clearly worse.
    """

    flow: Flow
    trusted: Mask
    completed: Flow
    distance: Field
    certificate: Certificate
    decided: Field


@dataclass(frozen=True, eq=False)
class Matches:
    """The matches of a pair of frames: what the next pair of a video starts from.

    Attributes
    ----------
    directions : tuple of DirectedMatches
        Forward, and backward if both directions were matched.
    scale : int
        By what factor the images were reduced.
    full_share : float
        Largest share of trusted pixels since the whole window was last searched, in a video.
    cut : bool
        Whether the frames have nothing to do with each other, so that the next pair starts from
        nothing.
    warm : bool
        Whether they were searched for around the flow of the pair before.
    completion : str
        The method by which they were completed.
    tracks : Tracks, optional
        Of the finished flow.
    second : reference to a Frame, optional
        The second of the frames, as long as it exists: tracks go on from there.
    trusted_share : float
        Share of trusted pixels, mean over the directions.
    clear_share : float
        Share of trusted pixels whose match is clearly better than others.
    """

    directions: tuple[DirectedMatches, ...]
    scale: int
    full_share: float = 0.0
    cut: bool = False
    warm: bool = False
    completion: str = "labeling"
    tracks: Tracks | None = None
    second: ReferenceType[Frame] | None = None
    trusted_share: float = field(init=False)
    clear_share: float = field(init=False)

    @classmethod
    def of(
        cls,
        found: Sequence[Found],
        trusted: Sequence[Mask],
        completed: Sequence[tuple[Flow, Field]],
        scale: int,
        full_share: float,
    ) -> Matches:
        """Put together what search, check and completion say of each direction."""
        directions = (
            DirectedMatches(match.flow, mask, *filled, match.certificate, match.decided)
            for match, mask, filled in zip(found, trusted, completed, strict=True)
        )
        return cls(tuple(directions), scale, full_share)

    def tracks_to(self, frame: Frame) -> Tracks | None:
        """Return the tracks that end in a frame; None if it is not the second one."""
        return self.tracks if self.second is not None and self.second() is frame else None

    def __post_init__(self) -> None:
        share = float(np.mean([d.trusted.mean() for d in self.directions]))
        clear = float(np.mean([(d.trusted & (d.decided > _HALF)).mean() for d in self.directions]))
        object.__setattr__(self, "trusted_share", share)
        object.__setattr__(self, "clear_share", clear)
        object.__setattr__(self, "full_share", max(self.full_share, share))


def check_previous(previous: Matches | None) -> None:
    """Raise an InputError unless this is what the next pair of a video can start from."""
    if not (previous is None or isinstance(previous, Matches)):
        raise InputError(
            "previous must be None or the second value that Estimator.between returned for the "
            f"pair before, but is of type {type(previous).__name__}."
        )
