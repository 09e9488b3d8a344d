"""The filter along the tracks of a video."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hamflow
from _problems import same_bytes, with_threads
from _route import SMALL, texture
from hamflow import Estimator, InputError, _native
from hamflow.config import PRESETS, preset_config
from hamflow.pipeline.frame import Frame
from hamflow.refinement import NoTemporal, TrackFilter
from hamflow.refinement.consistency import HIDING
from hamflow.refinement.temporal import _contrast, _weighted_median

Array = NDArray[Any]


def frame(image: Array) -> Frame:
    return Estimator(SMALL).frame(image)


# --- the kernels, the obvious way ---------------------------------------------------------------


def corners(x: float, y: float, shape: tuple[int, int]) -> list[tuple[int, int, float]] | None:
    """The four pixels around a place, with their weights; the nearest one first."""
    height, width = shape
    if not (-0.5 <= x <= width - 0.5 and -0.5 <= y <= height - 0.5):
        return None
    x, y = min(max(x, 0), width - 1), min(max(y, 0), height - 1)
    left, top = min(int(x), max(width - 2, 0)), min(int(y), max(height - 2, 0))
    found = []
    for dy in (0, 1):
        for dx in (0, 1):
            weight = abs(1 - dx - (x - left)) * abs(1 - dy - (y - top))
            found.append((min(top + dy, height - 1), min(left + dx, width - 1), weight))
    found.sort(key=lambda corner: -corner[2])
    return found


def carried(flow: Array, confidence: Array, along: Array, alike: float) -> Array:
    height, width = confidence.shape
    state = np.dstack([flow, confidence])
    expected = np.zeros((height, width, 3))
    for y in range(height):
        for x in range(width):
            around = corners(x + along[y, x, 0], y + along[y, x, 1], (height, width))
            if around is None:
                continue
            nearest = state[around[0][:2]]
            parts = [
                (weight, state[row, column])
                for row, column, weight in around
                if abs(state[row, column] - nearest)[:2].max() <= alike
            ]
            total = sum(weight for weight, _ in parts)
            found = sum(weight * values for weight, values in parts) / total
            lengths = (along[y, x] ** 2).sum() + (found[:2] ** 2).sum()
            if ((along[y, x] + found[:2]) ** 2).sum() <= HIDING[0] * lengths + HIDING[1]:
                expected[y, x] = found
    return expected


def blended(measured: Array, confidence: Array, expected: Array, changes: Array, how: Any) -> Array:
    change, relative, apart = how
    height, width = confidence.shape
    state = np.dstack([measured, confidence]).astype(np.float64)
    for y in range(height):
        for x in range(width):
            there = expected[y, x, :2].astype(np.float64) + changes[y, x, :2]
            certain = float(expected[y, x, 2] * changes[y, x, 2])
            if certain <= 0:
                continue
            old = (1 / certain - 1) ** 2 + 0.01
            old += (change + relative * np.hypot(*there)) ** 2
            now = (1 / confidence[y, x] - 1) ** 2 + 0.01 if confidence[y, x] > 0 else 1e12
            if np.hypot(*(there - measured[y, x])) < apart * np.sqrt(old + now):
                share, both = now / (old + now), old * now / (old + now)
            elif old < now:
                share, both = 1, old
            else:
                continue
            state[y, x, :2] += share * (there - measured[y, x])
            state[y, x, 2] = 1 / (1 + np.sqrt(max(both - 0.01, 0)))
    return state


SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 11))


@given(seed=st.integers(0, 10**6), shape=SHAPES)
def test_carry(seed: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    flow = rng.normal(0, 0.6, (*shape, 2)).astype(np.float32)
    along = rng.normal(0, 0.6, (*shape, 2)).astype(np.float32)
    confidence = rng.random(shape).astype(np.float32)
    found = np.full((*shape, 3), 7, np.float32)
    _native.carry(flow, confidence, along, 1.0, HIDING, found)
    assert np.allclose(found, carried(flow, confidence, along, 1.0), atol=1e-4)


@given(seed=st.integers(0, 10**6), shape=SHAPES, apart=st.sampled_from([0.0, 1.0, 30.0]))
def test_blend(seed: int, shape: tuple[int, int], apart: float) -> None:
    rng = np.random.default_rng(seed)
    measured = rng.normal(0, 2, (*shape, 2)).astype(np.float32)
    confidence, certain = rng.choice([0, 0.1, 0.3, 0.5, 0.9, 1], (2, *shape)).astype(np.float32)
    expected = np.dstack([measured + rng.normal(0, 1, (*shape, 2)), certain]).astype(np.float32)
    changes = np.dstack([rng.normal(0, 0.3, (*shape, 2)), rng.random(shape) < 0.8])
    given = measured, confidence, expected, changes.astype(np.float32), (0.3, 0.05, apart)
    flow, certain = np.empty((*shape, 2), np.float32), np.empty(shape, np.float32)
    _native.blend(*given, flow, certain)
    assert np.allclose(np.dstack([flow, certain]), blended(*given), atol=2e-3)


def test_the_kernels_check_their_arguments() -> None:
    flow, state = np.zeros((4, 5, 2), np.float32), np.zeros((4, 5, 3), np.float32)
    sure = np.ones((4, 5), np.float32)
    with pytest.raises(ValueError, match="along has the wrong shape"):
        _native.carry(flow, sure, flow[:3], 1.0, HIDING, state)
    with pytest.raises(ValueError, match="alike"):
        _native.carry(flow, sure, flow, -1.0, HIDING, state)
    for how in ((-1, 0, 1), (0.1, -1, 1), (0.1, 0, float("nan"))):
        with pytest.raises(ValueError, match="how"):
            _native.blend(flow, sure, state, state, how, flow.copy(), sure.copy())


def test_the_median_has_weights() -> None:
    values, weights = np.array([[5, 1, 3]], np.float32), np.array([[1, 1, 5]], np.float32)
    assert _weighted_median(values, weights) == 3
    assert _weighted_median(values, weights[:, ::-1]) == 5


def test_contrast_needs_two_directions() -> None:
    image = np.zeros((20, 20, 3), np.float32)
    image[:, 10:] = 1  # an edge, along which nothing can be told
    assert _contrast(image).max() < 1e-6
    image[10:] = 1
    assert _contrast(image)[8:11, 8:11].min() > 0.1


# --- the filter ---------------------------------------------------------------------------------


def moving(count: int, steps: Any = 3) -> list[Array]:
    """Frames of a texture that moves to the right, with noise."""
    rng = np.random.default_rng(0)
    scene, places = texture(64, 160), np.cumsum(np.broadcast_to(steps, count))
    frames = [scene[:, 60 - place : 140 - place] for place in places]
    return [(f + rng.normal(0, 3, f.shape)).clip(0, 255).astype(np.uint8) for f in frames]


def noisy(seed: int, u: float, shape: tuple[int, int] = (64, 80)) -> Array:
    flow = np.random.default_rng(seed).normal(0, 0.15, (*shape, 2))
    return (flow + np.array([u, 0])).astype(np.float32)


def filtered(images: list[Array], flows: list[list[Array]], confidence: list[float]) -> list[Array]:
    found, tracks = [], None
    shown = zip(pairwise([frame(image) for image in images]), flows, confidence, strict=True)
    for pair, (forward, backward), certain in shown:
        sure = np.full(forward.shape[:2], certain, np.float32)
        flow, tracks = TrackFilter()(pair, (forward, backward), sure, tracks)
        found.append(flow)
    return found


INSIDE = np.s_[10:-10, 30:-10]


def off(flow: Array, u: float) -> float:
    return float(abs(flow - [u, 0])[INSIDE].mean())


def test_noise_becomes_less_along_tracks() -> None:
    flows = [[noisy(k, 3), noisy(10 + k, -3)] for k in range(6)]
    found = filtered(moving(7), flows, [0.5] * 6)
    assert same_bytes(found[0], flows[0][0])
    assert off(found[5], 3) < 0.7 * off(flows[5][0], 3)


def test_what_is_certain_stays() -> None:
    """The less certain a flow is, the more it becomes what was seen before."""
    flows = [[noisy(k, 3), noisy(10 + k, -3)] for k in range(3)]
    changes = []
    for last in (0.95, 0.6, 0.3):
        flow = filtered(moving(4), flows, [0.9, 0.9, last])[2]
        changes.append(abs(flow - flows[2][0])[INSIDE].mean())
    assert changes[0] < 0.2 * changes[2]
    assert changes[0] < changes[1] < changes[2]


def test_a_surface_keeps_the_motion_that_was_seen_clearly() -> None:
    """A part of the last flow is lost, and nothing is certain of it."""
    flows = [[noisy(k, 3), noisy(10 + k, -3)] for k in range(4)]
    lost = np.s_[20:44, 44:64]
    flows[3][0][lost] = 0
    images, sure = moving(5), [0.9] * 4
    kept = filtered(images, flows, sure)[3][lost]
    assert abs(kept).mean() < 1  # if it is as certain as the others were, it counts
    tracks = None
    for k, pair in enumerate(pairwise([frame(image) for image in images])):
        certain = np.full((64, 80), 0.9, np.float32)
        if k == 3:
            certain[lost] = 0.1
        flow, tracks = TrackFilter()(pair, (flows[k][0], flows[k][1]), certain, tracks)
    assert abs(flow - [3, 0])[lost].mean() < 0.3


def test_a_change_of_motion_is_followed() -> None:
    """The camera moves faster and faster, and back."""
    steps = [0, 3, 4, 6, 3, 0, -2]
    flows = [[noisy(k, u), noisy(10 + k, -u)] for k, u in enumerate(steps[1:])]
    for flow, u in zip(filtered(moving(7, steps), flows, [0.7] * 6), steps[1:], strict=True):
        assert off(flow, u) < 0.15


def test_something_turns_round() -> None:
    """What differs by more than errors explain has no mean."""
    flows = [[noisy(0, -9), noisy(1, 9)], [noisy(2, 3), noisy(3, -3)]]
    assert off(filtered(moving(3, [0, 3, 3]), flows, [0.8, 0.8])[1], 3) < 0.2


def test_equal_frames_stay_at_rest() -> None:
    images = moving(3)
    images.append(images[-1])
    still = np.zeros((64, 80, 2), np.float32)
    flows = [[noisy(0, 3), noisy(1, -3)], [noisy(2, 3), noisy(3, -3)], [still, still]]
    assert not filtered(images, flows, [0.5] * 3)[2].any()


def test_off() -> None:
    flows = noisy(0, 3), noisy(1, -3)
    pair = frame(moving(2)[0]), frame(moving(2)[1])
    found, tracks = NoTemporal()(pair, flows, np.ones((64, 80), np.float32), None)
    assert tracks is None
    assert found is flows[0]


# --- in the estimator ---------------------------------------------------------------------------


UNFILTERED = replace(SMALL, temporal=NoTemporal())


def test_videos_are_filtered_and_pairs_are_not() -> None:
    images = moving(4)
    on, without = Estimator(SMALL), Estimator(UNFILTERED)
    filtered_items = list(hamflow.video(images, on))
    plain_items = list(hamflow.video(images, without))
    assert same_bytes(filtered_items[0].flow, plain_items[0].flow)
    assert not same_bytes(filtered_items[2].flow, plain_items[2].flow)
    for item, plain in zip(filtered_items, plain_items, strict=True):
        assert abs(item.flow - [3, 0])[12:-12, 30:-12].mean() < 0.2
        assert same_bytes(item.backward, plain.backward)
        assert same_bytes(item.confidence, plain.confidence)
        assert np.array_equal(item.occlusion, plain.occlusion)
    assert same_bytes(on.estimate(*images[:2]).flow, without.estimate(*images[:2]).flow)


def test_tracks_go_on_only_from_the_last_frame() -> None:
    """Whoever compares all frames with the first one has no tracks."""
    images = moving(3)
    results = []
    for config in (SMALL, UNFILTERED):
        estimator = Estimator(config)
        first, second, third = (estimator.frame(image) for image in images)
        _, matches = estimator.between(first, second)
        results.append(estimator.between(first, third, previous=matches)[0].flow)
        assert matches.tracks_to(first) is None
    assert same_bytes(*results)


def test_threads() -> None:
    def last() -> Array:
        return [item.flow for item in hamflow.video(moving(3), SMALL)][-1]

    assert same_bytes(*(with_threads(count, last) for count in (1, 3)))


def test_settings(tmp_path: Path) -> None:
    file = tmp_path / "off.toml"
    file.write_text('[temporal]\nmethod = "off"\n')
    assert preset_config(file) == replace(PRESETS["balanced"], temporal=NoTemporal())
    file.write_text('preset = "fast"\n[temporal]\nmethod = "tracks"\nchange = 0.5\n')
    assert preset_config(file).temporal == TrackFilter(change=0.5)
    assert preset_config("paper").temporal == NoTemporal()
    with pytest.raises(InputError, match="apart"):
        TrackFilter(apart=-1)
