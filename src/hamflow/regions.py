"""The flow of a part of the images, or of points: estimated from there and its surroundings."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Protocol

import numpy as np

from hamflow._progress import stage_progress
from hamflow._types import ImageLike, StageProgress
from hamflow.config import EstimatorConfig
from hamflow.pipeline.box import Box
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.matches import Matches
from hamflow.pipeline.region import Surroundings, as_box, as_points, boxes_around
from hamflow.result import FlowResult, PointFlow
from hamflow.window import Window

# Beyond this share of the image, regions around points are no cheaper than all of it.
_WORTH = 0.6


class EstimatorLike(Protocol):
    """What estimates: `hamflow.Estimator`, which stands behind this module in the line."""

    config: EstimatorConfig
    window: Window | None

    def frame(self, image: ImageLike, name: str = ...) -> Frame:
        """Prepare an image."""

    def between(
        self, frame0: Frame, frame1: Frame, *, progress: StageProgress | bool | None = ...
    ) -> tuple[FlowResult, Matches]:
        """Estimate the flow between two prepared frames."""


class Regions:
    """Parts of two images.

    Parameters
    ----------
    estimator : EstimatorLike
        Estimates the flow of each part.
    frames : (Frame, Frame)
        The whole images.
    """

    def __init__(self, estimator: EstimatorLike, frames: tuple[Frame, Frame]) -> None:
        self._estimator = estimator
        self._frames = frames

    def of(self, region: Sequence[int], progress: StageProgress | bool | None) -> FlowResult:
        """Estimate a region: x, y, width and height."""
        box = as_box(region, self._frames[0].shape)
        return self._within(box, self._surroundings(), progress)

    def at(self, at: object, progress: StageProgress | bool | None) -> PointFlow:
        """Estimate the flow of points (N, 2), from regions around them."""
        height, width = self._frames[0].shape
        points = as_points(at, (height, width))
        surroundings = self._surroundings()
        boxes = boxes_around(points, (height, width))
        if sum(surroundings.of(box).pixels for box in boxes) > _WORTH * height * width:
            return self._estimator.between(*self._frames, progress=progress)[0].at(points)
        two = self._estimator.config.bidirectional
        flow = np.zeros((len(points), 2), np.float32)
        visible = np.zeros(len(points), np.bool_) if two else None
        certain = np.zeros(len(points), np.float32) if two else None
        with stage_progress(progress) as told:
            for k, box in enumerate(boxes):
                which = box.contains(points)

                def partly(stage: str, share: float, before: int = k) -> None:
                    if told is not None:
                        told(stage, (before + share) / len(boxes))

                found = self._within(box, surroundings, partly).at(points[which])
                flow[which] = found.flow
                if visible is not None and certain is not None:
                    visible[which], certain[which] = found.visible, found.confidence
        return PointFlow(flow, visible, certain)

    def _surroundings(self) -> Surroundings:
        return Surroundings(self._frames, self._estimator.config, self._estimator.window)

    def _within(
        self, box: Box, surroundings: Surroundings, progress: StageProgress | bool | None
    ) -> FlowResult:
        """Estimate a region, from it and its surroundings, at the scale of the whole images."""
        outer = surroundings.of(box)
        estimator = copy(self._estimator)
        estimator.config = surroundings.settings(outer)
        parts = (estimator.frame(frame.part(outer).pixels) for frame in self._frames)
        result = estimator.between(*parts, progress=progress)[0]
        result = replace(result, timings={"look": surroundings.seconds, **result.timings})
        return result.part(box.inside(outer), (outer.x, outer.y))
