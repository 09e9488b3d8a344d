"""How good a flow is."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hamflow.evaluation.metrics import FlowMetrics, PooledMetrics, epe_metrics, pool
from hamflow.evaluation.peers import opencv_methods
from hamflow.evaluation.sparsification import Sparsification, sparsification

if TYPE_CHECKING:
    from hamflow.evaluation.bootstrap import PairedDifference, paired_bootstrap
    from hamflow.evaluation.comparison import Comparison, compare, read_evaluation
    from hamflow.evaluation.methods import Estimate, Method, MethodConfig, method_names
    from hamflow.evaluation.records import Evaluation, PairRecord
    from hamflow.evaluation.runner import evaluate
    from hamflow.evaluation.submission import (
        Submission,
        Verification,
        submit,
        verify_submission,
    )

# These need the estimator, while parts of that need the metrics: imported on first use.
_HOMES = {
    "Comparison": "comparison",
    "Estimate": "methods",
    "Evaluation": "records",
    "Method": "methods",
    "MethodConfig": "methods",
    "PairRecord": "records",
    "PairedDifference": "bootstrap",
    "Submission": "submission",
    "Verification": "submission",
    "compare": "comparison",
    "evaluate": "runner",
    "method_names": "methods",
    "paired_bootstrap": "bootstrap",
    "read_evaluation": "comparison",
    "submit": "submission",
    "verify_submission": "submission",
}

__all__ = [
    "Comparison",
    "Estimate",
    "Evaluation",
    "FlowMetrics",
    "Method",
    "MethodConfig",
    "PairRecord",
    "PairedDifference",
    "PooledMetrics",
    "Sparsification",
    "Submission",
    "Verification",
    "compare",
    "epe_metrics",
    "evaluate",
    "method_names",
    "opencv_methods",
    "paired_bootstrap",
    "pool",
    "read_evaluation",
    "sparsification",
    "submit",
    "verify_submission",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hamflow.evaluation' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hamflow.evaluation.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
