"""Flow that holds together in time: a filter along the tracks of a video."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._check import check_range
from hamflow._room import empty
from hamflow._scale import upsample_linear
from hamflow._types import Field, Flow, FrameLike
from hamflow.refinement._edges import box_mean
from hamflow.refinement.consistency import HIDING
from hamflow.refinement.evidence import mean_of_channels
from hamflow.stages import Tracks

_ALIKE = 1.0  # pixels: neighbors that differ by more belong to another surface
# Changes of motion are looked at in a grid with about so many points along the shorter side, whose
# step is a power of two because frames are known at such sizes anyhow; first in large squares, then
# in smaller ones, with sides in points.
_GRID = 72
_SQUARES = (31, 15, 7, 3)
_APART = 1.0  # pixels from what is usual around at which a change of motion counts half
_BASE = 1e-4  # reliability of the least certain pixel, for want of better ones


@dataclass(frozen=True)
class NoTemporal:
    """The pairs of a video by themselves."""

    method: ClassVar[str] = "off"

    def __call__(
        self,
        frames: tuple[FrameLike, FrameLike],
        flows: tuple[Flow, Flow],
        confidence: Field,
        before: Tracks | None,
    ) -> tuple[Flow, Tracks | None]:
        """Return the flow as it is."""
        return flows[0], None


@dataclass(frozen=True)
class TrackFilter:
    """The recursive filter along tracks, a Kalman filter for each pixel.

    What a pixel shows was somewhere in the frame before, and moved from there; it is expected to
    move on alike, except for changes of motion that reliable pixels around have in common (the
    camera shakes, a thing brakes). The flow of the pair becomes a mean of what was measured and
    what is expected, each weighted by its confidence: what is certain stays as it is, and a plain
    surface keeps the motion that was seen more clearly before. If the two are farther apart than
    their errors explain, there is no mean, and the more certain one is taken. An expectation
    becomes less certain from pair to pair. The backward flow stays as it is.

    Parameters
    ----------
    change : float
        By how many pixels motions change unforeseen from pair to pair.
    relative : float
        The same, as a share of the motion.
    apart : float
        Difference from which on there is no mean, in standard deviations.
    texture : float
        Contrast per pixel, in the direction with the least contrast, that makes a pixel that is
        certain half reliable.
    noise : float
        By how many times the contrast that four fifths of the frame exceed, which may be noise,
        `texture` is larger.
    surely : float
        Mean reliability in a square that outweighs what is usual in a larger one.
    support : float
        Mean reliability in the largest square that halves the confidence in what is expected.
    """

    change: float = 0.3
    relative: float = 0.03
    apart: float = 1.0
    texture: float = 0.01
    noise: float = 3.0
    surely: float = 0.05
    support: float = 0.001
    method: ClassVar[str] = "tracks"

    def __post_init__(self) -> None:
        for name in ("change", "relative", "apart", "noise"):
            check_range(self, name, 0, 1e6)
        for name in ("texture", "surely", "support"):
            check_range(self, name, 1e-9, 1e6)

    def __call__(
        self,
        frames: tuple[FrameLike, FrameLike],
        flows: tuple[Flow, Flow],
        confidence: Field,
        before: Tracks | None,
    ) -> tuple[Flow, Tracks | None]:
        """Return the filtered flow, and the tracks for the next pair."""
        if before is None or np.array_equal(frames[0].at(1), frames[1].at(1)):
            return flows[0], Tracks(flows, confidence)
        # What is in the first frame came along the backward flow of the pair before.
        expected = empty((*confidence.shape, 3), np.float32)
        flow, back = before.flows
        _native.carry(flow, before.confidence, back, _ALIKE, HIDING, expected)
        changes = self._changes(frames[0], flows[0], confidence, expected)
        how = (self.change, self.relative, self.apart)
        found, certain = np.empty_like(flows[0]), np.empty_like(confidence)
        _native.blend(flows[0], confidence, expected, changes, how, found, certain)
        return found, Tracks((found, flows[1]), certain)

    def _changes(self, frame: FrameLike, flow: Flow, confidence: Field, expected: Field) -> Field:
        """Return how motion changes (u, v), as reliable pixels around show it.

        And how far that is known, from 0 to 1.
        """
        height, width = confidence.shape
        half = 2 ** max(0, round(math.log2(min(height, width) / _GRID / 2)))
        step = 2 * half
        grid = np.s_[::step, ::step]
        change = flow[grid] - expected[grid][..., :2]
        contrast = frame.kept(("contrast", half), lambda: _contrast(frame.at(half)))[::2, ::2]
        usual = np.float32(self.texture + self.noise * np.percentile(contrast, 20))
        reliable = confidence[grid] * (contrast / (contrast + usual)) ** 2 + np.float32(_BASE)
        reliable *= expected[grid][..., 2] > 0
        around = np.empty((*reliable.shape, 3), np.float32)
        for k in range(2):
            around[..., k] = _weighted_median(change[::2, ::2, k], reliable[::2, ::2])
        for side in _SQUARES:
            apart = change - around[..., :2]
            weight = reliable / (1 + (apart**2).sum(axis=2) / np.float32(_APART**2))
            sums = box_mean(np.dstack([apart * weight[..., None], weight]), side)
            around[..., :2] += sums[..., :2] / (sums[..., 2:] + np.float32(self.surely))
            if side == _SQUARES[0]:
                # Where nothing around tells whether motion changes, little is to be expected.
                around[..., 2] = sums[..., 2] / (sums[..., 2] + np.float32(self.support))
        return upsample_linear(around, step, (height, width))


def _contrast(image: Field) -> Field:
    """Return the contrast per pixel in the direction that has the least of it."""
    gray = np.pad(mean_of_channels(image), ((0, 1), (0, 1)), mode="edge")
    down, right = gray[1:, :-1] - gray[:-1, :-1], gray[:-1, 1:] - gray[:-1, :-1]
    xx, xy, yy = np.moveaxis(
        box_mean(np.dstack([right * right, right * down, down * down]), 5), 2, 0
    )
    least = (xx + yy - np.sqrt((xx - yy) ** 2 + 4 * xy * xy)) / 2
    contrast: Field = np.sqrt(np.maximum(least, 0)).astype(np.float32)
    return contrast


def _weighted_median(values: Field, weights: Field) -> np.float32:
    order = np.argsort(values, axis=None, kind="stable")
    total = np.cumsum(weights.ravel()[order], dtype=np.float64)
    middle: np.float32 = values.ravel()[order[np.searchsorted(total, total[-1] / 2)]]
    return middle
