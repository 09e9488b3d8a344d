"""How much memory each stage takes, as measured by ``python -m experiments.scripts.sizes``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hamflow.config import EstimatorConfig
from hamflow.pipeline.frame import DESCRIBED
from hamflow.pipeline.scales import full_window, plan_scales, reduced_shape
from hamflow.window import Window

KEPT = 128 << 20
"""Bytes that the native code keeps for reuse, at most (native/pages.cpp)."""
IN_MEMORY = 2**27
"""Bytes of a field on the way to a file that is in memory, at most."""
# All others are bytes, too. The interpreter with its libraries.
_BASE = 50_000_000
# Of a label of one component of a pixel: the joint model, its prior besides, the local model.
_JOINT, _PRIOR, _LOCAL = 7.0, 2.0, 1.3
# Of a pixel of the matching scale: what stays of the matches, and what a completion takes besides.
_MATCHED, _COMPLETED = 200, 250
# Of a pixel that is described at the matching scale, or for cells at the coarsest one.
_DESCRIBED, _CELLS = 20, 80
# Of a pixel of the images: two images of 8 bits, and in floating point.
_GIVEN, _FLOATS = 6, 24
# Of a pixel of the images: a flow; occlusion and confidence.
_FLOW, _ASSESSED = 8, 5
# Of a pixel of a tile: assessed, and kept for reuse from the tiles of all scales.
_ASSESSING, _REUSED = 130, 300
# Of a pixel of a flow at half the size, with those at smaller ones; of one whose files are mapped.
_ON_THE_WAY, _MAPPED = 2.5, 12
# Of a pixel that is only brought to the full size.
_ENLARGED = 12
# Pixels of the smallest part that is matched at a time, without its window, and completed.
_SMALLEST_MATCHED, _SMALLEST_COMPLETED = 128, 320**2
# Without a window, one of this share of the width and of the height is assumed.
_USUAL = 1 / 8


@dataclass(frozen=True)
class _Refining:
    """Bytes of a pixel that is refined: whole images, tiles, and what is kept for reuse."""

    whole: float
    tile: float
    reused: float


# With one update of the robust weights per warp, and with several; without a refinement.
_ONCE, _SEVERAL = _Refining(190, 165, 140), _Refining(238, 215, 150)
_NOT_REFINED = _Refining(_ENLARGED, _FLOATS + _ENLARGED, 0)


@dataclass(frozen=True)
class Needs:
    """What a run takes, in bytes.

    Attributes
    ----------
    fixed : float
        From the beginning to the end, beside images and result.
    images : float
        The two images as they are given.
    result, assessed : float
        The flow in all directions; occlusion and confidence.
    describing : float
        Descriptors.
    labels, label : float
        How many labels of both components all pixels have, and the bytes of each.
    least_labels : float
        How many are matched at once at least.
    completing, least_completing : float
        The completion of the whole, and of the smallest part.
    completed : float
        Of each pixel that is completed.
    refining, reused : float
        Refinement and assessment of whole images, and what they keep for reuse.
    tile, tile_reused : float
        The same for each pixel of a tile that is refined.
    assessed_tile : float
        For each pixel of a tile that is assessed.
    """

    fixed: float
    images: float
    result: float
    assessed: float
    describing: float
    labels: float
    label: float
    least_labels: float
    completing: float
    least_completing: float
    completed: float
    refining: float
    reused: float
    tile: float
    tile_reused: float
    assessed_tile: float

    @property
    def matching(self) -> float:
        """Bytes of the matcher if it gets the whole."""
        return self.labels * self.label


def needs(
    shape: tuple[int, int], config: EstimatorConfig, window: Window | None, *, files: bool
) -> Needs:
    """Return what a run takes.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the images.
    config : EstimatorConfig
        What the estimator does.
    window : Window, optional
        The displacements that are searched, if they are given.
    files : bool
        Whether images and result are in files, and the flow alone is wanted.
    """
    scales = plan_scales(shape, config)
    scale, pixels = scales[-1], math.prod(shape)
    matched = math.prod(reduced_shape(shape, scale))
    labels, least_labels = _labels(shape, config, window, scales)
    label = _LOCAL if config.matcher.method == "local" else _JOINT
    describing = _DESCRIBED * min(matched, DESCRIBED)
    if window is None and len(scales) > 1 and config.prior and scale > 1:
        label += _PRIOR
    if window is None and config.coarse_model:
        describing += _CELLS * math.prod(reduced_shape(shape, max(1, scales[0] // 4)))
    completed = 0 if config.completion.method == "none" else _COMPLETED
    refining, finest = _NOT_REFINED, min(getattr(config.refinement, "finest", 1), scale)
    if hasattr(config.refinement, "finest"):
        refining = _ONCE if getattr(config.refinement, "inner", 1) == 1 else _SEVERAL
    enlarged = _ENLARGED if finest > 1 else 0
    # With both directions in memory, the backward flow is not there yet when this is.
    on_the_way = min(pixels * _ON_THE_WAY, 1.25 * IN_MEMORY) if files else 0
    return Needs(
        fixed=_BASE + matched * _MATCHED + on_the_way,
        images=0 if files else pixels * _GIVEN,
        result=0 if files else pixels * _FLOW * (2 if config.bidirectional else 1),
        assessed=pixels * _ASSESSED if config.bidirectional and not files else 0,
        describing=describing,
        labels=labels,
        label=label,
        least_labels=min(labels, least_labels),
        completing=matched * completed,
        least_completing=min(matched, _SMALLEST_COMPLETED) * completed,
        completed=max(completed, 1),
        refining=pixels * (_FLOATS + refining.whole / finest**2 + enlarged),
        reused=pixels * (refining.reused / finest**2 + enlarged),
        tile=refining.tile + (_MAPPED if files else 0),
        tile_reused=_REUSED if refining.reused else 0,
        assessed_tile=_ASSESSING if config.bidirectional and not files else 0,
    )


def _labels(
    shape: tuple[int, int], config: EstimatorConfig, window: Window | None, scales: list[int]
) -> tuple[float, float]:
    """Return how many labels all pixels have, and how many are matched at once at least."""
    height, width = reduced_shape(shape, scales[-1])
    if window is not None:
        inner = window.reduced(scales[-1])
        count = inner.du + inner.dv
        part = (inner.du + _SMALLEST_MATCHED) * (inner.dv + _SMALLEST_MATCHED)
        return float(height * width * count), float(part * count)
    # The search at the coarsest scale looks where motion is before it matches.
    first = reduced_shape(shape, scales[0])
    widest = full_window(first, config.memory)
    searched = math.prod(first) * (widest.du + widest.dv) / 2
    usual = _USUAL * (height + width) * height * width
    return max(searched, usual), max(searched, usual) / 4
