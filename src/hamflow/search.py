"""Matching from coarse to fine: each scale decides where the next one looks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hamflow import crf
from hamflow._types import Flow, StageProgress
from hamflow.config import EstimatorConfig
from hamflow.frame import Frame
from hamflow.refinement import consistent, fill
from hamflow.window import Window

# Farther than that (in pixels of the coarsest scale) nothing is looked for.
_FARTHEST = 96
# Around what a coarser scale found, in pixels of the finer one.
_MARGIN = 4
_MARGIN_OF_PREVIOUS = 8
# The window of the pair before is good enough if so much of the share of pixels that a full look
# trusted is trusted again.
_KEPT = 0.9
_LEAST_TRUSTED = 0.2
# The window leaves out so many of a thousand pixels at either end; more if it is too large.
_LEFT_OUT = (3, 10, 30, 100)
_SHORTEST = 24  # pixels that the shorter side of a coarser image has at least
_VOLUMES = 7  # of labels that the solver needs at a time, in int16


class Clock:
    """Adds up the seconds of each stage, and reports where the work is."""

    def __init__(self, progress: StageProgress | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress
        self._share = 0.0

    @contextmanager
    def stage(self, name: str, share: float) -> Iterator[None]:
        """Time a stage; `share` says how much of the whole is done when it begins."""
        # Scales repeat stages, and a cut in a video all of them: never report a step back.
        self._share = max(self._share, share)
        if self._progress is not None:
            self._progress(name, self._share)
        start = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + elapsed


@dataclass(frozen=True)
class Solution:
    """What remains of the joint model's result; its volumes are too large to keep."""

    energy: float
    bound: float
    gap: float
    window: Window
    history: tuple[crf.CrfStep, ...]

    @classmethod
    def of(cls, result: crf.CrfResult) -> Solution:
        """Keep what is small."""
        return cls(result.energy, result.bound, result.gap, result.window, result.history)


@dataclass
class Direction:
    """What the finest scale says about one direction."""

    flow: Flow
    trusted: NDArray[np.bool_]
    filled: Flow
    distance: NDArray[np.float32]
    solution: Solution


@dataclass
class Matched:
    """Both directions (or one), and the scale."""

    directions: list[Direction]
    factor: int
    full_share: float | None = None
    """Largest share of trusted pixels since the whole window was last looked at, in a video."""
    trusted_share: float = field(init=False)

    def __post_init__(self) -> None:
        self.trusted_share = float(np.mean([d.trusted.mean() for d in self.directions]))
        if self.full_share is None:
            self.full_share = self.trusted_share


def plan_factors(shape: tuple[int, int], config: EstimatorConfig) -> list[int]:
    """Return the factors by which the images are reduced, the coarsest first."""
    factor = config.scale
    if factor == 0:
        factor = 1
        while -(-shape[0] // factor) * -(-shape[1] // factor) > config.matching_pixels:
            factor *= 2
    factors = [factor]
    while len(factors) < config.levels and min(shape) // (2 * factors[0]) >= _SHORTEST:
        factors.insert(0, 2 * factors[0])
    return factors


def match(
    frames: tuple[Frame, Frame],
    config: EstimatorConfig,
    window: Window | None,
    clock: Clock,
    previous: Matched | None = None,
) -> Matched:
    """Match two frames.

    Parameters
    ----------
    frames : (Frame, Frame)
        The images.
    config : EstimatorConfig
        How.
    window : Window or None
        Displacements to look at, in pixels of the full size; None finds out.
    clock : Clock
        Where the time goes.
    previous : Matched, optional
        What was found for the pair before in a video: its window takes the place of the coarser
        scales.
    """
    factors = plan_factors(frames[0].shape, config)
    if previous is not None and window is None and _fits(previous, factors[-1], frames[0], config):
        windows = [_window_around(d, config, 1, _MARGIN_OF_PREVIOUS) for d in previous.directions]
        # Motion goes on: labels of the pair before are a candidate, and one iteration less will do.
        hurried = replace(config, crf=replace(config.crf, outer=max(1, config.crf.outer - 1)))
        narrow = _match_at(factors[-1], frames, hurried, windows, clock, candidates=previous)
        # Otherwise a cut, or something fast came into the picture: look everywhere.
        assert previous.full_share is not None
        if narrow.trusted_share >= max(_KEPT * previous.full_share, _LEAST_TRUSTED):
            return replace(narrow, full_share=max(previous.full_share, narrow.trusted_share))
    matched: Matched | None = None
    for factor in factors:
        if window is not None:
            windows = [reduced_window(w, factor) for w in (window, mirrored(window))]
        elif matched is None:
            windows = [full_window(frames[0].at(factor).shape[:2], config.memory)] * 2
        else:
            windows = [_window_around(d, config, 2, _MARGIN) for d in matched.directions]
        matched = _match_at(
            factor, frames, config, windows, clock, done=0.1 if matched is None else 0.3
        )
    assert matched is not None
    return matched


def _match_at(
    factor: int,
    frames: tuple[Frame, Frame],
    config: EstimatorConfig,
    windows: list[Window],
    clock: Clock,
    *,
    done: float = 0.1,
    candidates: Matched | None = None,
) -> Matched:
    with clock.stage("descriptors", done):
        bits = [frame.bits(factor) for frame in frames]
    images = [frame.at(factor) for frame in frames]
    ways = [(0, 1), (1, 0)] if config.both else [(0, 1)]
    flows, solutions = [], []
    for (start, end), window in zip(ways, windows, strict=False):
        with clock.stage("joint model", done + 0.05 + 0.1 * start):
            result = crf.solve(
                bits0=bits[start],
                bits1=bits[end],
                image=images[start],
                window=window,
                config=config.crf,
                initial_labels=_labels(candidates, start, window),
            )
            flows.append(result.flow)
            solutions.append(Solution.of(result))
            del result  # before the other direction needs as much memory
    with clock.stage("filling", done + 0.25):
        trusted = [np.ones(flow.shape[:2], np.bool_) for flow in flows]
        if config.both:
            trusted = [consistent(flows[0], flows[1]), consistent(flows[1], flows[0])]
        directions = [
            Direction(flow, mask, *_filled(image, flow, mask, config), solution)
            for flow, mask, image, solution in zip(flows, trusted, images, solutions, strict=False)
        ]
    return Matched(directions, factor)


def _filled(
    image: NDArray[np.float32], flow: Flow, trusted: NDArray[np.bool_], config: EstimatorConfig
) -> tuple[Flow, NDArray[np.float32]]:
    # The paper's settings have no use for it.
    if config.levels == 1 and not (config.filling or config.both):
        return flow, np.zeros(flow.shape[:2], np.float32)
    return fill(image, flow, trusted, config.fill)


def _fits(previous: Matched, factor: int, frame: Frame, config: EstimatorConfig) -> bool:
    """Whether the pair before was of the same size, and matched in the same directions."""
    return (
        previous.factor == factor
        and previous.directions[0].flow.shape[:2] == frame.at(factor).shape[:2]
        # With one direction nothing tells when its window is left.
        and config.both
        and len(previous.directions) == 2
    )


def _labels(
    candidates: Matched | None, direction: int, window: Window
) -> tuple[NDArray[np.int16], NDArray[np.int16]] | None:
    if candidates is None:
        return None
    flow = np.rint(candidates.directions[direction].filled)
    u = (flow[..., 0] - window.u0).clip(0, window.du - 1)
    v = (flow[..., 1] - window.v0).clip(0, window.dv - 1)
    return u.astype(np.int16), v.astype(np.int16)


def full_window(shape: tuple[int, ...], memory: float) -> Window:
    """Return the window of the first look: half the image in each direction, or what fits."""
    height, width = shape[:2]
    labels = int(memory * 1e9 / (height * width * 2 * _VOLUMES))
    farthest = max(1, min(_FARTHEST, labels // 4))
    v, u = min(height // 2, farthest), min(width // 2, farthest)
    return Window(-u, 2 * u + 1, -v, 2 * v + 1)


def mirrored(window: Window) -> Window:
    """Return the window of the opposite displacements."""
    return Window(1 - window.u0 - window.du, window.du, 1 - window.v0 - window.dv, window.dv)


def reduced_window(window: Window, factor: int) -> Window:
    """Return a window in pixels of an image that is reduced by a factor, rounded outwards."""
    if factor == 1:
        return window
    sides = []
    for first, count in ((window.u0, window.du), (window.v0, window.dv)):
        low, high = first // factor, -(-(first + count - 1) // factor)
        sides += [low, high - low + 1]
    return Window(*sides)


def _window_around(
    direction: Direction, config: EstimatorConfig, factor: int, margin: int
) -> Window:
    """Return the displacements found, times a factor, with a margin, within the memory allowed."""
    found = direction.filled.reshape(-1, 2)
    matches = direction.flow[direction.trusted] if direction.trusted.any() else found
    height, width = (factor * side for side in direction.flow.shape[:2])
    limits = np.array([width, height])
    most = config.memory * 1e9 / (height * width * 2 * _VOLUMES)  # labels of both planes
    for share in _LEFT_OUT:
        ends = []
        for percent, choose in ((share / 10, np.minimum), (100 - share / 10, np.maximum)):
            ends.append(choose(*(np.percentile(f, percent, axis=0) for f in (found, matches))))
        low = np.maximum(np.floor(factor * ends[0]) - margin, -limits).astype(int)
        high = np.minimum(np.ceil(factor * ends[1]) + margin, limits).astype(int)
        high = np.maximum(high, low)
        count = np.minimum(high - low + 1, 4096)
        if count.sum() <= most:
            break
    else:
        kept = np.maximum((count * (most / count.sum())).astype(int), 1)
        low, count = low + (count - kept) // 2, kept
    return Window(int(low[0]), int(count[0]), int(low[1]), int(count[1]))
