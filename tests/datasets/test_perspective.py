"""Scenes in space: patches against a slow projection, and frames against the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from _synthetic import CURVED, SMALL, SPACE, STILL, backdrop, same, scene, textures
from hamflow.datasets.synthetic import SyntheticConfig, render_scene
from hamflow.datasets.synthetic.compose import Canvas, Haze, truth
from hamflow.datasets.synthetic.patch import Patch, Rigid, View, rotation
from hamflow.datasets.synthetic.scene import render_both
from hamflow.flow import warp

SEEDS = range(8)


def patch_of(rng: np.random.Generator, **attributes: Any) -> Patch:
    """A patch a few units in front of a camera that moves; both turn and shift."""
    picture = Image.fromarray(rng.integers(0, 256, (40, 60, 4), np.uint8), "RGBA")
    center = np.array([0.2, -0.1, 4.0])
    tilt = rotation(rng.normal(0, 0.3, 3))
    right, down = tilt @ [0.05, 0, 0], tilt @ [0, 0.05, 0]
    plane = np.column_stack([right, down, center - 30 * right - 20 * down])
    view = View(
        90.0,
        (64.0, 50.0),
        (2.0, 20.0),
        Rigid(rng.normal(0, 0.03, 3), rng.normal(0, 0.2, 3), np.zeros(3)),
    )
    motion = Rigid(rng.normal(0, 0.1, 3), rng.normal(0, 0.2, 3), center)
    return Patch.of(
        picture, **({"plane": plane, "motion": motion, "view": view, "depth": 0.5} | attributes)
    )


def slowly(patch: Patch, column: float, row: float, time: float) -> tuple[float, float]:
    """Which pixel shows the center of a texel, point by point."""
    point = patch.plane @ np.array([column, row, 1.0])
    turned = rotation(time * patch.motion.turn)
    point = turned @ (point - patch.motion.center) + patch.motion.center + time * patch.motion.shift
    point = rotation(time * patch.view.motion.turn) @ point + time * patch.view.motion.shift
    x, y = patch.view.focal * point[:2] / point[2] + patch.view.center
    return float(x), float(y)


@pytest.mark.parametrize("seed", range(5))
def test_a_patch_is_where_it_is_projected_to(seed: int) -> None:
    rng = np.random.default_rng(seed)
    patch = patch_of(rng)
    for column, row in rng.uniform(3, 35, (20, 2)):
        first, second = slowly(patch, column, row, 0.0), slowly(patch, column, row, 1.0)
        moved = patch.follow(0, 1, np.float32([first[0]]), np.float32([first[1]]))
        assert np.allclose([moved[0][0], moved[1][0]], second, atol=1e-3)
        back = patch.follow(1, 0, np.float32([second[0]]), np.float32([second[1]]))
        assert np.allclose([back[0][0], back[1][0]], first, atol=1e-3)
        # Seen from nearby, the texture itself is looked up, not a smaller copy.
        at = patch.coordinates(1, np.float32([second[0]]), np.float32([second[1]]))
        assert np.allclose([at[0][0], at[1][0]], (column, row), atol=2e-3)
        left, top, right, bottom = patch.box(1)
        assert left <= second[0] <= right
        assert top <= second[1] <= bottom


def test_motion_blur_follows_the_true_path() -> None:
    patch = patch_of(np.random.default_rng(3))
    x, y = slowly(patch, 20.0, 15.0, 0.4)
    at = patch.coordinates(0, np.float32([x]), np.float32([y]), time=0.4)
    assert np.allclose([at[0][0], at[1][0]], (20, 15), atol=2e-3)


def test_nothing_is_seen_outside_of_a_patch_nor_from_behind() -> None:
    solid_picture = Image.new("RGBA", (30, 30), (9, 9, 9, 255))
    rng = np.random.default_rng(0)
    like = patch_of(rng)
    attributes = {"plane": like.plane, "motion": STILL, "depth": 0.5}
    view = replace(like.view, motion=STILL)
    patch = Patch.of(solid_picture, view=view, one_sided=True, **attributes)
    inside = slowly(patch, 15, 15, 0.0)
    outside = slowly(patch, 60, 15, 0.0)

    def coverage(shown: Patch, place: tuple[float, float]) -> int:
        at = shown.coordinates(0, np.float32([place[0]]), np.float32([place[1]]))
        return int(shown.texels.look_up(*at)[0, 3])

    assert coverage(patch, inside) == 255 * 256
    assert coverage(patch, outside) == 0
    # The same with its rows the other way around is seen from behind.
    turned = replace(patch, plane=patch.plane * [-1, 1, 1])
    place = np.float32([inside[0]]), np.float32([inside[1]])
    assert not turned.follow(0, 0, *place)[2]
    assert patch.follow(0, 0, *place)[2]
    assert coverage(turned, slowly(turned, 15, 15, 0.0)) == 0


def test_distant_texture_is_averaged() -> None:
    """Single texels of a far checkerboard are not picked out: no aliasing."""
    board = np.indices((256, 256)).sum(axis=0) % 2 * 255
    picture = Image.fromarray(
        np.dstack([board] * 3 + [np.full_like(board, 255)]).astype(np.uint8), "RGBA"
    )
    plane = np.column_stack([[0.01, 0, 0], [0, 0.01, 0], [-1.28, -1.28, 12.0]])
    patch = Patch.of(
        picture,
        plane=plane,
        motion=STILL,
        view=View(100.0, (0.0, 0.0), (1.0, 20.0), STILL),
        depth=0.5,
    )
    x, y = (
        axis.ravel().astype(np.float32)
        for axis in np.meshgrid(np.linspace(-6, 6, 9), np.linspace(-6, 6, 9))
    )
    gray = patch.texels.look_up(*patch.coordinates(0, x, y))[:, 0] / 256
    assert abs(gray - 127.5).max() < 3


def test_depth_grows_with_the_distance() -> None:
    plane = np.column_stack([[0.1, 0, 0], [0, 0, -0.1], [-3, 1.0, 8.0]])  # the ground
    view = View(100.0, (50.0, 40.0), (2.0, 8.0), STILL)
    patch = Patch.of(Image.new("RGBA", (60, 70)), plane=plane, motion=STILL, view=view, depth=0.5)
    rows = np.float32([40 + 100 / 8, 60, 40 + 100 / 2, 99])
    depths = patch.depths(0, np.full(4, 50, np.float32), rows)
    assert depths[0] == pytest.approx(1, abs=1e-4)
    assert depths[2] == pytest.approx(0, abs=1e-4)
    assert (np.diff(depths) <= 0).all()
    haze = Haze(0.8, 0.1, np.float32([200, 200, 200]))
    assert haze.share(1.0) == pytest.approx(0.8)
    assert (np.diff(haze.share(depths)) <= 0).all()


@pytest.mark.parametrize("config", [SPACE, CURVED], ids=["flat", "curved"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_second_frame_warped_is_the_first(seed: int, config: SyntheticConfig) -> None:
    shown = scene(seed, config)
    warped, inside = warp(shown.image1.astype(np.float32), shown.flow, return_mask=True)
    error = np.abs(warped - shown.image0).mean(axis=2)
    visible = ~shown.occluded & inside
    assert np.median(error[visible]) < 3
    assert error[visible].mean() < 6
    # Shifted by two pixels it is not, so that this shows something.
    moved = warp(shown.image1.astype(np.float32), shown.flow + np.float32(2))
    assert np.abs(moved - shown.image0).mean(axis=2)[visible].mean() > 2 * error[visible].mean()


@pytest.mark.parametrize("config", [SPACE, CURVED], ids=["flat", "curved"])
@pytest.mark.parametrize("seed", SEEDS)
def test_forward_and_backward_flow_agree_where_both_see(seed: int, config: SyntheticConfig) -> None:
    shown = scene(seed, config)
    back, inside = warp(shown.backward_flow, shown.flow, return_mask=True)
    apart = np.linalg.norm(shown.flow + back, axis=2)[~shown.occluded & inside]
    assert (apart < 0.3).mean() > 0.9  # between things the warped flow is a mixture


def test_motion_has_a_limit_and_reaches_it() -> None:
    # Small frames, in which thin things are easily missed between the measured pixels.
    small = replace(SPACE, height=48, width=64, max_displacement=12.0)
    for config in (SPACE, small, CURVED):
        scenes = (scene(seed, config) for seed in range(16))
        longest = max(float(np.linalg.norm(s.flow, axis=2).max()) for s in scenes)
        assert 0.5 * config.max_displacement < longest <= config.max_displacement


def test_all_of_a_face_that_turns_away_is_occluded() -> None:
    like = patch_of(np.random.default_rng(1))
    view = replace(like.view, motion=STILL)
    half_turn = Rigid(np.array([0, 2.5, 0]), np.zeros(3), np.array([0.2, -0.1, 4.0]))
    face = Patch.of(
        Image.new("RGBA", (30, 30), (200, 0, 0, 255)),
        plane=np.column_stack([[0.05, 0, 0], [0, 0.05, 0], [-0.5, -0.8, 4.0]]),
        motion=half_turn,
        view=view,
        depth=0.2,
        one_sided=True,
    )
    flow, occluded = truth(Canvas(100, 130), [backdrop(view), face], 0, 1)
    red = np.linalg.norm(flow, axis=2) > 0.01
    assert 300 < red.sum() < 2000
    assert occluded[red].all()
    assert not occluded[~red].any()


def test_effects_leave_the_truth() -> None:
    clean, final = render_both(
        replace(SPACE, clean=False, fog=1.0, motion_blur=1.0, defocus=1.0), 5, textures()
    )
    assert same(replace(final, image0=clean.image0, image1=clean.image1), clean)
    assert abs(final.image0.astype(int) - clean.image0).mean() > 1


def test_some_scenes_are_in_space() -> None:
    """The share decides per scene, and scenes without perspective are what they were."""
    flat = [render_scene(SMALL, seed, textures()) for seed in SEEDS]
    mixed = [
        render_scene(replace(SMALL, perspective_share=0.5), seed, textures()) for seed in SEEDS
    ]
    unchanged = sum(same(a, b) for a, b in zip(flat, mixed, strict=True))
    assert 0 < unchanged < len(flat)


@pytest.mark.parametrize("curved", [0.0, 1.0])
@pytest.mark.parametrize("size", [(32, 32), (33, 150), (150, 33)])
def test_any_size(size: tuple[int, int], curved: float) -> None:
    config = SyntheticConfig(
        height=size[0], width=size[1], perspective_share=1.0, curved_share=curved
    )
    for seed in range(3):
        shown = scene(seed, config)
        assert shown.image0.shape == (*size, 3)
        assert np.isfinite(shown.flow).all()
        assert np.isfinite(shown.backward_flow).all()
