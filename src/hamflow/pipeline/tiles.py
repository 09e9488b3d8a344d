"""Stages behind the matching, tile by tile: refinement and assessment of images of any size.

Between stages a field is whole; within a stage, the images are worked on in tiles. Each tile is
computed with what is around it and with the places that it moves to, and only the tile itself is
kept. All tiles start from the matches of the whole images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow._room import empty
from hamflow._scale import upsample_linear, upsample_nearest
from hamflow._types import Field, Flow, Image, Mask
from hamflow.pipeline.box import Box, cover
from hamflow.pipeline.canvas import Canvas, NewCanvas, part_of
from hamflow.pipeline.frame import LargeFrame, Levels
from hamflow.pipeline.matches import DirectedMatches
from hamflow.pipeline.scales import reduced_shape
from hamflow.refinement import assess_with, surroundings
from hamflow.stages import Refinement

# Around a tile and the places it moves to, in pixels of the scale at which it is refined.
CONTEXT = 48
# The same for the assessment, which looks at a pixel and its neighbors, in pixels of the images.
_NEAR = 4
# And for what it knows of the matches: means over 25×25 pixels of the matching scale.
_SQUARE = 16
# Tiles become no smaller than this because of far motion, in pixels of each side.
_SMALLEST = 128

# Numbers of a flow that are compared at a time.
_ROW = 256
_AT_REST = np.zeros(2, np.float32), np.zeros(2, np.float32)

Reach = tuple[NDArray[np.float32], NDArray[np.float32]]
"""The least and the largest displacements, in x and y."""
Frames = tuple[LargeFrame, LargeFrame]


@dataclass(frozen=True)
class Tiling:
    """How large tiles are.

    Parameters
    ----------
    most : int
        Pixels of a tile with its surroundings.
    context : int
        Pixels around a tile.
    """

    most: int
    context: int = CONTEXT

    def tiles(
        self, shape: Sequence[int], grid: int, reach: Callable[[Box], Reach], context: int
    ) -> Iterator[tuple[Box, Box]]:
        """Return the tiles of an image, each without and with its surroundings.

        Parameters
        ----------
        shape : (int, int)
            Height and width of the image.
        grid : int
            Tiles and their surroundings begin at multiples of it.
        reach : callable
            Returns the least and the largest displacements in a box.
        context : int
            Pixels around a tile and the places it moves to.
        """
        if shape[0] * shape[1] <= self.most:
            whole = Box.of_shape(shape)
            yield whole, whole
            return
        waiting = self._boxes(shape, grid, context)
        reaches = [reach(box) for box in waiting]
        if any(
            _surroundings(box, far, context, grid, shape).pixels > self.most
            for box, far in zip(waiting, reaches, strict=True)
        ):
            # Tiles that leave room for the motion that is usual.
            usual = int(np.median([max(abs(low).max(), abs(high).max()) for low, high in reaches]))
            waiting = self._boxes(shape, grid, context + min(usual, math.isqrt(self.most) // 4))
        waiting.reverse()
        while waiting:
            box = waiting.pop()
            outer = _surroundings(box, reach(box), context, grid, shape)
            if outer.pixels > self.most:
                halves = box.halves(grid)
                if len(halves) > 1 and min(halves[0][2:]) >= min(_SMALLEST, self.most**0.5 / 2):
                    waiting += halves[::-1]
                    continue
                # Motion in all directions at once: some of it then leads to the unknown.
                outer = _surroundings(box, _AT_REST, context, grid, shape)
            yield box, outer

    def _boxes(self, shape: Sequence[int], grid: int, margin: int) -> list[Box]:
        # Surroundings begin and end at the grid, too.
        return list(cover(shape, self.most, -(-margin // grid) * grid, grid))


def _surroundings(box: Box, reach: Reach, context: int, grid: int, shape: Sequence[int]) -> Box:
    """Return a box with its surroundings and the places that it moves to."""
    low = [context + max(0, math.ceil(-least)) for least in reach[0]]
    high = [context + max(0, math.ceil(most)) for most in reach[1]]
    return box.grown(low, high, grid, shape)


def reach_of(flow: Flow) -> Reach:
    """Return the least and the largest displacements of a flow, in x and y."""
    flat = flow.reshape(-1)
    # Many vectors in a row: numpy reduces long rows much faster than pairs.
    long = len(flat) // _ROW * _ROW
    rows, rest = flat[:long].reshape(-1, _ROW), flat[long:].reshape(-1, 2)
    if not long:
        return rest.min(axis=0), rest.max(axis=0)
    low, high = rows.min(axis=0).reshape(-1, 2), rows.max(axis=0).reshape(-1, 2)
    low, high = np.concatenate([low, rest]), np.concatenate([high, rest])
    return low.min(axis=0), high.max(axis=0)


def refined(
    refinement: Refinement,
    frames: Frames,
    matched: tuple[Flow, Mask],
    scale: int,
    opposite: Flow | None,
    *,
    name: str,
    tiling: Tiling,
    canvas: NewCanvas,
) -> Flow:
    """Take a flow from the matching scale to the full size, tile by tile at each size.

    Parameters
    ----------
    refinement : Refinement
        What is done.
    frames : (LargeFrame, LargeFrame)
        The images.
    matched : (Flow, Mask)
        The flow at the matching scale, and where it can be trusted.
    scale, opposite
        As a refinement takes them.
    name : str
        What the flow is of the result: "flow" or "backward".
    tiling : Tiling
        How large tiles are.
    canvas : callable
        Makes the fields.
    """
    shape, trusted = frames[0].shape, matched[1]
    finest = min(getattr(refinement, "finest", 1), scale)
    start = matched[0]
    steps = [finest]
    if hasattr(refinement, "finest"):
        while opposite is None and 2 * steps[0] < scale:
            steps.insert(0, 2 * steps[0])
        if getattr(refinement, "twice", False) and opposite is None and scale == 2 * finest:
            steps.insert(0, scale)
    coarse = scale
    for finer in steps:
        factor, size = coarse // finer, reduced_shape(shape, finer)
        grid = scale // finer
        stage = refinement.at_step(scale, finer) if hasattr(refinement, "at_step") else refinement
        if hasattr(stage, "finest"):
            stage = replace(stage, finest=1)  # type: ignore[type-var]
        found = canvas(name if finer == 1 else "", (*size, 2), np.float32)

        def moved(box: Box, start: Flow = start, factor: int = factor) -> Reach:
            low, high = reach_of(part_of(start, box.reduced(factor)))
            return factor * low, factor * high

        for box, outer in tiling.tiles(size, grid, moved, tiling.context):
            parts = frames[0].part(outer, finer), frames[1].part(outer, finer)
            known = None
            if opposite is not None:
                known = part_of(opposite, outer.enlarged(finer, shape))[::finer, ::finer]
                known = np.ascontiguousarray(known) / np.float32(finer)
            before = part_of(start, outer.reduced(factor))
            sure = upsample_nearest(
                trusted[outer.reduced(grid).slices], grid // factor, before.shape[:2]
            )
            tile = stage(parts, before, sure, factor, known)
            found.write(box, tile[box.inside(outer).slices])
            del parts, known, before, sure, tile  # not to be there beside those of the next tile
        start, coarse = found.array, finer
    if coarse == 1:
        return start
    return _enlarged(start, coarse, shape, tiling, canvas(name, (*shape, 2), np.float32))


def _enlarged(
    flow: Flow, factor: int, shape: tuple[int, int], tiling: Tiling, found: Canvas
) -> Flow:
    """Return a flow at the full size, in its pixels."""
    for box in cover(shape, tiling.most, 2 * factor, factor):
        outer = box.grown((2 * factor,) * 2, (2 * factor,) * 2, factor, shape)
        part = part_of(flow, outer.reduced(factor))
        larger = upsample_linear(part, factor, (outer.height, outer.width)) * np.float32(factor)
        found.write(box, larger[box.inside(outer).slices])
    return found.array


class _Matched(NamedTuple):
    """What is known of a part of the matches of one direction."""

    trusted: Mask
    completed: Flow
    decided: Field


class _Reduced(Levels):
    """A part of an image at the matching scale, which stands for the scale itself."""

    def at(self, scale: int) -> Image:
        """Return the part."""
        return self.pixels


def surroundings_of(
    frames: Frames, directions: Sequence[DirectedMatches], scale: int, tiling: Tiling
) -> NDArray[np.float32]:
    """Return what `hamflow.refinement.surroundings` does, tile by tile at the matching scale."""
    shape = directions[0].trusted.shape
    found: NDArray[np.float32] | None = None

    def moved(box: Box) -> Reach:
        return reach_of(cut(directions[0].completed, box))

    for box, outer in tiling.tiles(shape, 1, moved, _SQUARE):
        part = [cut(frame.at(scale), outer) for frame in frames]
        bits = [cut(frame.bits(scale), outer) for frame in frames]
        matched = [
            _Matched(cut(d.trusted, outer), cut(d.completed, outer), cut(d.decided, outer))
            for d in directions
        ]
        around = surroundings(
            (_Reduced(part[0]), _Reduced(part[1])), (bits[0], bits[1]), matched, scale
        )
        if found is None:
            found = empty((*shape, around.shape[2]), np.float32)
        found[box.slices] = around[box.inside(outer).slices]
    assert found is not None
    return found


class Assessment(NamedTuple):
    """How `assessed` goes about it."""

    finest: int  # the scale at which to assess
    completion: str  # the method by which matches were completed
    tiling: Tiling
    canvas: NewCanvas


def assessed(
    frames: Frames,
    flows: Sequence[Flow],
    around: NDArray[np.float32],
    scale: int,
    how: Assessment,
) -> tuple[Mask, Field]:
    """Return what is hidden and the confidence, tile by tile; see `hamflow.refinement.assess`."""
    shape, finest = frames[0].shape, how.finest
    hidden = how.canvas("occlusion", shape, np.bool_)
    certain = how.canvas("confidence", shape, np.float32)

    def moved(box: Box) -> Reach:
        forward, backward = (reach_of(part_of(flow, box)) for flow in flows)
        return np.minimum(forward[0], -backward[1]), np.maximum(forward[1], -backward[0])

    for box, outer in how.tiling.tiles(shape, scale, moved, _NEAR * finest):
        parts: tuple[Levels, Levels] = (frames[0].part(outer, 1), frames[1].part(outer, 1))
        both = [part_of(flow, outer) for flow in flows]
        near = cut(around, outer.reduced(scale))
        masks: tuple[Mask, Field] = assess_with(
            parts, both, near, scale, finest=finest, completion=how.completion
        )
        for field, values in zip((hidden, certain), masks, strict=True):
            field.write(box, values[box.inside(outer).slices])
    return hidden.array, certain.array


def cut(array: NDArray[Any], box: Box) -> NDArray[Any]:
    """Return a part of a field in memory, as kernels take it."""
    return np.ascontiguousarray(array[box.slices])
