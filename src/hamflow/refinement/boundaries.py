"""Motion boundaries of a flow, and on which side of them a pixel is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._check import check_range
from hamflow._room import empty
from hamflow._types import Field, Flow, Image


@dataclass(frozen=True)
class MotionChoice:
    """How pixels beside a motion boundary choose a motion; see :func:`choose`.

    Parameters
    ----------
    jump : float
        Difference between the flows of neighbors, in pixels, that makes a boundary.
    reach : int
        How far from a boundary, in pixels, there is a choice.
    radius : int
        Of the neighborhood whose motions are candidates.
    nearness : float
        Standard deviation, in pixels, of the weights of neighbors.
    color : float
        How fast these weights fall with the contrast, as `kappa` of the refinement.
    difference : float
        Contrast, of a range of 0..1, that counts as different altogether.
    outside : float
        Cost of a motion that leaves the image; 1 is that of another color.
    smoothness : float
        Weight of the agreement with neighbors, relative to that of the colors.
    apart : float
        Difference, in pixels, of motions that do not agree at all.
    distrust : float
        Weight of neighbors without a trusted match.
    rounds : int
        How often pixels choose.
    margin : float
        By how much another motion has to be better.
    untrusted_margin : float
        The same for pixels without a trusted match: they may be occluded, and then colors mislead.
    """

    jump: float = 1.0
    reach: int = 5
    radius: int = 7
    nearness: float = 4.0
    color: float = 33.0
    difference: float = 0.067
    outside: float = 0.7
    smoothness: float = 1.0
    apart: float = 2.0
    distrust: float = 0.3
    rounds: int = 2
    margin: float = 0.05
    untrusted_margin: float = 0.15

    def __post_init__(self) -> None:
        for name, least, most in (("reach", 0, 1000), ("radius", 1, 100), ("rounds", 0, 100)):
            check_range(self, name, least, most, whole=True)
        for name in ("jump", "color", "outside", "smoothness", "distrust"):
            check_range(self, name, 0, 1e6)
        for name in ("nearness", "difference", "apart"):
            check_range(self, name, 1e-6, 1e6)
        for name in ("margin", "untrusted_margin"):
            check_range(self, name, 0, 1e6)


def choose(
    guide: Image,
    features0: Image,
    features1: Image,
    flow: Flow,
    weight: Field,
    *,
    choice: MotionChoice | None = None,
) -> Flow:
    """Let pixels beside motion boundaries take the motion of a neighbor.

    A motion is good if it leads to similar colors and if neighbors of similar color have it. So
    boundaries move to where the full-size images have them, and structures that are thinner than
    a pixel of the matching scale get their motion back. The result has the same bytes for any
    number of threads.

    Parameters
    ----------
    guide : (H, W, 3) array of float32
        The first image.
    features0, features1 : (H, W, 8) array of float32
        As for `hamflow.refinement.refine`; the colors are compared.
    flow : (H, W, 2) array of float32
        To choose from.
    weight : (H, W) array of float32
        0 where a pixel has no trusted match.
    choice : MotionChoice, optional
        Parameters.

    Returns
    -------
    (H, W, 2) array of float32
    """
    choice = choice or MotionChoice()
    guide = np.ascontiguousarray(guide, np.float32)
    weight = np.ascontiguousarray(weight, np.float32)
    chosen = empty(flow.shape, np.float32)
    chosen[:] = flow
    _native.choose_motions(
        guide,
        features0,
        features1,
        weight,
        (choice.jump, choice.reach, choice.rounds),
        (choice.radius, choice.color, choice.nearness),
        (choice.difference, choice.outside),
        (choice.smoothness, choice.apart, choice.distrust),
        (choice.margin, choice.untrusted_margin),
        chosen,
    )
    return chosen
