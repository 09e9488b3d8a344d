"""Flow that holds together in time: a filter along the tracks of a video."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._check import check_range
from hamflow._scale import upsample_linear
from hamflow._types import Field, Flow, FrameLike, Mask
from hamflow.refinement.consistency import disagreement, occluded
from hamflow.refinement.variational import features_of
from hamflow.stages import Tracks

_BLUR = 0.6  # of the compared colors, in pixels, as for the confidence
_CAP = 0.1  # larger differences of colors all count as this one
_ALIKE = 1.0  # pixels: neighbors that differ by more belong to another surface
# Changes of motion are looked at in a grid with so many points along the shorter side, first in
# large squares, then in smaller ones; sides in points.
_GRID = 72
_SQUARES = (31, 15, 7, 3)
_APART = 1.0  # pixels from what is usual around at which a change of motion counts half
_DISAGREE = 0.5  # pixels of disagreement of both directions that halve the reliability
_BASE = 1e-4  # reliability of a pixel without any texture, for want of better ones


@dataclass(frozen=True)
class NoTemporal:
    """The pairs of a video by themselves."""

    method: ClassVar[str] = "off"

    def __call__(
        self, frames: tuple[FrameLike, FrameLike], flows: Sequence[Flow], before: Tracks | None
    ) -> tuple[list[Flow], Tracks | None]:
        """Return the flows as they are."""
        return list(flows), None


@dataclass(frozen=True)
class TrackFilter:
    """The recursive filter along tracks.

    What a pixel shows was somewhere in the frame before, and moved from there; it is expected to
    move on alike, except for changes of motion that textured pixels around have in common (the
    camera shakes, a thing brakes). The flow of the pair is replaced by a mean of what was measured
    and what is expected, which is the mean over the whole track for short ones. Where this mean
    explains the images worse than the measured flow does, the measured flow stays, and the track
    begins anew.

    Parameters
    ----------
    least : float
        Share that the measured flow has at least, however long the track is.
    tolerance : float
        By how much the difference of colors (from 0 to 1, mean over a square) may rise.
    relative : float
        The same, as a share of the difference.
    radius : int
        Of the square.
    texture : float
        Contrast per pixel, in the direction with the least contrast, that makes a pixel half
        reliable.
    surely : float
        Mean reliability in a square that outweighs what is usual in a larger one.
    noise : float
        By how many times the contrast that four fifths of the frame exceed, which may be noise,
        `texture` is larger.
    support : float
        Mean reliability in the largest square at which the age of a track counts half.
    """

    least: float = 0.2
    tolerance: float = 0.001
    relative: float = 0.1
    radius: int = 2
    texture: float = 0.01
    surely: float = 0.05
    noise: float = 3.0
    support: float = 0.001
    method: ClassVar[str] = "tracks"

    def __post_init__(self) -> None:
        check_range(self, "least", 0, 1)
        check_range(self, "relative", 0, 1e6)
        check_range(self, "radius", 0, 100, whole=True)
        check_range(self, "noise", 0, 1e6)
        for name in ("tolerance", "texture", "surely", "support"):
            check_range(self, name, 1e-9, 1e6)

    def __call__(
        self, frames: tuple[FrameLike, FrameLike], flows: Sequence[Flow], before: Tracks | None
    ) -> tuple[list[Flow], Tracks | None]:
        """Return the filtered flows, forward and backward, and the tracks for the next pair."""
        forward, backward = flows
        if before is None or np.array_equal(frames[0].at(1), frames[1].at(1)):
            return [forward, backward], Tracks((forward, backward))
        # What is in the first frame came along the backward flow of the pair before; what is in
        # the second one came along the new one from there.
        ways = (
            (before.flows[1], ~occluded(before.flows[1], before.flows[0])),
            (backward, ~occluded(backward, forward)),
        )
        found: list[Flow] = []
        ages: list[Field] = []
        for k, way in enumerate(ways):
            age = np.float32(1) if before.ages is None else before.ages[k]
            state = np.dstack([before.flows[k], np.broadcast_to(age, forward.shape[:2])])
            pair, measured = (frames[k], frames[1 - k]), (flows[k], flows[1 - k])
            state = self._filtered(pair, measured, state, *way)
            found.append(np.ascontiguousarray(state[..., :2]))
            ages.append(np.ascontiguousarray(state[..., 2]))
        return found, Tracks((found[0], found[1]), (ages[0], ages[1]))

    def _filtered(
        self,
        frames: tuple[FrameLike, FrameLike],
        flows: tuple[Flow, Flow],
        state: Field,
        along: Flow,
        visible: Mask,
    ) -> Field:
        """Return the state (u, v, age) of one direction."""
        measured = np.ascontiguousarray(flows[0], np.float32)
        expected = np.empty((*measured.shape[:2], 3), np.float32)
        _native.carry(
            state, np.ascontiguousarray(along), visible.astype(np.uint8), _ALIKE, expected
        )
        self._add_changes(frames[0], flows, expected)
        first, second = (features_of(frame, 1, _BLUR) for frame in frames)
        how = (self.least, self.tolerance, self.relative, _CAP)
        found = np.empty_like(expected)
        _native.blend(first, second, measured, expected, self.radius, how, found)
        return found

    def _add_changes(self, frame: FrameLike, flows: tuple[Flow, Flow], expected: Field) -> None:
        """Add to an expected flow how motion changes, as reliable pixels around show it."""
        height, width = expected.shape[:2]
        half = max(1, round(min(height, width) / _GRID / 2))
        step = 2 * half
        known = expected[::step, ::step, 2] > 0
        if not known.any():
            return
        change = flows[0][::step, ::step] - expected[::step, ::step, :2]
        agree = disagreement(*flows)[::step, ::step] / np.float32(_DISAGREE)
        contrast = frame.kept(("contrast", half), lambda: _contrast(frame.at(half)))[::2, ::2]
        usual = np.float32(self.texture + self.noise * np.percentile(contrast, 20))
        reliable = (contrast / (contrast + usual)) ** 2 / (1 + agree**2)
        reliable = known * (reliable + np.float32(_BASE))
        around = np.empty_like(change)
        for k in range(2):
            around[..., k] = _weighted_median(change[..., k], reliable)
        for side in _SQUARES:
            apart = change - around
            weight = reliable / (1 + (apart**2).sum(axis=2) / np.float32(_APART**2))
            sums = _box_mean(np.dstack([apart * weight[..., None], weight]), side)
            around += sums[..., :2] / (sums[..., 2:] + np.float32(self.surely))
            if side == _SQUARES[0]:
                known_around = sums[..., 2] / (sums[..., 2] + np.float32(self.support))
        moved = upsample_linear(around, step, (height, width))
        expected[..., :2] += np.where(expected[..., 2:] > 0, moved, 0)
        # Where nothing around tells whether motion changes, a long track counts as a short one.
        expected[..., 2] *= upsample_linear(known_around, step, (height, width))


def _contrast(image: Field) -> Field:
    """Return the contrast per pixel in the direction that has the least of it."""
    gray = np.pad(image.mean(axis=2), ((0, 1), (0, 1)), mode="edge")
    down, right = gray[1:, :-1] - gray[:-1, :-1], gray[:-1, 1:] - gray[:-1, :-1]
    xx, xy, yy = np.moveaxis(
        _box_mean(np.dstack([right * right, right * down, down * down]), 5), 2, 0
    )
    least = (xx + yy - np.sqrt((xx - yy) ** 2 + 4 * xy * xy)) / 2
    contrast: Field = np.sqrt(np.maximum(least, 0)).astype(np.float32)
    return contrast


def _box_mean(fields: Field, side: int) -> Field:
    """Return the means over squares with an odd side, as if everything outside were 0."""
    reach = side // 2
    sums = fields.astype(np.float64)
    for axis in range(2):
        pads = [(0, 0)] * 3
        pads[axis] = (reach + 1, reach)
        total = np.cumsum(np.pad(sums, pads), axis=axis)
        count = fields.shape[axis]
        sums = total.take(range(side, side + count), axis) - total.take(range(count), axis)
    return (sums / side**2).astype(np.float32)


def _weighted_median(values: Field, weights: Field) -> np.float32:
    order = np.argsort(values, axis=None, kind="stable")
    total = np.cumsum(weights.ravel()[order], dtype=np.float64)
    middle: np.float32 = values.ravel()[order[np.searchsorted(total, total[-1] / 2)]]
    return middle
