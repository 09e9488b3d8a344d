from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from _synthetic import check_kinds
from hamflow.datasets import SyntheticScene, demo_scene
from hamflow.errors import InputError
from hamflow.flow import warp


@cache
def rendered(seed: int) -> SyntheticScene:
    return demo_scene(seed=seed)


def test_shapes_and_types() -> None:
    check_kinds(rendered(0), (256, 456))


def test_deterministic_by_seed() -> None:
    scene, again, other = rendered(0), demo_scene(seed=0), rendered(1)
    for name in ("image0", "image1", "flow", "occluded"):
        assert getattr(scene, name).tobytes() == getattr(again, name).tobytes()
        assert getattr(scene, name).tobytes() != getattr(other, name).tobytes()


@pytest.mark.parametrize("seed", [0, 1])
def test_second_frame_warps_back_to_the_first(seed: int) -> None:
    scene = rendered(seed)
    warped, inside = warp(scene.image1, scene.flow, return_mask=True)
    visible = ~scene.occluded
    assert (inside | scene.occluded).all()
    difference = np.abs(warped.astype(int) - scene.image0).max(axis=2)
    # Outlines are mixtures of two layers, so a few pixels along them differ.
    assert np.median(difference[visible]) < 5
    assert (difference[visible] > 30).mean() < 0.04
    # The truth is far better than no flow at all, and than the opposite direction.
    for wrong in (np.zeros_like(scene.flow), -scene.flow):
        other = np.abs(warp(scene.image1, wrong).astype(int) - scene.image0).max(axis=2)
        assert other[visible].mean() > 3 * difference[visible].mean()


def test_hidden_pixels_do_not_match() -> None:
    scene = rendered(0)
    warped, inside = warp(scene.image1, scene.flow, return_mask=True)
    hidden = scene.occluded & inside
    difference = np.abs(warped.astype(int) - scene.image0).max(axis=2)
    assert hidden.sum() > 1000
    assert np.median(difference[hidden]) > 30


@pytest.mark.parametrize("seed", range(8))
def test_motions(seed: int) -> None:
    scene = rendered(seed)
    length = np.hypot(scene.flow[..., 0], scene.flow[..., 1])
    assert 34 < length.max() < 47  # within the window of the demo
    assert (length > 25).mean() > 0.01  # not just a few pixels of it
    assert 0.05 < scene.occluded.mean() < 0.2
    # Motions in all directions: each eighth of the color wheel has its pixels.
    far = length > 10
    eighths = np.floor(np.arctan2(scene.flow[..., 1], scene.flow[..., 0])[far] / (np.pi / 4))
    assert (np.bincount((eighths % 8).astype(int), minlength=8) > 100).sum() >= 6
    # The camera moves: nowhere is there no motion at all but at a point that it turns about.
    assert (length < 0.25).mean() < 0.01


def test_contrast_for_matching() -> None:
    gray = rendered(0).image0.mean(axis=2)
    assert gray.std() > 30
    blocks = gray.reshape(32, 8, 57, 8)
    assert (blocks.std(axis=(1, 3)) > 2).mean() > 0.97


@pytest.mark.parametrize("size", [(32, 32), (33, 200), (200, 33), (97, 131), (436, 300)])
def test_any_size(size: tuple[int, int]) -> None:
    scene = demo_scene(*size)
    assert scene.image0.shape == (*size, 3)
    assert scene.image0.std() > 10
    assert scene.occluded.any()
    assert not scene.occluded.all()


def test_bad_arguments() -> None:
    for size in ((31, 100), (100, 31), (0, 0), (-5, 100)):
        with pytest.raises(InputError, match="at least 32"):
            demo_scene(*size)
    with pytest.raises(InputError, match="seed"):
        demo_scene(64, 64, seed=-1)
