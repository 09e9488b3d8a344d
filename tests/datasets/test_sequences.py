"""Sequences of frames, and chains of limbs, whose joints hold in all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from _synthetic import SMALL, Doubles, SlowLayer, layers_of, mapped, same, scene, textures
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticScene, render_sequence
from hamflow.datasets.synthetic.chain import draw_chain
from hamflow.datasets.synthetic.geometry import IDENTITY, farthest, partway, power
from hamflow.datasets.synthetic.layer import Layer
from hamflow.datasets.synthetic.scene import render_scene
from hamflow.datasets.synthetic.stage import set_stage
from hamflow.errors import InputError
from hamflow.flow import warp

LIMBS = replace(SMALL, articulated_share=1.0, dull_share=0.0, max_displacement=25.0)
SPACE = replace(SMALL, perspective_share=1.0, curved_share=0.5, max_displacement=20.0)
SEEDS = range(4)


def errors(shown: SyntheticScene) -> tuple[float, float]:
    """How different visible pixels are, and how often forward and backward flow differ."""
    warped, inside = warp(shown.image1.astype(np.float32), shown.flow, return_mask=True)
    visible = ~shown.occluded & inside
    difference = np.abs(warped - shown.image0).mean(axis=2)[visible].mean()
    back = warp(shown.backward_flow, shown.flow)
    apart = np.linalg.norm(shown.flow + back, axis=2)[visible]
    return float(difference), float((apart > 0.3).mean())


# Limbs


@given(st.integers(0, 2**32 - 1))
def test_joints_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = draw_chain(rng, (40.0, 30.0), 20.0)
    base = IDENTITY + rng.normal(0, 0.1, (2, 3)) * [1, 1, 50]
    motions = chain.motions(base, chain.boxes(), SyntheticConfig(max_displacement=30.0), 4)
    assert 2 <= len(motions) == len(chain.joints) <= 5
    for frame in range(1, 4):
        for number in range(1, len(motions)):
            x, y = (np.array([axis]) for axis in chain.joints[number])
            here = mapped(motions[number - 1].at(frame), x, y)
            assert np.allclose(here, mapped(motions[number].at(frame), x, y), atol=1e-6)
    # While the shutter is open, too.
    for number in range(1, len(motions)):
        x, y = (np.array([axis]) for axis in chain.joints[number])
        halves = [mapped(partway(motions[k].affine, 0.5), x, y) for k in (number - 1, number)]
        assert np.allclose(*halves, atol=1e-6)
    for motion, box in zip(motions, chain.boxes(), strict=True):
        assert farthest(motion.affine, box) <= 30


def test_limbs_end_in_joints() -> None:
    chain = draw_chain(np.random.default_rng(1), (40.0, 30.0), 20.0)
    for number in range(len(chain.joints) - 1):
        angle, length = chain.angles[number], chain.lengths[number]
        end = np.array(chain.joints[number]) + length * np.array([np.cos(angle), np.sin(angle)])
        assert np.allclose(end, chain.joints[number + 1])
        left, top, right, bottom = chain.shape(number).box
        assert left == pytest.approx(-chain.radii[number])
        assert right == pytest.approx(length + chain.radii[number + 1])
        assert bottom == pytest.approx(-top) == pytest.approx(max(chain.radii[number : number + 2]))


@pytest.mark.parametrize("seed", SEEDS)
def test_scenes_with_limbs(seed: int) -> None:
    shown = scene(seed, LIMBS)
    difference, apart = errors(shown)
    assert difference < 6
    assert apart < 0.1
    assert np.linalg.norm(shown.flow, axis=2).max() <= 25
    assert not same(shown, scene(seed, replace(LIMBS, articulated_share=0.0)))


# Sequences


@pytest.mark.parametrize("config", [SMALL, LIMBS, SPACE])
def test_frames_follow_each_other(config: SyntheticConfig) -> None:
    for seed in SEEDS:
        pairs = render_sequence(config, seed, textures(), frames=4)
        assert len(pairs) == 3
        for number, pair in enumerate(pairs):
            difference, apart = errors(pair)
            assert difference < 6
            assert apart < 0.15
            if number:
                assert np.array_equal(pair.image0, pairs[number - 1].image1)
        moved = [np.abs(pair.flow).max() for pair in pairs]
        assert min(moved) > 0


@pytest.mark.parametrize("config", [replace(SMALL, clean=False), SPACE])
def test_two_frames_are_a_scene(config: SyntheticConfig) -> None:
    (pair,) = render_sequence(config, 3, textures(), frames=2)
    assert same(pair, render_scene(config, 3, textures()))


def test_limit_of_the_motion_in_space() -> None:
    for seed in range(6):
        for pair in render_sequence(SPACE, seed, textures(), frames=4):
            assert np.linalg.norm(pair.flow, axis=2).max() <= 20


def test_effects() -> None:
    config = replace(SMALL, clean=False, shadow=1.0, fog=1.0, motion_blur=1.0, vignette=1.0)
    clean = render_sequence(replace(config, clean=True), 2, textures())
    final = render_sequence(config, 2, textures())
    for before, after in zip(clean, final, strict=True):
        assert np.array_equal(before.flow, after.flow)
        assert np.abs(before.image0.astype(int) - after.image0).mean() > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_layers_by_their_definition(seed: int) -> None:
    """Motions are repeated, and the bending swings: 1, 0, -1, 0."""
    layers = set_stage(np.random.default_rng([seed, 0]), SMALL, textures(), 4)
    assert len(layers) == len(layers_of(SMALL, seed, textures()))
    rng = np.random.default_rng(seed)
    for layer in layers:
        x, y = rng.uniform(20, 90, (2, 10))
        for frame, other in ((0, 1), (1, 2), (2, 3), (2, 1), (3, 2), (0, 2)):
            at = [place(layer, x, y, k) for k in (frame, other)]
            moved = layer.follow(frame, other, *(axis.astype(np.float32) for axis in at[0]))
            assert np.allclose(moved[:2], at[1], atol=5e-3)
            texels = layer.coordinates(other, *(axis.astype(np.float32) for axis in at[1]))
            assert np.allclose(texels, mapped(layer.place, x, y), atol=5e-3)


def place(layer: Layer, x: Doubles, y: Doubles, frame: int) -> tuple[Doubles, Doubles]:
    """Return where a point, given after the bending, is in a frame."""
    before_x, before_y = x, y
    factor = (1, 0, -1, 0)[frame]
    for _ in range(60):  # x = before + bending(before)
        bent_x, bent_y = SlowLayer(layer).bend(before_x, before_y)
        before_x = x - factor * (bent_x - before_x)
        before_y = y - factor * (bent_y - before_y)
    return mapped(power(layer.motion.affine, frame), before_x, before_y)


def test_bad_count() -> None:
    with pytest.raises(InputError, match="frames must be at least 2, but is 1"):
        render_sequence(SMALL, 0, textures(), frames=1)
