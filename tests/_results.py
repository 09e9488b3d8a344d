"""Results made by hand."""

from __future__ import annotations

import numpy as np

from hamflow import FlowResult, Window
from hamflow._types import Flow, Mask


def flow_result(
    flow: Flow, backward: Flow | None = None, occlusion: Mask | None = None
) -> FlowResult:
    """A result of which the flow is known, with full confidence."""
    sure = np.ones(flow.shape[:2], np.float32)
    nothing = {"energy": None, "bound": None, "gap": None}
    return FlowResult(flow, backward, occlusion, sure, **nothing, window=Window.of(8), scale=1)
