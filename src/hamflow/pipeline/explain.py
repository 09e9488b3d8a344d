"""Why a pixel got its match: the costs of its labels, and what the joint model left of them.

A *label* is one displacement of a component, horizontal (u) or vertical (v), in whole pixels of the
matching scale. The *cost* of a label is the smallest Hamming distance, in bits, that the pixel's
descriptor has to any target with this label: c^u and c^v (eq. 4 of the paper). The *slack* of a
label, in bits as well, is what the joint model leaves of that cost when its neighbors have had
their say: the smaller it is, the better the label fits the pixel and everything around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._types import Bits, Field, Labels, Volume
from hamflow.errors import InputError
from hamflow.matching._arrays import words_of
from hamflow.prior import Prior
from hamflow.window import Window

# Bits that are set in each value of a byte.
_SET_BITS = np.array([bin(value).count("1") for value in range(256)], np.uint8)
BITS_PER_COST = 0.5
"""The cost c is twice the Hamming distance, less the number of bits."""
_FARTHEST = 1 << 20  # labels from the center of a map: farther is outside of any image


@dataclass(frozen=True, eq=False)
class LabelCurve:
    """What speaks for and against each label of one component of one pixel.

    Attributes
    ----------
    labels : (D,) array of int64
        The displacements, in pixels of the full images.
    cost : (D,) array of float32
        c^u or c^v: the smallest Hamming distance of a target with this label, in bits.
    slack : (D,) array of float32, or None
        What the joint model leaves of the cost, in bits; None if the matcher has no slacks.
    prior : (D,) array of float32, or None
        What a coarser scale, or the pair before, adds to the cost, in bits; None if nothing did.
    wta : int
        Index of the label that winner takes all chooses by the costs alone.
    crf : int, or None
        Index of the label that the joint model chose; None if there was none.
    """

    labels: NDArray[np.int64]
    cost: NDArray[np.float32]
    slack: NDArray[np.float32] | None
    prior: NDArray[np.float32] | None
    wta: int
    crf: int | None


@dataclass(frozen=True, eq=False)
class DistanceMap:
    """The Hamming distances of a pixel to the targets around one of them.

    Attributes
    ----------
    labels_u, labels_v : (D,) array of int64
        The displacements of the columns and of the rows, in pixels of the full images.
    cost : (D, D) array of float32
        Hamming distances in bits; a row for each v, a column for each u.
    around : (int, int)
        Displacement (u, v) of the center, in pixels of the full images.
    """

    labels_u: NDArray[np.int64]
    labels_v: NDArray[np.int64]
    cost: NDArray[np.float32]
    around: tuple[int, int]


@dataclass(frozen=True, eq=False)
class PixelExplanation:
    """Why a pixel got its match.

    Attributes
    ----------
    x, y : int
        The pixel of the first image.
    cell : (int, int)
        The pixel (x, y) of the matching scale that it lies in.
    scale : int
        By what factor the images were reduced for matching.
    bits : int
        Length of a descriptor.
    u, v : LabelCurve
        What is known of the labels of each component.
    hamming : DistanceMap
        The distances around the match.
    """

    x: int
    y: int
    cell: tuple[int, int]
    scale: int
    bits: int
    u: LabelCurve
    v: LabelCurve
    hamming: DistanceMap

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and lists, ready for JSON."""
        return {name: _plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the last search at the matching scale knew about every pixel of the first image.

    `hamflow.Estimator.explained` returns it.

    Attributes
    ----------
    bits0, bits1 : (H, W) or (H, W, 2) array of uint64
        Descriptors of both images at the matching scale, of one word or two.
    window : Window
        The displacements that were searched, in pixels of the matching scale.
    scale : int
        By what factor the images were reduced for matching.
    u, v : (H, W) array of int16
        The labels that the matcher chose: label k of u is the displacement k + window.u0.
    outside : float
        Hamming distance, in bits, that a target outside of the image counts as.
    slack_u, slack_v : (H, W, D) array of int16 or float32, or None
        The slacks of the joint model; None if the matcher was another one.
    slack_unit : float
        Bits in one unit of the slacks.
    prior : Prior, or None
        What was expected from a coarser scale, or from the pair before.
    """

    bits0: Bits
    bits1: Bits
    window: Window
    scale: int
    u: Labels
    v: Labels
    outside: float
    slack_u: Volume | None = None
    slack_v: Volume | None = None
    slack_unit: float = 1.0
    prior: Prior | None = None

    def pixel(
        self, x: int, y: int, *, around: tuple[float, float] | None = None, radius: int = 8
    ) -> PixelExplanation:
        """Explain one pixel of the first image.

        Parameters
        ----------
        x, y : int
            The pixel, in the full image.
        around : (float, float), optional
            Displacement (u, v), in pixels of the full images, around which the distances are
            returned: by default the one that the matcher chose.
        radius : int
            How many labels around it to each side.
        """
        height, width = self.u.shape
        column, row = x // self.scale, y // self.scale
        if not (0 <= column < width and 0 <= row < height):
            raise InputError(
                f"The pixel ({x}, {y}) is outside of the image, which has about "
                f"{width * self.scale}×{height * self.scale} pixels."
            )
        window = self.window
        costs = self.distances(column, row, window)
        cost_u, cost_v = costs.min(axis=0), costs.min(axis=1)
        # As `hamflow.matching.MinProjection.wta`: v first, then u in the row of that v.
        wta_v = _best(cost_v, window.v0)
        wta_u = _best(costs[wta_v], window.u0)
        chosen = int(self.u[row, column]), int(self.v[row, column])
        u, v = chosen[0] + window.u0, chosen[1] + window.v0
        if around is not None:
            u, v = (round(displacement / self.scale) for displacement in around)
        center = min(max(u, -_FARTHEST), _FARTHEST), min(max(v, -_FARTHEST), _FARTHEST)
        near = Window(center[0] - radius, 2 * radius + 1, center[1] - radius, 2 * radius + 1)
        prior_u, prior_v = self._prior(column, row)
        return PixelExplanation(
            x=x,
            y=y,
            cell=(column, row),
            scale=self.scale,
            bits=64 * words_of(self.bits0),
            u=LabelCurve(
                self._labels(window.u0, window.du),
                cost_u,
                self._slack(self.slack_u, column, row),
                prior_u,
                wta_u,
                None if self.slack_u is None else chosen[0],
            ),
            v=LabelCurve(
                self._labels(window.v0, window.dv),
                cost_v,
                self._slack(self.slack_v, column, row),
                prior_v,
                wta_v,
                None if self.slack_v is None else chosen[1],
            ),
            hamming=DistanceMap(
                self._labels(near.u0, near.du),
                self._labels(near.v0, near.dv),
                self.distances(column, row, near),
                (center[0] * self.scale, center[1] * self.scale),
            ),
        )

    def distances(self, column: int, row: int, window: Window) -> Field:
        """Return the Hamming distances of a pixel to all targets of a window, in bits.

        Parameters
        ----------
        column, row : int
            The pixel, at the matching scale.
        window : Window
            Displacements at the matching scale.

        Returns
        -------
        (dv, du) array of float32
            `outside` for targets that are not in the image.
        """
        height, width = self.u.shape
        found = np.full((window.dv, window.du), self.outside, np.float32)
        left, top = column + window.u0, row + window.v0
        x0, x1 = max(left, 0), min(left + window.du, width)
        y0, y1 = max(top, 0), min(top + window.dv, height)
        if x0 < x1 and y0 < y1:
            different = self.bits1[y0:y1, x0:x1] ^ self.bits0[row, column]
            octets = np.ascontiguousarray(different)[..., None].view(np.uint8)
            counts = _SET_BITS[octets.reshape(y1 - y0, x1 - x0, -1)].sum(axis=2)
            found[y0 - top : y1 - top, x0 - left : x1 - left] = counts
        return found

    def _labels(self, first: int, count: int) -> NDArray[np.int64]:
        return self.scale * np.arange(first, first + count, dtype=np.int64)

    def _slack(self, slack: Volume | None, column: int, row: int) -> NDArray[np.float32] | None:
        if slack is None:
            return None
        bits: NDArray[np.float32] = slack[row, column].astype(np.float32)
        return bits * np.float32(self.slack_unit)

    def _prior(
        self, column: int, row: int
    ) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None]:
        if self.prior is None:
            return None, None
        here = slice(row, row + 1), slice(column, column + 1)
        prior = self.prior
        one = Prior(prior.flow[here], prior.weight[here], prior.slope, prior.free)
        bits = np.float32(BITS_PER_COST)
        u, v = (costs[0, 0].astype(np.float32) * bits for costs in one.unary(self.window))
        return u, v


def _best(costs: NDArray[np.float32], first: int) -> int:
    """Return the label of least cost; ties go to the smallest displacement, then the negative."""
    displacements = np.arange(first, first + len(costs))
    return int(np.lexsort((displacements, abs(displacements), costs))[0])


def _plain(value: object) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, LabelCurve | DistanceMap):
        return {name: _plain(item) for name, item in vars(value).items()}
    return list(value) if isinstance(value, tuple) else value
