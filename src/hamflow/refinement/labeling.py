"""Completion as labeling: candidate motions for what is not trusted, and a joint choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow import _native
from hamflow._check import check_range
from hamflow._room import empty
from hamflow._types import Field, Flow, Mask
from hamflow.errors import InputError
from hamflow.refinement._edges import texture
from hamflow.refinement._networks import network
from hamflow.refinement.completion import AffineCompletion, Interpolated, interpolated, known_flow
from hamflow.stages import MatchEvidence

FEATURES = 20
"""What is known of each candidate; native/scoring.cpp lists it."""
_ROUNDS_OF_DISTANCES = 2


@dataclass(frozen=True)
class LabelingCompletion(AffineCompletion):
    """The completion that chooses among candidate motions; see :func:`label_motions`.

    Parameters
    ----------
    planes : int
        How many homographies are sought, at most.
    tries : int
        How many starts each of them has.
    least : int
        How many matches a homography needs.
    plane_tolerance : float
        Residuals of matches that belong to a homography, in pixels.
    smoothness : float
        Weight of the differences between neighbors, against the scores of the candidates.
    contrast : float
        How fast that weight falls with the contrast of neighbors.
    cap : float
        Differences of flow count up to this number of pixels.
    sweeps : int
        Rounds of belief propagation.
    """

    planes: int = 7
    tries: int = 80
    least: int = 40
    plane_tolerance: float = 1.0
    smoothness: float = 0.5
    contrast: float = 25.0
    cap: float = 3.0
    sweeps: int = 2
    method: ClassVar[str] = "labeling"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least, most in (
            ("planes", 0, 255),
            ("tries", 0, 100000),
            ("least", 12, 2**30),
            ("sweeps", 0, 1000),
        ):
            check_range(self, name, least, most, whole=True)
        check_range(self, "plane_tolerance", 1e-6, 1e6)
        for name in ("smoothness", "contrast", "cap"):
            check_range(self, name, 0, 1e6)

    def __call__(self, matches: MatchEvidence) -> tuple[Flow, Field]:
        """Return the completed flow, and the distance of each pixel to the nearest match."""
        return label_motions(matches, self)


def label_motions(
    matches: MatchEvidence, config: LabelingCompletion | None = None
) -> tuple[Flow, Field]:
    """Give every pixel without a trusted match one of several candidate motions.

    The candidates are the piecewise affine flow of `hamflow.refinement.complete`, and homographies
    that many trusted matches agree on, which continue ground and walls beyond the frame. Each
    candidate has a score from a small network: do the bits at its target agree, does the other
    direction lead back, to elsewhere (the pixel may be hidden) or out of the image, how far are the
    matches that support it, and how many of those around agree. The choice minimizes the sum of the
    scores and of the differences between neighboring flows, which cost less at image edges.

    Parameters
    ----------
    matches : MatchEvidence
        The trusted matches of one direction, and what is known besides.
    config : LabelingCompletion, optional
        Parameters.

    Returns
    -------
    completed : (H, W, 2) array of float32
    distance : (H, W) array of float32
        Length of the path to the nearest match.
    """
    config = config or LabelingCompletion()
    filled = interpolated(matches.image, matches.flow, matches.trusted, config)
    check_shapes(matches)
    if filled.kept.all():
        return filled.flow, filled.distance
    return labeled(matches, filled, gather_candidates(filled, config), config), filled.distance


def labeled(
    matches: MatchEvidence, filled: Interpolated, candidates: Candidates, config: LabelingCompletion
) -> Flow:
    """Return the interpolated flow with the chosen candidates where no match is trusted."""
    pixel = np.flatnonzero(~filled.kept).astype(np.int32)
    motion = candidates.motion
    if len(motion) == 1:
        return filled.flow
    unary = empty((len(pixel), len(motion)), np.float32)
    score_candidates(matches, filled, candidates, pixel, score=unary)
    label = choose(pixel, unary, motion, filled, config)
    chosen = filled.flow.copy()
    chosen.reshape(-1, 2)[pixel] = motion.reshape(len(motion), -1, 2)[label[pixel], pixel]
    return chosen


def choose(
    pixel: NDArray[np.int32],
    unary: NDArray[np.float32],
    motion: NDArray[np.float32],
    filled: Interpolated,
    config: LabelingCompletion,
) -> NDArray[np.int32]:
    """Return the labels of all pixels, of which only those in question are set.

    The other pixels count by their first motion.
    """
    right, down = (
        np.float32(config.smoothness) * np.exp(np.float32(-config.contrast) * c).clip(0.05)
        for c in filled.edges
    )
    label = np.zeros(filled.kept.shape, np.int32)
    _native.choose_candidates(pixel, unary, motion, right, down, (config.cap, config.sweeps), label)
    return label.reshape(-1)


class Candidates(NamedTuple):
    """The motions among which each pixel chooses: the interpolated flow, then planes."""

    motion: NDArray[np.float32]  # (L, H, W, 2)
    geodesic: NDArray[np.float32]  # (L, H, W): length of the path to the nearest supporter
    size: NDArray[np.float32]  # (L,): logarithm of the share of matches that support it


def gather_candidates(
    filled: Interpolated, config: LabelingCompletion, before: int = 0, behind: int = 0
) -> Candidates:
    """Find the planes, and how far each pixel is from the matches that follow them.

    The arrays have room for others before and behind these candidates, which is not set.
    """
    height, width = filled.kept.shape
    planes = np.empty((config.planes, 9), np.float64)
    plane = np.empty(len(filled.seeds.pixel), np.int32)
    how = (config.tries, config.least, config.plane_tolerance)
    count = _native.find_planes(
        filled.seeds.place, filled.seeds.flow, filled.models, how, planes, plane
    )
    labels, first = before + 1 + count + behind, before + 1
    motion = empty((labels, height, width, 2), np.float32)
    motion[before] = filled.flow
    _native.plane_motions(planes[:count], motion[first : first + count])
    source = np.zeros((count, height * width), np.uint8)
    for k in range(count):
        source[k, filled.seeds.pixel[plane == k]] = 1
    geodesic = empty((labels, height, width), np.float32)
    geodesic[before] = filled.distance
    _native.geodesic_distances(
        *filled.steps,
        source.reshape(count, height, width),
        _ROUNDS_OF_DISTANCES,
        geodesic[first : first + count],
    )
    shares = np.array([1.0, *((plane == k).mean() for k in range(count))])
    size = np.zeros(labels, np.float32)
    size[before : first + count] = np.log(shares + 1e-4)
    return Candidates(motion, geodesic, size)


def score_candidates(
    matches: MatchEvidence,
    filled: Interpolated,
    candidates: Candidates,
    pixel: NDArray[np.int32],
    *,
    features: NDArray[np.float32] | None = None,
    score: NDArray[np.float32] | None = None,
) -> None:
    """Write features (L, `FEATURES` or more, N) and scores (N, L), the lower the better."""
    unmatched = np.zeros_like(filled.flow), np.zeros(filled.kept.shape, np.uint8)
    back = unmatched if matches.back is None else _plain(*matches.back)
    low, high = np.percentile(filled.flow[filled.kept], (1, 99), axis=0)
    known = known_flow(matches.flow)[..., None]
    _native.score_candidates(
        matches.bits,
        candidates.motion,
        _plain(np.where(known, matches.flow, filled.flow), filled.kept),
        back,
        candidates.geodesic,
        texture(filled.edges),
        candidates.size,
        (*low, *high),
        pixel,
        network("candidates"),
        features,
        score,
    )


def _plain(flow: Flow, mask: Mask) -> tuple[Flow, NDArray[np.uint8]]:
    """Return a flow that is finite, and its mask, as the kernel takes them."""
    known = known_flow(flow)
    plain = flow if known.all() else np.where(known[..., None], flow, 0)
    return np.ascontiguousarray(plain, np.float32), (mask & known).astype(np.uint8)


def check_shapes(matches: MatchEvidence) -> None:
    """Raise an InputError unless bits and the other direction have the size of the matches."""
    shape = matches.trusted.shape
    fields = [*matches.bits, *(() if matches.back is None else matches.back)]
    if any(field.shape[:2] != shape for field in fields):
        raise InputError(
            f"The bits and the other direction must have the shape {shape} of the matches."
        )
