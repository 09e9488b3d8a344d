"""How much memory each stage takes, as measured by ``python -m experiments.scripts.sizes``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hamflow._runtime import get_num_threads
from hamflow.config import EstimatorConfig
from hamflow.crf.streamed import PARTS, part_of
from hamflow.matching.projection import LABELS_AT_ONCE
from hamflow.pipeline.canvas import IN_MEMORY
from hamflow.pipeline.frame import DESCRIBED
from hamflow.pipeline.scales import full_window, plan_scales, reduced_shape, widest_labels
from hamflow.window import Window

KEPT = 128 << 20
"""Bytes that the native code keeps for reuse beside what is in use; more, if that much was in use
at one time (native/pages.cpp)."""
TILES_KEEP = KEPT + 35_000_000
"""Bytes that are kept between tiles, at most."""
# All others are bytes, too. The interpreter with its libraries.
_BASE = 50_000_000
# Of a label of one component of a pixel: the joint model, its prior besides, the local model.
_JOINT, _PRIOR, _LOCAL = 6.5, 2.0, 1.3
# Out of core: how many parts of volumes; of a label of a prior; of a pixel; of a label on the disk.
_PARTS, _STREAMED_PRIOR, _STREAMED, _ON_DISK = 4, 0.6, 60, 6
# Of a pixel of the matching scale: what stays of the matches, and what a completion takes besides,
# which depends on how many planes there are, and how many pixels have no match: usually, at most.
_MATCHED, _COMPLETED = 200, {"none": (0, 0), "choice": (800, 1100)}
_OTHERWISE_COMPLETED = 500, 660
_STAYS = 100  # what the choice at coarser scales leaves behind, besides what is kept for reuse
# Of a pixel that is described at the matching scale, or for cells at the coarsest one.
_DESCRIBED, _CELLS = 20, 80
# Of a pixel of the images: two images of 8 bits, and in floating point.
GIVEN, _FLOATS = 6, 24
# Of a pixel of the images: a flow; occlusion and confidence.
_FLOW, _ASSESSED = 8, 5
# Of a pixel of a tile: assessed, and kept for reuse from the tiles of all scales.
_ASSESSING, _REUSED = 130, 335
# Of a pixel of a tile whose files are mapped.
_MAPPED = 50
# Of a pixel that is only brought to the full size.
_ENLARGED = 12
# Without a window, one of this share of the width and of the height is assumed.
_USUAL = 1 / 8


@dataclass(frozen=True)
class _Refining:
    """Bytes of a pixel that is refined: whole images, tiles, and what is kept for reuse."""

    whole: float
    tile: float
    reused: float


# With one update of the robust weights per warp, and with several; without a refinement.
_ONCE, _SEVERAL = _Refining(190, 150, 140), _Refining(238, 215, 150)
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
    most_labels : float
        How many all pixels have if the estimator finds the widest window that it takes.
    searched : float
        What the search at the coarsest scale keeps for reuse.
    streamed, streamed_label, on_disk : float
        The matcher with its volumes in files: in memory without parts of volumes, in memory for
        each label, and on the disk for each label.
    completing, most_completing : float
        The completion, usually and at most.
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
    most_labels: float
    searched: float
    streamed: float
    streamed_label: float
    on_disk: float
    completing: float
    most_completing: float
    refining: float
    reused: float
    tile: float
    tile_reused: float
    assessed_tile: float

    @property
    def matching(self) -> float:
        """Bytes of the matcher if all is in memory."""
        return self.labels * self.label

    @property
    def worst(self) -> Needs:
        """The same with the completion at its most."""
        return replace(self, completing=self.most_completing)

    def streaming(self, labels: float) -> float:
        """Bytes of the matcher with so many labels, if its volumes are in files."""
        # Two bytes for each label of a volume of one component, which has half of the labels.
        parts = _PARTS * part_of(int(labels), *PARTS)
        return min(labels * self.label, parts + self.streamed + labels * self.streamed_label)


def needs(
    shape: tuple[int, int],
    config: EstimatorConfig,
    window: Window | None,
    *,
    expected: Window | None = None,
    from_files: bool = False,
    to_files: bool = False,
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
    expected : Window, optional
        What the estimator is expected to find if no window is given.
    from_files, to_files : bool
        Whether the images are in files of which parts are read; whether the result goes to files.
    """
    scales = plan_scales(shape, config, closer=window is None)
    scale, pixels = scales[-1], math.prod(shape)
    matched = math.prod(reduced_shape(shape, scale))
    labels, most_labels = _labels(shape, config, window, scales, expected)
    several = window is None and len(scales) > 1
    searched = _searched(shape, config, scales) * _JOINT if several else 0
    label, streamed, streamed_label, on_disk = _JOINT, matched * _STREAMED, 0.0, _ON_DISK
    if config.matcher.method == "local":  # strip by strip in any case
        labels, most_labels = (min(count, float(LABELS_AT_ONCE)) for count in (labels, most_labels))
        label, on_disk = _LOCAL, 0
    describing = _DESCRIBED * min(matched, DESCRIBED)
    if several and config.prior and scale > 1:
        label += _PRIOR
        streamed_label = _STREAMED_PRIOR
    if window is None and config.coarse_model:
        describing += _CELLS * math.prod(reduced_shape(shape, max(1, scales[0] // 4)))
    completed, most_completed = _COMPLETED.get(config.completion.method, _OTHERWISE_COMPLETED)
    refining, finest = _NOT_REFINED, min(getattr(config.refinement, "finest", 1), scale)
    if hasattr(config.refinement, "finest"):
        refining = _ONCE if getattr(config.refinement, "inner", 1) == 1 else _SEVERAL
    enlarged = _ENLARGED if finest > 1 else 0
    # With both directions in memory, the backward flow is not there yet when this is.
    on_the_way = 0.0
    if to_files:
        on_the_way = pixels * _FLOW / 4
        while on_the_way > IN_MEMORY:
            on_the_way /= 4
    mapped, two = _MAPPED if to_files else 0, config.bidirectional
    beside = 2 if two and get_num_threads() > 1 else 1  # directions that are completed at a time
    stays = _STAYS if config.completion.method == "choice" and window is None else 0
    return Needs(
        fixed=_BASE + matched * (_MATCHED + stays) + on_the_way,
        images=0 if from_files else pixels * GIVEN,
        result=0 if to_files else pixels * _FLOW * (2 if two else 1),
        assessed=pixels * _ASSESSED if two and not to_files else 0,
        describing=describing,
        labels=labels,
        label=label,
        most_labels=max(labels, most_labels),
        searched=beside * searched,
        streamed=streamed,
        streamed_label=streamed_label,
        on_disk=on_disk,
        completing=matched * completed,
        most_completing=matched * most_completed,
        refining=pixels * (_FLOATS + refining.whole / finest**2 + enlarged),
        reused=max(pixels * (refining.reused / finest**2 + enlarged), beside * matched * completed),
        tile=refining.tile + mapped,
        tile_reused=_REUSED if refining.reused else 0,
        assessed_tile=_ASSESSING + mapped if two else 0,
    )


def _labels(
    shape: tuple[int, int],
    config: EstimatorConfig,
    window: Window | None,
    scales: list[int],
    expected: Window | None,
) -> tuple[float, float]:
    """Return how many labels all pixels have, and at most."""
    height, width = reduced_shape(shape, scales[-1])
    if window is not None:
        inner = window.reduced(scales[-1])
        labels = float(height * width * (inner.du + inner.dv))
        return labels, labels
    count = _USUAL * (height + width)
    if expected is not None:
        inner = expected.reduced(scales[-1])
        count = float(inner.du + inner.dv)
    usual = max(_searched(shape, config, scales), count * height * width)
    return usual, widest_labels((height, width), config.memory)


def _searched(shape: tuple[int, int], config: EstimatorConfig, scales: list[int]) -> float:
    """Return how many labels the search at the coarsest scale has, which first looks for motion."""
    first = reduced_shape(shape, scales[0])
    widest = full_window(first, config.memory)
    return math.prod(first) * (widest.du + widest.dv) / 2
