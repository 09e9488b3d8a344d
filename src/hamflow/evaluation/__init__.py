"""How good a flow is."""

from __future__ import annotations

from hamflow.evaluation.metrics import FlowMetrics, PooledMetrics, epe_metrics, pool

__all__ = ["FlowMetrics", "PooledMetrics", "epe_metrics", "pool"]
