"""Parts of the images: what a region needs of its surroundings, and regions around points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hamflow.config import EstimatorConfig
from hamflow.errors import InputError
from hamflow.pipeline.box import Box
from hamflow.pipeline.clock import Clock
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.scales import SearchPlan, plan_scales, reduced_shape
from hamflow.pipeline.search import search
from hamflow.refinement import check
from hamflow.window import Window

# Pixels of the images in which the first look at the motion is taken, at most.
_LOOK = 12_000
# What the look leaves open, in its pixels, on every side.
_UNSURE = 2
# Around a region and the places it moves to, in pixels of the matching scale: the descriptors look
# about 20 pixels far, and the completion goes on from matches around.
_CONTEXT = 32
# Regions of points are made of squares with this side, in pixels, one around each point.
_SQUARE = 32


def as_box(region: Sequence[int], shape: tuple[int, int]) -> Box:
    """Return a region that a user gave; it must be a part of the image."""
    wanted = "(x, y, width, height) in whole pixels"
    try:
        numbers = [float(value) for value in region]
    except (TypeError, ValueError) as error:
        raise InputError(f"region must be {wanted}, not {region!r}.") from error
    if len(numbers) != 4 or any(not number.is_integer() for number in numbers):
        raise InputError(f"region must be {wanted}, not {region!r}.")
    box = Box(*(int(number) for number in numbers))
    height, width = shape
    if (
        min(box.width, box.height) < 1
        or min(box.x, box.y) < 0
        or box.x + box.width > width
        or box.y + box.height > height
    ):
        raise InputError(
            f"region must be a part of the image, which has {width}×{height} pixels, but is "
            f"{tuple(box)} (x, y, width, height)."
        )
    return box


def as_points(points: object, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return points (N, 2) that a user gave: x and y within the image."""
    found = np.asarray(points)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iuf":
        raise InputError(
            "at must be an array (N, 2) of numbers, x and y of each point, but has the shape "
            f"{found.shape} and the type {found.dtype}."
        )
    found = found.astype(np.float64)
    height, width = shape
    good = (found >= -0.5) & (found <= np.array([width, height]) - 0.5)  # NaN is neither
    if not good.all():
        first = int(np.flatnonzero(~good.all(axis=1))[0])
        raise InputError(
            f"at must have points within the image of {width}×{height} pixels, but point {first} "
            f"is {tuple(found[first].tolist())}."
        )
    return found


class Surroundings:
    """Decides which part of the images the estimate of a region needs.

    Parameters
    ----------
    frames : (Frame, Frame)
        The whole images.
    config : EstimatorConfig
        What the estimator does.
    window : Window, optional
        The displacements to search, if they are given. Otherwise a look at much reduced images
        tells where the motion leads.
    """

    def __init__(
        self, frames: tuple[Frame, Frame], config: EstimatorConfig, window: Window | None
    ) -> None:
        self._shape = frames[0].shape
        scales = plan_scales(self._shape, config, closer=False)
        self.scale = scales[-1]
        self._closer = window is None and len(plan_scales(self._shape, config)) > len(scales)
        self._config = config
        self._grid = 4 * scales[0]  # cells of the coarse descriptors stay the same
        self._window = window
        self._flows: list[NDArray[np.float32]] = []
        clock = Clock()
        if window is None:
            small = replace(config, scale=0, matching_pixels=_LOOK, closer_pixels=0, levels=1)
            step = SearchPlan(self._shape, small).next_step(None)
            assert step is not None
            found = [match.flow for match in search(frames, step, config.matcher, clock)]
            self._look = step.scale
            for flow, trusted, sign in zip(found, check(found), (1, -1), strict=False):
                self._flows.append(np.where(trusted[..., None], sign * flow, np.nan))
        self.seconds = sum(clock.seconds.values())

    def settings(self, box: Box) -> EstimatorConfig:
        """Return settings by which a part is searched at the scales of the whole."""
        if not self._closer:
            return replace(self._config, scale=self.scale)
        scales = self.scale, self.scale // 2
        matching, closer = (math.prod(reduced_shape((box.height, box.width), s)) for s in scales)
        return replace(self._config, matching_pixels=matching, closer_pixels=closer)

    def of(self, box: Box) -> Box:
        """Return the part of the images to look at, which begins at a multiple of all scales."""
        low, high = self._reach(box)
        context = _CONTEXT * self.scale
        start = np.array([box.x, box.y]) + np.minimum(low, 0) - context
        end = np.array([box.x + box.width, box.y + box.height]) + np.maximum(high, 0) + context
        start = np.maximum(start // self._grid * self._grid, 0)
        end = np.minimum(end, self._shape[::-1])
        return Box(*(int(value) for value in (*start, *(end - start))))

    def _reach(self, box: Box) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the least and the largest displacements in a box, in pixels of the images."""
        if self._window is not None:
            w = self._window
            ends = np.array([[w.u0, w.v0], [w.u0 + w.du - 1, w.v0 + w.dv - 1]])
            reach = abs(ends).max(axis=0)  # the other direction has the opposite ones
            return -reach, reach
        rows, columns = (
            slice(part.start // self._look, -(-part.stop // self._look)) for part in box.slices
        )
        flows = np.concatenate([flow[rows, columns].reshape(-1, 2) for flow in self._flows])
        known = flows[~np.isnan(flows[:, 0])]
        if not len(known):  # where nothing is known, things may move as elsewhere
            every = np.concatenate([flow.reshape(-1, 2) for flow in self._flows])
            known = every[~np.isnan(every[:, 0])]
        if not len(known):
            known = np.zeros((1, 2), np.float32)
        ends = np.percentile(known, (1, 99), axis=0)
        unsure = _UNSURE * self._look
        low = np.floor(self._look * ends[0]).astype(np.intp) - unsure
        high = np.ceil(self._look * ends[1]).astype(np.intp) + unsure
        return low, high


def boxes_around(points: NDArray[np.float64], shape: tuple[int, int]) -> list[Box]:
    """Return boxes that contain some points with their surroundings, and do not overlap."""
    height, width = shape
    boxes: list[Box] = []
    for cell in sorted({(int(x), int(y)) for x, y in np.rint(points) // _SQUARE}):
        left, top = (max(0, _SQUARE * k - _SQUARE // 2) for k in cell)
        right = min(width, _SQUARE * (cell[0] + 1) + _SQUARE // 2)
        bottom = min(height, _SQUARE * (cell[1] + 1) + _SQUARE // 2)
        merged = Box(left, top, right - left, bottom - top)
        while others := [other for other in boxes if _overlap(merged, other)]:
            boxes = [box for box in boxes if box not in others]
            merged = _around([merged, *others])
        boxes.append(merged)
    return boxes


def _overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def _around(boxes: Sequence[Box]) -> Box:
    left, top = min(box.x for box in boxes), min(box.y for box in boxes)
    right, bottom = (
        max(box.x + box.width for box in boxes),
        max(box.y + box.height for box in boxes),
    )
    return Box(left, top, right - left, bottom - top)
