"""The plan of the search: at which scales, and in which windows, one step after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hamflow._scale import upsample_linear
from hamflow._types import Flow, Labels
from hamflow.config import EstimatorConfig
from hamflow.pipeline.matches import DirectedMatches, Matches, enlarged_flow
from hamflow.pipeline.prediction import continued
from hamflow.prior import Prior
from hamflow.window import MAX_LABELS, Window

# Larger displacements (in pixels of the coarsest scale) are not searched.
_FARTHEST = 96
# Around what a coarser scale found, in pixels of the finer one.
_MARGIN = 4
_MARGIN_OF_PREVIOUS = 4
_SPARSE = 2  # Of so many rows and columns of the pair before, one tells the window
# The window of the pair before is good enough if at least this part of the share of pixels that a
# full search trusted is trusted again, and this share at least.
_KEPT = 0.9
_LEAST_TRUSTED = 0.2
# The window leaves out so many of a thousand pixels at either end; more if it is too large.
_LEFT_OUT = (3, 10, 30, 100)
# But not those of motions that at least so many decided matches have, within so many pixels.
_SMALLEST, _ALIKE = 10, 4
_SHORTEST = 24  # pixels that the shorter side of a coarser image has at least
_VOLUMES = 7  # of labels that the solver needs at a time, in int16
_PRIOR_VOLUMES = 3  # more of them for a prior
_OF_A_LABEL = 2 * (_VOLUMES + _PRIOR_VOLUMES)  # bytes


@dataclass(frozen=True, eq=False)
class SearchStep:
    """One search: a scale, and the window of each direction in pixels of that scale.

    Attributes
    ----------
    scale : int
        By what factor the images are reduced.
    windows : tuple of Window
        Forward, and backward if both directions are matched.
    initial_labels : tuple of (u, v), optional
        For each direction, labels that the matcher may start from.
    share : float
        How much of all work is done before it, for the progress.
    coarse : bool
        Whether to use the coarse descriptors, too.
    priors : tuple of Prior, optional
        For each direction, what the coarser scale found.
    closer : bool
        Whether what the coarser scale found stays where this one knows no better.
    """

    scale: int
    windows: tuple[Window, ...]
    initial_labels: tuple[tuple[Labels, Labels], ...] | None = None
    share: float = 0.1
    coarse: bool = False
    priors: tuple[Prior, ...] | None = None
    closer: bool = False

    @property
    def warm(self) -> bool:
        """Whether it starts from the pair before."""
        return self.initial_labels is not None


class SearchPlan:
    """Decides where to search next, by what the steps so far have found.

    If a window is given, there is one step, at the matching scale. Otherwise the coarsest scale is
    searched in a large window, and each scale decides the window of the next; the last one may be
    a closer look (`EstimatorConfig.closer_pixels`). In a video, the
    first step searches around the flow of the pair before, which is enough unless there was a cut
    or something fast came into the picture.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the frames.
    config : EstimatorConfig
        How many scales, how much memory.
    window : Window, optional
        The displacements to search, in pixels of the frames.
    previous : Matches, optional
        Those of the pair before in a video.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        config: EstimatorConfig,
        window: Window | None = None,
        previous: Matches | None = None,
    ) -> None:
        self._shape = shape
        self._config = config
        self._window = window
        scales = plan_scales(shape, config, closer=False)
        self._scales = scales if window is None else scales[-1:]
        if window is None and previous is None:
            self._scales = plan_scales(shape, config)
        self._closer = len(self._scales) > len(scales)
        usable = window is None and previous is not None and self._usable(previous)
        self._previous = previous if usable else None
        self._done = 0  # scales of the full search

    def next_step(self, found: Matches | None) -> SearchStep | None:
        """Return the next step; None if what the last step found is the result.

        Parameters
        ----------
        found : Matches or None
            What the last step found; None before the first one.
        """
        previous = self._previous
        if previous is not None and found is None:
            return self._warm_step(previous)
        if previous is not None and found is not None:
            if found.trusted_share >= max(_KEPT * previous.full_share, _LEAST_TRUSTED):
                return None
            found = self._previous = None  # search everywhere, as if there had been no pair before
        if self._done == len(self._scales):
            return None
        scale = self._scales[self._done]
        self._done += 1
        if self._window is not None:
            windows = [w.reduced(scale) for w in (self._window, self._window.opposite())]
        elif found is None:
            windows = [full_window(reduced_shape(self._shape, scale), self._config.memory)] * 2
        else:
            windows = [window_around(d, self._config.memory, 2, _MARGIN) for d in found.directions]
        searching = self._window is None and found is None
        return SearchStep(
            scale,
            tuple(windows[: self._directions]),
            share=0.1 if self._done == 1 else 0.3,
            coarse=searching and bool(self._config.coarse_model),
            priors=None if found is None else self._priors(found, scale),
            closer=self._closer and self._done == len(self._scales),
        )

    def carried_share(self, step: SearchStep) -> float:
        """Return the share of trusted pixels that later pairs of a video are measured by."""
        return self._previous.full_share if step.warm and self._previous is not None else 0.0

    def _priors(self, found: Matches, scale: int) -> tuple[Prior, ...] | None:
        """Return what the last step found as the prior of a finer one."""
        # At full size a prior does more harm at boundaries than it helps (docs/decisions.md).
        if not self._config.prior or scale == 1:
            return None
        shape, factor = reduced_shape(self._shape, scale), found.scale // scale
        priors = []
        for direction in found.directions:
            flow = enlarged_flow(direction.completed, factor, shape)
            weight = upsample_linear(direction.decided * direction.trusted, factor, shape)
            priors.append(Prior(flow, weight * np.float32(self._config.prior)))
        return tuple(priors)

    @property
    def _directions(self) -> int:
        return 2 if self._config.bidirectional else 1

    def _usable(self, previous: Matches) -> bool:
        """Whether the pair before was of the same size, related, and matched in both directions."""
        scale = self._scales[-1]
        return (
            not previous.cut
            and previous.scale == scale
            and previous.directions[0].flow.shape[:2] == reduced_shape(self._shape, scale)
            # With one direction, nothing tells when its window is left.
            and self._config.bidirectional
            and len(previous.directions) == 2
        )

    def _warm_step(self, previous: Matches) -> SearchStep:
        memory, margin = self._config.memory, _MARGIN_OF_PREVIOUS
        windows = [window_around(d, memory, 1, margin, _SPARSE) for d in previous.directions]
        back = previous.directions[1]
        expected = continued(back.completed, back.trusted)
        labels = [_labels(flow, w) for (flow, _), w in zip(expected, windows, strict=True)]
        priors = None
        if self._config.prior and previous.scale > 1:
            strength = np.float32(self._config.prior)
            priors = tuple(Prior(flow, strength * weight) for flow, weight in expected)
        return SearchStep(previous.scale, tuple(windows), tuple(labels), priors=priors)


def plan_scales(
    shape: tuple[int, int], config: EstimatorConfig, *, closer: bool = True
) -> list[int]:
    """Return the factors by which the images are reduced, the coarsest first.

    With `closer`, the last one may be that of a closer look.
    """
    scale, closer = config.scale, closer and not config.scale
    if scale == 0:
        scale = 1
        while np.prod(reduced_shape(shape, scale), dtype=int) > config.matching_pixels:
            scale *= 2
    scales = [scale]
    while len(scales) < config.levels and min(shape) // (2 * scales[0]) >= _SHORTEST:
        scales.insert(0, 2 * scales[0])
    finer = scale // 2
    if closer and finer and np.prod(reduced_shape(shape, finer), dtype=int) <= config.closer_pixels:
        scales.append(finer)
    return scales


def reduced_shape(shape: tuple[int, int], scale: int) -> tuple[int, int]:
    """Return height and width of a reduced image; sides are rounded up."""
    return -(-shape[0] // scale), -(-shape[1] // scale)


def full_window(shape: tuple[int, int], memory: float) -> Window:
    """Return the window of the first step: half the image in each direction, or what fits."""
    height, width = shape
    labels = int(memory * 1e9 / (height * width * 2 * _VOLUMES))
    farthest = max(1, min(_FARTHEST, labels // 4))
    v, u = min(height // 2, farthest), min(width // 2, farthest)
    return Window(-u, 2 * u + 1, -v, 2 * v + 1)


def window_around(
    found: DirectedMatches, memory: float, factor: int, margin: int, every: int = 1
) -> Window:
    """Return the window of the displacements that were found.

    Parameters
    ----------
    found : DirectedMatches
        What a step has found in one direction.
    memory : float
        Gigabytes that the matcher may take.
    factor : int
        By how much the scale of the window is finer.
    margin : int
        By how many pixels to widen it on every side.
    every : int
        Of how many rows and columns one is enough to know what most pixels do.
    """
    completed = found.completed[::every, ::every].reshape(-1, 2)
    matches = found.flow[::every, ::every][found.trusted[::every, ::every]]
    if not len(matches):
        matches = completed
    small = _frequent(found.flow[found.trusted & (found.decided > 0)].T)
    height, width = (factor * side for side in found.flow.shape[:2])
    limits = np.array([width, height])
    most = most_labels(memory) / (height * width)  # of both planes
    for share in _LEFT_OUT:
        if share > _LEFT_OUT[0]:
            small = small[:, :0]  # there is not enough memory for all of them
        percents = [share / 10, 100 - share / 10]
        both = [np.percentile(flows.T, percents, axis=1) for flows in (completed, matches)]
        if small.size:  # things that a share of all pixels would leave out
            both.append(np.stack([small.min(axis=1), small.max(axis=1)]))
        ends = np.min(both, axis=0)[0], np.max(both, axis=0)[1]
        low = np.maximum(np.floor(factor * ends[0]) - margin, -limits).astype(int)
        high = np.minimum(np.ceil(factor * ends[1]) + margin, limits).astype(int)
        high = np.maximum(high, low)
        count = np.minimum(high - low + 1, MAX_LABELS)
        if count.sum() <= most:
            break
    else:
        kept = np.maximum((count * (most / count.sum())).astype(int), 1)
        low, count = low + (count - kept) // 2, kept
    return Window(int(low[0]), int(count[0]), int(low[1]), int(count[1]))


def most_labels(memory: float) -> float:
    """Return how many labels of both planes all pixels have together, at most, for a memory."""
    return memory * 1e9 / _OF_A_LABEL


def widest_labels(shape: tuple[int, int], memory: float) -> float:
    """Return the labels of all pixels for the widest window that `window_around` can return."""
    widest = sum(min(2 * side + 1, MAX_LABELS) for side in shape)
    return min(float(shape[0] * shape[1] * widest), most_labels(memory))


def _frequent(flows: Flow) -> Flow:
    """Return those of some flows (2, N) that have enough others like them."""
    if not flows.size:
        return flows
    flows = np.ascontiguousarray(flows)  # numpy is slow with the other order
    u, v = np.floor(flows / _ALIKE).astype(np.int32)
    u -= u.min()
    v -= v.min()
    which = u.astype(np.intp) * (int(v.max()) + 1) + v
    frequent: Flow = np.compress(np.bincount(which)[which] >= _SMALLEST, flows, axis=1)
    return frequent


def _labels(expected: Flow, window: Window) -> tuple[Labels, Labels]:
    """Return an expected flow as labels of a window."""
    flow = np.rint(expected)
    u = (flow[..., 0] - window.u0).clip(0, window.du - 1)
    v = (flow[..., 1] - window.v0).clip(0, window.dv - 1)
    return u.astype(np.int16), v.astype(np.int16)
