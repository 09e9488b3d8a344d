"""How good a flow is."""

from __future__ import annotations

from hamflow.evaluation.metrics import FlowMetrics, PooledMetrics, epe_metrics, pool
from hamflow.evaluation.peers import opencv_methods
from hamflow.evaluation.sparsification import Sparsification, sparsification

__all__ = [
    "FlowMetrics",
    "PooledMetrics",
    "Sparsification",
    "epe_metrics",
    "opencv_methods",
    "pool",
    "sparsification",
]
