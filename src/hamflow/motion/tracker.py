"""Following points from one frame to the next, also while they are hidden."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow._types import Field
from hamflow.motion._sampling import Points, expected_error, inside, nearest, patches_at, vectors_at
from hamflow.result import FlowResult

_Bools = NDArray[np.bool_]

# Largest squared disagreement of there and back, relative and absolute: as for occlusions.
_AGREE = (0.01, 0.5)
# What a hidden point is predicted from: pixels around it that moved as it did.
_TRIED = 48
_RADIUS = 40.0  # pixels: how far away they are at most
_COMPANIONS = 16  # how many of them are followed
_FEWEST = 3
_GONE = -1e6  # a place that is in no image
_ALIKE = (0.5, 0.1)  # how different their motion is at most: in pixels, and as a share of it
_BEND = 0.03  # and more by this, in pixels for each pixel that they are away
_STIFF = 30.0  # pixels: how far apart companions must be for their motions to differ freely
_SIMILAR = 0.8  # correlation of two patches that show the same thing
_NEARBY = 16.0  # pixels: how far from the expected place a direct match may be
_ASTRAY = 0.5  # pixels of error that each predicted frame adds


class Followed(NamedTuple):
    """Where points of one frame are in the next."""

    places: Points
    seen: _Bools  # whether they are visible there
    error: NDArray[np.float64]  # that is to be expected, in pixels


class Tracker:
    """Points, and where they are in the present frame."""

    def __init__(self, image: Field, points: Points) -> None:
        self.position = np.array(points, np.float64)
        self.visible = inside(self.position, image.shape)
        self._error = np.where(self.visible, 0.0, np.inf)
        self._velocity = np.zeros_like(self.position)
        # How the points looked when they were last seen, perhaps beside what then hid them, and how
        # they looked when they were last sure.
        self._recent = patches_at(image, self.position)
        self._sure = self._recent.copy()
        self._companions = np.full((len(points), _COMPANIONS, 2), _GONE)

    @property
    def confidence(self) -> NDArray[np.float32]:
        """1 / (1 + the error in pixels that is to be expected)."""
        return (1 / (1 + self._error)).astype(np.float32)

    def step(self, image: Field, result: FlowResult) -> None:
        """Go to the next frame: `image` in gray, and the flow from the present frame to it."""
        places, seen, error = follow(result, self.position)
        found = self.visible & seen
        who = np.flatnonzero(found)
        self._companions[who] = companions(result, self.position[who], places[who])
        there, still, _ = follow(result, self._companions)
        fitted, known = _carried(self.position, self._companions, there, still)
        there[~still] = _GONE
        self._companions = there

        # Lost just now: the completed flow is that of what is hidden. Hidden for longer: the flow
        # is that of what hides it.
        alone = np.where(self.visible[:, None], places, self.position + self._velocity)
        predicted = np.where(known[:, None], fitted, alone)
        back = ~found & self._recognized(image, result, predicted)

        before = self.position
        self.position = np.where(found[:, None], places, predicted)
        self._velocity = self.position - before
        self._error = np.where(found, np.hypot(self._error, error), self._error + _ASTRAY)
        self.visible = found | back
        self._recent[who] = patches_at(image, self.position[who])

    def _recognized(self, image: Field, result: FlowResult, predicted: Points) -> _Bools:
        """Return which points are visible in the next frame where they are predicted.

        Those are visible at whose place something moves as they do and looks as they did.
        """
        seen = inside(predicted, image.shape, 0.0)
        if result.backward is not None:
            motion = predicted - self.position
            apart = np.linalg.norm(vectors_at(result.backward, predicted) + motion, axis=1)
            seen &= apart < _alike(motion)
        who = np.flatnonzero(seen)
        here = patches_at(image, predicted[who])
        alike = [(before[who] * here).sum(axis=1) for before in (self._recent, self._sure)]
        seen[who] = np.maximum(*alike) > _SIMILAR
        return seen

    def join(self, image: Field, direct: Followed, known: _Bools) -> float:
        """Move points to where they were found directly from an earlier frame.

        Only those move of which it is `known` where they were in that frame, that are seen here,
        and that were expected nearby. Returns their share of the visible points.
        """
        apart = np.linalg.norm(direct.places - self.position, axis=1)
        agree = known & direct.seen & (apart < _NEARBY)
        self.position[agree] = direct.places[agree]
        self.visible |= agree
        self._error = np.where(agree, np.minimum(self._error, direct.error), self._error)
        self._sure[agree] = patches_at(image, self.position[agree])
        return float(agree.sum() / max(1, self.visible.sum()))


def follow(result: FlowResult, points: Points) -> Followed:
    """Follow points to the next frame by the flow, and check the way back."""
    vectors = vectors_at(result.flow, points)
    places = points + vectors
    seen = inside(points, result.flow.shape) & inside(places, result.flow.shape)
    if result.backward is not None:
        back = vectors_at(result.backward, places)
        apart = np.square(vectors + back).sum(axis=-1)
        length = np.square(vectors).sum(axis=-1) + np.square(back).sum(axis=-1)
        seen &= apart <= _AGREE[0] * length + _AGREE[1]
    if result.occlusion is not None:
        seen &= ~nearest(result.occlusion, points)
    expected = expected_error(result.confidence)
    error = np.zeros(seen.shape) if expected is None else nearest(expected, points)
    return Followed(places, seen, error)


def companions(result: FlowResult, points: Points, places: Points) -> Points:
    """Return the nearest pixels that move as points do: (N, K, 2), `_GONE` if there are fewer."""
    steps = np.arange(1, _TRIED + 1)
    radius, angle = _RADIUS * steps / _TRIED, steps * np.pi * (3 - np.sqrt(5))
    around = points[:, None] + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    motion = (places - points)[:, None]
    there, seen, _ = follow(result, around)
    apart = np.linalg.norm(there - around - motion, axis=2)
    alike = seen & (apart < _alike(motion) + _BEND * radius)
    first = np.argsort(~alike, axis=1, kind="stable")[:, :_COMPANIONS, None]
    chosen = np.take_along_axis(around, first, axis=1)
    chosen[~np.take_along_axis(alike[..., None], first, axis=1)[..., 0]] = _GONE
    return chosen


def _alike(motion: Points) -> NDArray[np.float64]:
    """Return how much a motion may differ from a given one to count as the same, in pixels."""
    return np.asarray(_ALIKE[0] + _ALIKE[1] * np.linalg.norm(motion, axis=-1))


def _carried(points: Points, before: Points, after: Points, valid: _Bools) -> tuple[Points, _Bools]:
    """Return where points are carried by the affine motion of their companions, and if they are.

    The linear part is kept small unless the companions, which are far enough apart, agree on it.
    """
    weights = valid.astype(np.float64)
    count = np.maximum(weights.sum(axis=1), 1)[:, None]
    local = np.where(valid[..., None], before - points[:, None], 0)
    moved = np.where(valid[..., None], after - before, 0)
    center, motion = local.sum(axis=1) / count, moved.sum(axis=1) / count
    x = (local - center[:, None]) * weights[..., None]
    y = (moved - motion[:, None]) * weights[..., None]
    normal = x.swapaxes(1, 2) @ x + _STIFF**2 * np.eye(2)
    linear = np.linalg.solve(normal, x.swapaxes(1, 2) @ y)
    carried = points + motion - (center[:, None] @ linear)[:, 0]
    return carried, weights.sum(axis=1) >= _FEWEST
