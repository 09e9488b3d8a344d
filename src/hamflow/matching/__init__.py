"""Matching: the min-projection of the 4D cost (eq. 4) and the messages of the CRF (eqs. 8 and 9).

Equations, tables and figures are those of the paper; docs/paper.md maps each to its place.
"""

from hamflow.matching.local import local_flow
from hamflow.matching.messages import HammingCost, float_message, message
from hamflow.matching.projection import (
    FloatMinProjection,
    MinProjection,
    float_min_projection,
    hybrid_min_projection,
    min_projection,
)

__all__ = [
    "FloatMinProjection",
    "HammingCost",
    "MinProjection",
    "float_message",
    "float_min_projection",
    "hybrid_min_projection",
    "local_flow",
    "message",
    "min_projection",
]
