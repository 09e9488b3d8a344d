"""Completion: piecewise affine interpolation of matches that stops at image edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._check import check_range
from hamflow._types import Field, Flow, Image, Mask
from hamflow.errors import InputError
from hamflow.refinement._edges import image_edges
from hamflow.stages import MatchEvidence

if TYPE_CHECKING:
    from typing_extensions import Self

_LARGEST_CELL = 64
# Pixels by which the opposite of the other direction may differ from a match: one more than the
# forward-backward check allows would be another motion.
_AGREE = 1.5


@dataclass(frozen=True)
class AffineCompletion:
    """The piecewise affine completion and its parameters; see :func:`complete`.

    Parameters
    ----------
    cell : int
        One match is taken from each cell of this many by this many pixels.
    smallest : int
        Connected regions of trusted matches with fewer pixels are not trusted after all.
    neighbors : int
        How many of the nearest matches an affine model is fitted to.
    step : float
        Length of a step between two neighboring pixels of the same color. A step to another color
        is longer by the sum of the differences of the channels, which range from 0 to 1.
    reach : float
        Length of a path at which a match has 1/e of the weight of one that is close.
    tolerance : float
        Residuals above this number of pixels are outliers.
    rounds : int
        How often neighbors offer each other their models.
    blur : float
        Standard deviation, in pixels, of the smoothing before image edges are detected.
    """

    cell: int = 3
    smallest: int = 60
    neighbors: int = 100
    step: float = 0.004
    reach: float = 0.5
    tolerance: float = 1.25
    rounds: int = 10
    blur: float = 1.0
    method: ClassVar[str] = "affine"
    concurrent: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, least, most in (
            ("cell", 1, _LARGEST_CELL),
            ("smallest", 0, 2**30),
            ("neighbors", 1, 10000),
            ("rounds", 0, 1000),
        ):
            check_range(self, name, least, most, whole=True)
        for name in ("step", "reach", "tolerance"):
            check_range(self, name, 1e-6, 1e6)
        check_range(self, "blur", 0, 20)

    def __call__(self, matches: MatchEvidence) -> tuple[Flow, Field]:
        """Return the completed flow, and the distance of each pixel to the nearest match."""
        return complete(matches.image, matches.flow, matches.trusted, self)

    def beside_opposite(self) -> Self:
        """Return the completion for what `with_opposite` leaves to it: larger cells will do."""
        return replace(self, cell=min(2 * self.cell, _LARGEST_CELL))


@dataclass(frozen=True)
class NoCompletion:
    """The completion that leaves the flow as it was matched."""

    method: ClassVar[str] = "none"

    def __call__(self, matches: MatchEvidence) -> tuple[Flow, Field]:
        """Return the flow, and 0 for every distance."""
        return matches.flow, np.zeros(matches.trusted.shape, np.float32)


def complete(
    image: Image, flow: Flow, trusted: Mask, config: AffineCompletion | None = None
) -> tuple[Flow, Field]:
    """Continue trusted matches over the whole image by piecewise affine motion.

    Every pixel takes the affine motion of the match that is nearest to it along paths that avoid
    image edges. The motion of a match is fitted robustly to the matches that are nearest to it in
    the same sense. Neighboring matches then exchange their motions where that of the other fits
    better, as in EpicFlow [1]_ and RIC [2]_.

    Parameters
    ----------
    image : (H, W, C) array of float32
        The first image, from 0 to 1.
    flow : (H, W, 2) array of float32
        Flow, in whole pixels or not; NaN where it is unknown.
    trusted : (H, W) array of bool
        Where the flow can be relied on. If that is nowhere, all known flow is used.
    config : AffineCompletion, optional
        Parameters.

    Returns
    -------
    completed : (H, W, 2) array of float32
    distance : (H, W) array of float32
        Length of the path to the nearest match.

    References
    ----------
    .. [1] J. Revaud, P. Weinzaepfel, Z. Harchaoui, C. Schmid: EpicFlow: Edge-preserving
       interpolation of correspondences for optical flow. CVPR 2015.
    .. [2] Y. Hu, Y. Li, R. Song: Robust interpolation of correspondences for large displacement
       optical flow. CVPR 2017.
    """
    filled = interpolated(image, flow, trusted, config or AffineCompletion())
    return filled.flow, filled.distance


def with_opposite(matches: MatchEvidence, filled: Flow, opposite: Flow) -> Flow:
    """Return a completed flow that is the opposite of the other direction wherever both agree.

    Parameters
    ----------
    matches : MatchEvidence
        What was completed.
    filled : (H, W, 2) array of float32
        The completed flow: where there is no trusted match, or another motion.
    opposite : (H, W, 2) array of float32
        The completed flow of the other direction.

    Returns
    -------
    (H, W, 2) array of float32
    """
    start = np.where(matches.trusted[..., None], matches.flow, filled)
    adopted = start.copy()
    _native.adopt_opposite(np.ascontiguousarray(opposite), _AGREE, adopted)
    alone = matches.trusted & (adopted == start).all(axis=2)
    adopted[alone] = filled[alone]
    return adopted


class Seeds(NamedTuple):
    """The matches that the interpolation starts from."""

    pixel: NDArray[np.int32]  # y * width + x, where the seed is
    place: NDArray[np.float32]  # (N, 2): x, y, where the flow was measured
    flow: NDArray[np.float32]  # (N, 2)
    trust: NDArray[np.float32]  # share of the pixels around that agree


class Interpolated(NamedTuple):
    """A flow interpolated between matches, and what it was made of."""

    flow: Flow
    distance: Field
    kept: Mask  # the trusted pixels without small regions
    seeds: Seeds
    models: NDArray[np.float32]  # (N, 6): affine motion of each seed, relative to the origin
    steps: tuple[Field, Field]  # lengths of the steps to the right and lower neighbor
    edges: tuple[Field, Field]  # contrasts to them


def interpolated(image: Image, flow: Flow, trusted: Mask, config: AffineCompletion) -> Interpolated:
    """Return what `complete` does, with all that it was made of."""
    height, width = image.shape[:2]
    if flow.shape != (height, width, 2) or trusted.shape != (height, width):
        raise InputError(
            "image, flow and trusted must have one height and width, but have the shapes "
            f"{image.shape}, {flow.shape} and {trusted.shape}."
        )
    if not np.isfinite(image).all():
        raise InputError("image must be finite.")
    known = known_flow(flow)
    if not known.any():
        raise InputError("flow is unknown everywhere; there is nothing to complete it from.")
    kept = _trusted(trusted & known, known, config.smallest)
    seeds = _seeds(flow, kept, config.cell)
    edges = image_edges(image, config.blur)
    # Sums over channels, as if there were always three of them.
    right, down = (np.float32(config.step) + 3 * c for c in edges)
    filled = np.empty((height, width, 2), np.float32)
    distance = np.empty((height, width), np.float32)
    models = np.empty((len(seeds.pixel), 6), np.float32)
    _native.interpolate(
        right,
        down,
        seeds.pixel,
        seeds.place,
        seeds.flow,
        seeds.trust,
        (config.neighbors, config.reach, config.tolerance, config.rounds),
        filled,
        distance,
        models,
    )
    return Interpolated(filled, distance, kept, seeds, models, (right, down), edges)


def known_flow(flow: Flow) -> Mask:
    """Return where both components are finite."""
    known: Mask = np.isfinite(flow[..., 0]) & np.isfinite(flow[..., 1])
    return known


def _trusted(mask: Mask, known: Mask, smallest: int) -> Mask:
    kept = np.array(mask, np.uint8, order="C")
    _native.drop_small(kept, smallest)
    for candidate in (kept.astype(np.bool_), mask):
        if candidate.any():
            return candidate
    return known


def _seeds(flow: Flow, trusted: Mask, cell: int) -> Seeds:
    """Take from each cell the trusted pixel next to its center, averaged with those like it."""
    height, width = trusted.shape
    cells = -(-height // cell) * -(-width // cell)
    pixel = np.empty(cells, np.int32)
    place, match = np.empty((2, cells, 2), np.float32)
    trust = np.empty(cells, np.float32)
    count = _native.choose_seeds(
        np.ascontiguousarray(flow, np.float32),
        trusted.astype(np.uint8),
        cell,
        pixel,
        place,
        match,
        trust,
    )
    return Seeds(pixel[:count], place[:count], match[:count], trust[:count])
