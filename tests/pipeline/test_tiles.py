"""Tile by tile, the result is that of the whole images."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hamflow
from _problems import same_bytes
from _route import SMALL, shifted
from _tiles import InTiles, apart, scene
from hamflow import Estimator, FlowResult
from hamflow.pipeline.box import Box
from hamflow.pipeline.tiles import CONTEXT, Tiling, reach_of
from hamflow.refinement import NoTemporal, TrackFilter, Upsampling

PIXELS = 200 * 200


@cache
def whole_and_tiled(preset: Any, number: int) -> tuple[FlowResult, FlowResult]:
    images = scene(number).image0, scene(number).image1
    return Estimator(preset).estimate(*images), InTiles(preset, PIXELS).estimate(*images)


@pytest.mark.parametrize(("preset", "number"), [("fast", 0), ("balanced", 0), ("realtime", 4)])
def test_as_the_whole(preset: str, number: int) -> None:
    whole, tiled = whole_and_tiled(preset, number)
    for flow, expected in ((tiled.flow, whole.flow), (tiled.backward, whole.backward)):
        assert flow is not None
        assert expected is not None
        assert (apart(flow, expected) > 1).mean() < 0.001  # measured at most 0.0003
        assert apart(flow, expected).mean() < 0.01
    assert whole.occlusion is not None
    assert tiled.occlusion is not None
    assert (whole.occlusion != tiled.occlusion).mean() < 0.001
    assert whole.confidence is not None
    assert (np.abs(tiled.confidence - whole.confidence) > 0.1).mean() < 0.002
    # The matches are the same, and so is what is known of them.
    assert (whole.energy, whole.bound, whole.window, whole.scale) == (
        *(tiled.energy, tiled.bound, tiled.window, tiled.scale),
    )


def test_no_seams() -> None:
    """Across the border of two tiles, the flow changes as it does in the whole."""
    whole, tiled = whole_and_tiled("balanced", 0)
    height, width = whole.flow.shape[:2]
    still = np.zeros(2, np.float32), np.zeros(2, np.float32)
    boxes = [box for box, _ in Tiling(PIXELS).tiles((height, width), 1, lambda _: still, CONTEXT)]
    rows, columns = ({getattr(box, side) for box in boxes} - {0} for side in "yx")
    assert rows | columns
    difference = tiled.flow - whole.flow
    for seams, axis in ((rows, 0), (columns, 1)):
        jumps = np.abs(np.diff(difference, axis=axis)).mean(axis=(1 - axis, 2))
        at = np.array(sorted(seams), int) - 1
        if not len(at):
            continue
        assert jumps[at].max() < 0.02  # pixels
        steps = [
            np.abs(np.diff(r.flow, axis=axis)).mean(axis=(1 - axis, 2))[at] for r in (whole, tiled)
        ]
        assert (steps[1] < 1.05 * steps[0] + 0.01).all()


def test_what_is_not_refined() -> None:
    config = replace(SMALL, refinement=Upsampling())
    images = shifted(5, -3, 120, 160)
    whole = Estimator(config, scale=4).estimate(*images)
    tiled = InTiles(config, 130 * 130, scale=4).estimate(*images)
    assert apart(tiled.flow, whole.flow).max() < 1e-5


def test_a_video_in_tiles_is_not_filtered_along_tracks() -> None:
    images = [shifted(5 * k, -3 * k, 120, 160)[1] for k in range(3)]
    flows = []
    for temporal in (TrackFilter(), NoTemporal()):
        tiled = InTiles(replace(SMALL, temporal=temporal), 130 * 130)
        flows.append([item.flow for item in hamflow.video(images, tiled)][-1])
    assert np.array_equal(*flows)


def test_far_motion_makes_small_tiles() -> None:
    """A tile with the places that it moves to does not get larger than tiles may be."""
    tiling = Tiling(300 * 300)
    shape = (700, 900)

    def far(box: Box) -> Any:
        return np.array([0, -150], np.float32), np.array([120, 0], np.float32)

    found = list(tiling.tiles(shape, 4, far, 16))
    count = np.zeros(shape, int)
    for box, outer in found:
        count[box.slices] += 1
        assert outer.pixels <= tiling.most
        reached = box.grown((16, 166), (136, 16), 1, shape)
        assert outer.x <= reached.x
        assert outer.y <= reached.y
        assert outer.x + outer.width >= reached.x + reached.width
        assert outer.y + outer.height >= reached.y + reached.height
    assert (count == 1).all()
    # Motion that leads everywhere is not followed at any price.
    found = list(
        Tiling(100 * 100).tiles(shape, 4, lambda _: (-np.full(2, 500), np.full(2, 500)), 8)
    )
    assert sum(box.pixels for box, _ in found) == shape[0] * shape[1]


@given(st.integers(1, 400), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_reach(height: int, width: int, seed: int) -> None:
    flow = np.random.default_rng(seed).normal(size=(height, width, 2)).astype(np.float32)
    low, high = reach_of(flow)
    assert same_bytes(low, flow.min(axis=(0, 1)))
    assert same_bytes(high, flow.max(axis=(0, 1)))
