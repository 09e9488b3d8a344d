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

# Pixels of the matching scale by which the other direction may differ from the matches.
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
        opposite: Flow | None = None,
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
    *,
    opposite: Flow | None = None,
    finest: int = 1,
    twice: bool = False,
) -> Flow:
    """Double the size until it is full, and refine at each size.

    If the opposite flow is known, one scale is refined, and less: the flow starts from its
    negative wherever that agrees with the matches.

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
    opposite : (H, W, 2) array of float32, optional
        The finished flow of the other direction, at full size.
    finest : int
        The finest scale that is refined; from there the flow is only enlarged.
    twice : bool
        Refine at half of the finest size in any case: also if that is the matching scale, and
        instead of the finest scale if the opposite flow is known. Then the result is the mean of
        the enlarged flow and, where they agree, the negative of the opposite one.

    Returns
    -------
    (H, W, 2) array of float32
        At full size.
    """
    weights, finest = trusted.astype(np.float32), min(finest, scale)
    half = min(2 * finest, scale) if twice else finest
    if opposite is not None:
        scales = [half]
    else:
        scales = [scale >> k for k in range(scale.bit_length()) if scale >> k >= finest]
        scales = scales if scale in (half, finest) else scales[1:]
    at = scale
    for finer in scales:
        flow = _enlarged(flow, at, frame, finer)
        if opposite is not None:
            _adopt(opposite, finer, scale, flow)
        weight = upsample_nearest(weights, scale // finer, flow.shape[:2])
        flow, at = refine_at(finer, flow, weight, opposite is not None), finer
    if at > finest and opposite is not None:
        flow, at = _enlarged(flow, at, frame, finest), finest
        detailed = flow.copy()
        _adopt(opposite, finest, scale, detailed)
        flow += detailed  # the mean of both flickers less than the details alone
        flow *= np.float32(0.5)
    return flow if at == 1 else _enlarged(flow, at, frame, 1)


def _adopt(opposite: Flow, finer: int, scale: int, flow: Flow) -> None:
    """Take the negative of the opposite flow wherever it agrees with matches of a scale."""
    if finer > 1:
        opposite = np.ascontiguousarray(opposite[::finer, ::finer]) / np.float32(finer)
    _native.adopt_opposite(opposite, _AGREE * scale / finer, flow)


def _enlarged(flow: Flow, scale: int, frame: FrameLike, finer: int) -> Flow:
    """Return a flow at a finer scale, in pixels of that scale."""
    step = scale // finer
    larger: Flow = upsample_linear(flow, step, frame.at(finer).shape[:2])
    larger *= np.float32(step)
    return larger
