"""Results made by hand."""

from __future__ import annotations

import numpy as np

from hamflow import FlowResult, Window
from hamflow._types import Field, Flow, Mask


def flow_result(
    flow: Flow,
    backward: Flow | None = None,
    occlusion: Mask | None = None,
    *,
    confidence: Field | None = None,
    cut: bool = False,
) -> FlowResult:
    """A result of which the flow is known, with full confidence unless another is given."""
    sure = np.ones(flow.shape[:2], np.float32) if confidence is None else confidence
    nothing = {"energy": None, "bound": None, "gap": None}
    window = Window.of(8)
    return FlowResult(flow, backward, occlusion, sure, **nothing, window=window, scale=1, cut=cut)
