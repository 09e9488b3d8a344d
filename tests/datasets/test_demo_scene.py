from __future__ import annotations

import doctest
from functools import cache
from importlib import import_module

import numpy as np
import pytest

from hamflow.datasets import demo_scene as exported
from hamflow.datasets.demo_scene import Scene, demo_scene
from hamflow.errors import InputError
from hamflow.flow import warp


@cache
def rendered(seed: int) -> Scene:
    return demo_scene(seed=seed)


@pytest.fixture
def scene() -> Scene:
    return rendered(0)


def test_shapes_and_types(scene: Scene) -> None:
    assert exported is demo_scene
    for image in (scene.image0, scene.image1):
        assert image.shape == (256, 384, 3)
        assert image.dtype == np.uint8
    assert scene.flow.shape == (256, 384, 2)
    assert scene.flow.dtype == np.float32
    assert np.isfinite(scene.flow).all()
    assert scene.occluded.shape == (256, 384)
    assert scene.occluded.dtype == np.bool_


def test_doctest() -> None:
    assert doctest.testmod(import_module("hamflow.datasets.demo_scene")).failed == 0


def test_deterministic_by_seed(scene: Scene) -> None:
    again, other = demo_scene(seed=0), rendered(1)
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
    assert difference[visible].mean() < 4
    assert (difference[visible] > 16).mean() < 0.03
    # The truth is far better than no flow at all, and than the opposite direction.
    for wrong in (np.zeros_like(scene.flow), -scene.flow):
        other = np.abs(warp(scene.image1, wrong).astype(int) - scene.image0).max(axis=2)
        assert other[visible].mean() > 5 * difference[visible].mean()


def test_hidden_pixels_do_not_match(scene: Scene) -> None:
    warped, inside = warp(scene.image1, scene.flow, return_mask=True)
    hidden = scene.occluded & inside
    difference = np.abs(warped.astype(int) - scene.image0).max(axis=2)
    assert hidden.sum() > 1000
    assert np.median(difference[hidden]) > 30


@pytest.mark.parametrize("seed", [0, 1])
def test_motions(seed: int) -> None:
    scene = rendered(seed)
    length = np.hypot(scene.flow[..., 0], scene.flow[..., 1])
    assert 34 < length.max() < 45
    assert (length > 30).mean() > 0.01  # not just a few pixels of it
    assert 0.03 < scene.occluded.mean() < 0.2
    whole = (scene.flow == np.rint(scene.flow)).all(axis=2)
    assert 0.05 < whole.mean() < 0.2  # the ellipse
    assert (scene.flow[whole] == [13, -7]).all()


def test_contrast_for_matching(scene: Scene) -> None:
    gray = scene.image0.mean(axis=2)
    assert gray.std() > 30
    blocks = gray[:, :384].reshape(32, 8, 48, 8)
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
