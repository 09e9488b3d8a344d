"""From matches in whole pixels to a flow one can use.

The stages behind the search, in the order of the data: the forward-backward `check`,
the completion of what failed it (`LabelingCompletion`), the subpixel refinement
(`GuardedRefinement`), and the assessment of the result (`assess`).
"""

from __future__ import annotations

from hamflow.refinement.boundaries import MotionChoice, choose
from hamflow.refinement.choice import ChoiceCompletion
from hamflow.refinement.completion import (
    AffineCompletion,
    NoCompletion,
    complete,
    with_opposite,
)
from hamflow.refinement.confidence import assess, assess_with, assessed_at
from hamflow.refinement.consistency import check, consistent, disagreement, occluded
from hamflow.refinement.evidence import surroundings
from hamflow.refinement.guarded import GuardedRefinement
from hamflow.refinement.labeling import LabelingCompletion, label_motions
from hamflow.refinement.pyramid import Upsampling, coarse_to_fine
from hamflow.refinement.temporal import NoTemporal, TrackFilter
from hamflow.refinement.variational import VariationalRefinement, features, refine

__all__ = [
    "AffineCompletion",
    "ChoiceCompletion",
    "GuardedRefinement",
    "LabelingCompletion",
    "MotionChoice",
    "NoCompletion",
    "NoTemporal",
    "TrackFilter",
    "Upsampling",
    "VariationalRefinement",
    "assess",
    "assess_with",
    "assessed_at",
    "check",
    "choose",
    "coarse_to_fine",
    "complete",
    "consistent",
    "disagreement",
    "features",
    "label_motions",
    "occluded",
    "refine",
    "surroundings",
    "with_opposite",
]
