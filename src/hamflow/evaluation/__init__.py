"""How good a flow is."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hamflow.evaluation.metrics import FlowMetrics, PooledMetrics, epe_metrics, pool
from hamflow.evaluation.peers import opencv_methods
from hamflow.evaluation.sparsification import Sparsification, sparsification

if TYPE_CHECKING:
    from hamflow.evaluation.methods import Estimate, Method, MethodConfig, method_names
    from hamflow.evaluation.records import Evaluation, PairRecord
    from hamflow.evaluation.runner import evaluate

# These need the estimator, while parts of that need the metrics: imported on first use.
_HOMES = {
    "Estimate": "methods",
    "Evaluation": "records",
    "Method": "methods",
    "MethodConfig": "methods",
    "PairRecord": "records",
    "evaluate": "runner",
    "method_names": "methods",
}

__all__ = [
    "Estimate",
    "Evaluation",
    "FlowMetrics",
    "Method",
    "MethodConfig",
    "PairRecord",
    "PooledMetrics",
    "Sparsification",
    "epe_metrics",
    "evaluate",
    "method_names",
    "opencv_methods",
    "pool",
    "sparsification",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hamflow.evaluation' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hamflow.evaluation.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
