"""From matches in whole pixels to a flow one can use.

Matches that both directions agree on are kept (`consistent`), what is between them is filled with
piecewise affine motion that stops at image edges (`fill`), and a variational model takes all of it
to fractions of a pixel (`refine`). `occluded` and `confidence` say what the result is worth.
"""

from __future__ import annotations

from hamflow.refinement.confidence import confidence
from hamflow.refinement.consistency import consistent, disagreement, occluded
from hamflow.refinement.filling import FillConfig, fill
from hamflow.refinement.variational import VariationalConfig, features, refine

__all__ = [
    "FillConfig",
    "VariationalConfig",
    "confidence",
    "consistent",
    "disagreement",
    "features",
    "fill",
    "occluded",
    "refine",
]
