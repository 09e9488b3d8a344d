"""Synthetic scenes: the flow is exact, and its motions are varied."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from _synthetic import (
    EFFECTS,
    EXACT,
    SEEDS,
    SMALL,
    SlowLayer,
    layers_of,
    pixels,
    same_around,
    scene,
    smooth,
    textures,
)
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticScene, render_scene
from hamflow.datasets.synthetic.compose import Canvas, owners
from hamflow.datasets.synthetic.geometry import Elastic
from hamflow.flow import warp

# Exactness of the flow


def residual_motion(
    shown: SyntheticScene, flow: NDArray[np.float32], inner: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return, block by block, by how many pixels the second frame seems to be off after warping.

    That is one step of Lucas and Kanade's method; blocks without structure are left out.
    """
    first = smooth(shown.image0)
    other = warp(np.repeat(smooth(shown.image1)[..., None], 3, axis=2), flow)[..., 0]
    valid = inner & np.isfinite(other)
    off = np.where(valid, other - first, 0).astype(np.float64)
    gy, gx = np.gradient((first + np.where(valid, other, first)) / 2)
    gx, gy = gx * valid, gy * valid
    found = []
    for top in range(0, off.shape[0] - 23, 24):
        for left in range(0, off.shape[1] - 23, 24):
            block = np.s_[top : top + 24, left : left + 24]
            a, b, c = (np.sum(p[block] * q[block]) for p, q in ((gx, gx), (gx, gy), (gy, gy)))
            matrix = np.array([[a, b], [b, c]])
            if np.linalg.eigvalsh(matrix)[0] > 2000:
                right = [np.sum(gx[block] * off[block]), np.sum(gy[block] * off[block])]
                found.append(np.linalg.solve(matrix, right))
    return np.linalg.norm(np.array(found).reshape(-1, 2), axis=1)


def away_from_outlines(
    config: SyntheticConfig, seed: int, shown: SyntheticScene
) -> NDArray[np.bool_]:
    """Return pixels that are visible in both frames and at least 4 pixels from any other layer."""
    layers = layers_of(config, seed, textures())
    canvas = Canvas(config.height, config.width)
    here, there = (same_around(owners(canvas, layers, k), 4) for k in range(2))
    x, y = pixels(config)
    at = np.rint([x + shown.flow[..., 0], y + shown.flow[..., 1]]).astype(int)
    column, row = np.clip(at[0], 0, config.width - 1), np.clip(at[1], 0, config.height - 1)
    return here & there[row, column] & ~shown.occluded


def looks_exact(config: SyntheticConfig, seed: int, error: tuple[float, float] = (0, 0)) -> bool:
    shown = scene(seed, config)
    inner = away_from_outlines(config, seed, shown)
    off = residual_motion(shown, shown.flow + np.array(error, np.float32), inner)
    assert len(off) >= 10
    return bool(np.median(off) < 0.05 and np.quantile(off, 0.9) < 0.12)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 7])
def test_second_frame_warps_back_to_the_first(seed: int) -> None:
    assert looks_exact(EXACT, seed)
    # The criterion sees small errors, in any direction.
    for error in ((0.3, 0), (0, -0.3), (-0.2, 0.2)):
        assert not looks_exact(EXACT, seed, error)

    shown = scene(seed, EXACT)
    inner = away_from_outlines(EXACT, seed, shown)
    difference = np.abs(warp(shown.image1, shown.flow).astype(int) - shown.image0).max(axis=2)
    assert inner.mean() > 0.1
    # What bilinear interpolation loses.
    assert difference[inner].mean() < 10


def test_blurred_frames_are_where_the_flow_says() -> None:
    config = replace(EXACT, clean=False, **dict.fromkeys(EFFECTS, 0.0) | {"motion_blur": 1.0})
    for seed in (1, 2, 5):
        assert not np.array_equal(scene(seed, config).image0, scene(seed, EXACT).image0)
        assert looks_exact(config, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_flow_is_that_of_the_layers(seed: int) -> None:
    """Evaluate all layers again in double precision, pixel by pixel and without any shortcut."""
    shown = scene(seed)
    layers = [SlowLayer(layer) for layer in layers_of(SMALL, seed, textures())]
    x, y = pixels(SMALL)
    for frame, flow, hidden in (
        (0, shown.flow, shown.occluded),
        (1, shown.backward_flow, shown.backward_occluded),
    ):
        owner = np.zeros(x.shape, int)
        clear = np.ones(x.shape, np.bool_)  # decided not only by rounding
        for number, layer in enumerate(layers):
            cover = layer.covers(frame, x, y)
            owner[cover > 0.5] = number
            clear &= np.abs(cover - 0.5) > 0.02
        tx, ty = x + flow[..., 0], y + flow[..., 1]
        covered = (tx < 0) | (tx > SMALL.width - 1) | (ty < 0) | (ty > SMALL.height - 1)
        for number, layer in enumerate(layers):
            mine = clear & (owner == number)
            if frame == 0:
                there = layer.target(x[mine], y[mine])
                assert np.allclose(there, (tx[mine], ty[mine]), atol=1e-3)
            else:
                # The flow back is exact if the way forth leads to where it started.
                back = layer.target(tx[mine], ty[mine])
                assert np.allclose(back, (x[mine], y[mine]), atol=2e-3)
            cover = layer.covers(1 - frame, tx, ty)
            covered |= (cover > 0.5) & (owner < number)
            clear &= (np.abs(cover - 0.5) > 0.02) | (owner >= number)
        at_border = (np.abs(tx) < 1e-3) | (np.abs(tx - SMALL.width + 1) < 1e-3)
        at_border |= (np.abs(ty) < 1e-3) | (np.abs(ty - SMALL.height + 1) < 1e-3)
        assert clear.mean() > 0.95
        assert (covered == hidden)[clear & ~at_border].all()


def test_masks_are_not_trivial() -> None:
    hidden = np.array(
        [[scene(s).occluded.mean(), scene(s).backward_occluded.mean()] for s in SEEDS]
    )
    assert hidden.max() < 0.9
    assert (hidden.mean(axis=0) > 0.02).all()
    # Hidden, and not only out of the frame.
    covered = 0
    for seed in SEEDS:
        _, inside = warp(scene(seed).image1, scene(seed).flow, return_mask=True)
        assert (inside | scene(seed).occluded).all()
        covered += int((scene(seed).occluded & inside).sum())
    assert covered > 500


@pytest.mark.parametrize("seed", SEEDS)
def test_forth_and_back(seed: int) -> None:
    shown = scene(seed)
    inner = away_from_outlines(SMALL, seed, shown)
    back = warp(shown.backward_flow, shown.flow)
    off = np.linalg.norm(back + shown.flow, axis=2)[inner]
    # Only interpolation of the bent flow between pixels is not exact.
    assert np.quantile(off, 0.99) < 0.02
    assert off.max() < 0.2


def test_hidden_pixels_do_not_match() -> None:
    worse = []
    for seed in SEEDS:
        shown = scene(seed)
        warped, inside = warp(shown.image1, shown.flow, return_mask=True)
        difference = np.abs(warped.astype(int) - shown.image0).max(axis=2)
        hidden = same_around(shown.occluded, 1) & shown.occluded & inside
        if hidden.sum() > 50:
            visible = away_from_outlines(SMALL, seed, shown)
            worse.append(np.median(difference[hidden]) - np.median(difference[visible]))
    assert len(worse) >= 2
    assert np.mean(worse) > 15


# Motions


@cache
def lengths() -> list[NDArray[np.float32]]:
    config = replace(SMALL, height=64, width=80, max_displacement=60)
    scenes = (render_scene(config, seed, textures()) for seed in range(100, 150))
    return [np.linalg.norm(shown.flow, axis=2) for shown in scenes]


def test_displacements_are_heavy_tailed() -> None:
    farthest = np.array([length.max() for length in lengths()])
    assert farthest.max() <= 60
    assert farthest.max() > 50
    assert (farthest < 7).mean() > 0.05  # scenes with small motion only
    every = np.concatenate([length.ravel() for length in lengths()])
    for low, high in ((0.0, 1.0), (1.0, 5.0), (5.0, 20.0), (20.0, 60.0)):
        assert 0.05 < ((every >= low) & (every < high)).mean() < 0.6


def test_subpixel_motion_in_all_directions() -> None:
    flow = np.concatenate([scene(seed).flow.reshape(-1, 2) for seed in SEEDS])
    moving = flow[np.linalg.norm(flow, axis=1) > 0.2]
    parts, _ = np.histogram(np.mod(moving, 1), 10, (0, 1))
    assert parts.min() > 0.03 * moving.size
    angles = [np.arctan2(*scene(s).flow.mean(axis=(0, 1))) for s in range(24)]
    quarters, _ = np.histogram(angles, 4, (-np.pi, np.pi))
    assert quarters.min() >= 1


def test_large_displacements() -> None:
    config = SyntheticConfig(height=64, width=300, max_displacement=250, camera_share=1.0,
                             small_share=0.0, clean=True)  # fmt: skip
    longest = [np.linalg.norm(scene(seed, config).flow, axis=2).max() for seed in range(8)]
    assert max(longest) > 180
    assert max(longest) <= 250


def test_still_scenes_are_exactly_still() -> None:
    config = replace(SMALL, still_share=1.0, camera_share=0.0, elastic_share=0.0)
    found = [scene(seed, config) for seed in range(8)]
    still = [shown for shown in found if not shown.flow.any()]
    assert still  # the background may move by itself
    for shown in still:
        assert np.array_equal(shown.image0, shown.image1)
        assert not shown.occluded.any()
        assert not shown.backward_flow.any()


@given(
    seed=st.integers(0, 2**32),
    strain=st.floats(0.01, 0.5),
    size=st.floats(6, 500),
)
@settings(max_examples=30)
def test_bending_can_be_undone(seed: int, strain: float, size: float) -> None:
    rng = np.random.default_rng(seed)
    waves = np.column_stack([rng.normal(0, 2 / size, (3, 2)), rng.uniform(0, 6, 3)])
    unit = Elastic(waves, rng.normal(0, 1, (3, 2)))
    elastic = unit.scaled(strain / unit.strain)
    assert elastic.strain == pytest.approx(strain)
    x, y = rng.uniform(-100, 1000, (2, 200)).astype(np.float32)
    dx, dy = elastic(x, y)
    assert np.hypot(dx, dy).max() <= elastic.reach * 1.0001
    back_x, back_y = elastic.undo(x + dx, y + dy)
    tolerance = 1e-3 + 1e-5 * elastic.reach
    assert np.abs(back_x - x).max() < tolerance
    assert np.abs(back_y - y).max() < tolerance
