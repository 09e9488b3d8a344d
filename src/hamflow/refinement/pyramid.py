"""From the matching scale to the full size: upsampling, and refinement at each size on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._scale import upsample_linear, upsample_nearest
from hamflow._types import Field, Flow, FrameLike, Mask
from hamflow.stages import Opposite

# Pixels of the matching scale by which an expected flow may differ from the matches.
_AGREE = 1.0

RefineAt = Callable[[int, Flow, Field, bool], Flow]
"""Given a scale, the flow there, the weight of the data term, and whether it is nearly right."""


@dataclass(frozen=True)
class Upsampling:
    """The refinement that only brings the flow to the full size.

    Parameters
    ----------
    smooth : bool
        Interpolate linearly between the pixels of the matching scale; otherwise every pixel of a
        box has the flow of the box, as labels of the joint model should not be mixed.
    """

    smooth: bool = True
    method: ClassVar[str] = "upsampling"

    def __call__(
        self,
        frames: tuple[FrameLike, FrameLike],
        flow: Flow,
        trusted: Mask,
        scale: int,
        opposite: Opposite | None = None,
    ) -> Flow:
        """Return the flow at full size."""
        enlarge = upsample_linear if self.smooth else upsample_nearest
        return enlarge(flow, scale, frames[0].shape) * np.float32(scale)


def coarse_to_fine(
    frame: FrameLike,
    flow: Flow,
    trusted: Mask,
    scale: int,
    refine_at: RefineAt,
    opposite: Opposite | None = None,
) -> Flow:
    """Double the size until it is full, and refine at each size.

    If the opposite flow is known, only the full size is refined, and less: the flow starts from
    its negative wherever that agrees with the matches.

    Parameters
    ----------
    frame : FrameLike
        The first image, which has the size of the flow at every scale.
    flow : (H, W, 2) array of float32
        At the matching scale, in pixels of that scale.
    trusted : (H, W) array of bool
        Where the matches passed the forward-backward check; elsewhere the weight is 0.
    scale : int
        The matching scale, a power of two. At 1 the flow is refined once.
    refine_at : callable
        Refines at one scale.
    opposite : Opposite, optional
        A finished flow the other way.

    Returns
    -------
    (H, W, 2) array of float32
        At full size.
    """
    weights, finest = trusted.astype(np.float32), scale
    while True:
        finer = 1 if opposite else max(1, scale // 2)
        size = frame.at(finer).shape[:2]
        step = scale // finer
        flow = upsample_linear(flow, step, size) * np.float32(step)
        if opposite:
            tolerance = _AGREE * step
            _native.adopt_expected(opposite.flow, opposite.there, tolerance, flow)
        weight = upsample_nearest(weights, finest // finer, size)
        flow = refine_at(finer, flow, weight, opposite is not None)
        scale = finer
        if scale == 1:
            return flow
