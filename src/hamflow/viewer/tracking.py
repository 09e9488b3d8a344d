"""The track of a clicked point through the results that are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hamflow.motion._sampling import gray
from hamflow.motion.tracker import Tracker
from hamflow.result import FlowResult
from hamflow.viewer.refusals import Refusal
from hamflow.viewer.results import KeptResult
from hamflow.viewer.source import Source


def track(
    start: KeptResult, results: Sequence[KeptResult], x: float, y: float
) -> list[dict[str, Any]]:
    """Follow a point of the first frame of a result, forward and backward in time.

    Parameters
    ----------
    start : KeptResult
        The result in whose first frame the point is.
    results : sequence of KeptResult
        Those of the same source. Of several for a pair, the one with the preset of `start` counts,
        or else the last.
    x, y : float
        The point.
    """
    width, height = start.source.size
    if not (0 <= x < width and 0 <= y < height):
        raise Refusal(
            422, f"The point ({x:g}, {y:g}) is outside of the image of {width}×{height} pixels."
        )
    chosen: dict[int, KeptResult] = {}
    for result in results:
        before = chosen.get(result.index)
        if before is None or before.preset != start.preset or result.preset == start.preset:
            chosen[result.index] = result
    chosen[start.index] = start
    source = start.source
    if len(source.frames) < 2:
        raise Refusal(409, f"{source.name} has no images, so that nothing can be tracked in it.")
    later = _followed(source, _forward(chosen, start.index), start.index, (x, y), 1)
    earlier = list(_followed(source, _backward(chosen, start.index), start.index, (x, y), -1))
    return [*reversed(earlier[1:]), *later]


def _forward(chosen: dict[int, KeptResult], index: int) -> Iterator[FlowResult]:
    while index in chosen:
        yield chosen[index].load()
        index += 1


def _backward(chosen: dict[int, KeptResult], index: int) -> Iterator[FlowResult]:
    while index - 1 in chosen:
        result = chosen[index - 1].load()
        if result.backward is None:
            return
        # Occlusion and confidence are of the other frame.
        yield replace(
            result, flow=result.backward, backward=result.flow, occlusion=None, confidence=None
        )
        index -= 1


def _followed(
    source: Source,
    results: Iterator[FlowResult],
    index: int,
    point: tuple[float, float],
    step: int,
) -> Iterator[dict[str, Any]]:
    tracker = Tracker(gray(np.asarray(source.frame(index))), np.array([point]))
    yield _point(index, tracker)
    for result in results:
        if result.cut:
            return
        index += step
        tracker.step(gray(np.asarray(source.frame(index))), result)
        if not np.isfinite(tracker.position).all():
            return  # the flow is unknown there
        yield _point(index, tracker)


def _point(index: int, tracker: Tracker) -> dict[str, Any]:
    x, y = (float(value) for value in tracker.position[0])
    return {"index": index, "x": x, "y": y, "visible": bool(tracker.visible[0])}
