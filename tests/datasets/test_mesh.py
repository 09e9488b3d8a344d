"""Curved surfaces in space: against rays and projections one by one, and frames against truth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from _synthetic import CURVED, STILL, backdrop, same, scene, textures
from hamflow import _native
from hamflow.datasets.synthetic import SyntheticConfig, render_scene
from hamflow.datasets.synthetic.compose import Canvas, truth
from hamflow.datasets.synthetic.curved import hills, sheet, turned_body
from hamflow.datasets.synthetic.layer import Texels
from hamflow.datasets.synthetic.mesh import Mesh, Sway
from hamflow.datasets.synthetic.patch import Rigid, View, rotation
from hamflow.flow import warp

Doubles = NDArray[np.float64]
SEEDS = range(8)


def triangles(points: Doubles) -> list[tuple[Doubles, Doubles]]:
    """The corners of each triangle in space, and in the grid (column, row)."""
    found = []
    for row in range(len(points) - 1):
        for column in range(points.shape[1] - 1):
            for places in (((0, 0), (0, 1), (1, 0)), ((1, 1), (0, 1), (1, 0))):
                corners = [points[row + i, column + j] for i, j in places]
                found.append(
                    (np.array(corners), np.array([[column + j, row + i] for i, j in places]))
                )
    return found


def ray(points: Doubles, camera: tuple[float, float, float], x: float, y: float) -> Doubles | None:
    """Column, row and 1 / depth of the first triangle that a ray meets."""
    focal, center_x, center_y = camera
    direction = np.array([(x - center_x) / focal, (y - center_y) / focal, 1.0])
    nearest, depth = None, np.inf
    for corners, places in triangles(points):
        # direction * depth = shares @ corners, and the shares sum to 1
        matrix = np.column_stack([direction, corners[0] - corners[1], corners[0] - corners[2]])
        if abs(np.linalg.det(matrix)) < 1e-14:
            continue
        distance, second, third = np.linalg.solve(matrix, corners[0])
        shares = np.array([1 - second - third, second, third])
        if (shares >= -1e-9).all() and 0 < distance < depth:
            depth = distance
            nearest = np.array([*(shares @ places), 1 / distance])
    return nearest


def mesh_of(seed: int, points: Doubles | None = None, sway: Sway | None = None) -> Mesh:
    """A surface a few units in front of a camera that moves; both turn and shift."""
    rng = np.random.default_rng(seed)
    center = np.array([0.2, -0.1, 4.0])
    if points is None:
        points = np.stack(
            [*np.meshgrid(np.linspace(-0.9, 0.9, 6), np.linspace(-0.7, 0.7, 5)), np.zeros((5, 6))],
            axis=2,
        )
        points[..., 2] = rng.normal(0, 0.25, (5, 6))
    camera = Rigid(rng.normal(0, 0.03, 3), rng.normal(0, 0.1, 3), np.zeros(3))
    view = View(90.0, (64.0, 50.0), (2.0, 20.0), camera)
    motion = Rigid(rng.normal(0, 0.2, 3), rng.normal(0, 0.2, 3), center)
    picture = Image.fromarray(rng.integers(0, 256, (30, 40, 4), np.uint8), "RGBA")
    return Mesh(Texels.of(picture), points + center, motion, view, 0.5, sway)


def slow_pose(mesh: Mesh, time: float) -> Doubles:
    """The grid at some time, point by point."""
    moved = np.empty_like(mesh.points)
    for row, column in np.ndindex(mesh.points.shape[:2]):
        point = mesh.points[row, column].copy()
        if mesh.sway is not None:
            for (across, down, phase), amplitude, speed in zip(
                mesh.sway.waves, mesh.sway.amplitudes, mesh.sway.speeds, strict=True
            ):
                angle = across * column + down * row + phase + speed * time
                point += mesh.sway.direction * amplitude * np.sin(angle)
        own, view = mesh.motion, mesh.view.motion
        point = rotation(time * own.turn) @ (point - own.center) + own.center + time * own.shift
        moved[row, column] = rotation(time * view.turn) @ point + time * view.shift
    return moved


def swaying(seed: int) -> Mesh:
    rng = np.random.default_rng(seed)
    grid, sway = sheet(rng, 1.5, np.eye(3))
    coarse = replace(sway, waves=sway.waves * [6, 6, 1])
    return mesh_of(seed, grid[::6, ::6], coarse)


def camera_of(mesh: Mesh) -> tuple[float, float, float]:
    return mesh.view.focal, *mesh.view.center


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_trace_meets_the_first_triangle(seed: int) -> None:
    mesh = mesh_of(seed)
    pose = mesh.pose(0.0)
    x, y = np.random.default_rng(seed).uniform(30, 100, (2, 25)).astype(np.float32)
    met = np.empty((3, 25), np.float32)
    _native.trace(pose, camera_of(mesh), 0.05, x, y, met)
    for k in range(25):
        expected = ray(pose, camera_of(mesh), float(x[k]), float(y[k]))
        if expected is None:
            assert met[2, k] == 0
        else:
            assert np.allclose(met[:, k], expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_pose(seed: int) -> None:
    for mesh in (mesh_of(seed), swaying(seed)):
        for time in (0.0, 0.3, 1.0, 2.0):
            assert np.allclose(mesh.pose(time), slow_pose(mesh, time), atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_flow_and_what_hides_itself(seed: int) -> None:
    """Points of the surface are followed, and seen unless a nearer part is in the way."""
    mesh = swaying(seed) if seed % 2 else mesh_of(seed)
    rng = np.random.default_rng(seed)
    poses, camera = (slow_pose(mesh, 0.0), slow_pose(mesh, 1.0)), camera_of(mesh)
    seen = []
    for x, y in rng.uniform([45, 35], [90, 65], (60, 2)).astype(np.float32).tolist():
        place = ray(poses[0], camera, x, y)
        covers = mesh.covers(0, np.float32([x]), np.float32([y]))
        if place is None:
            assert not covers[0]
            continue
        left, top = int(place[0]), int(place[1])
        for _, places in triangles(poses[0][top : top + 2, left : left + 2]):
            shares = np.linalg.solve(
                np.vstack([places.T, np.ones(3)]), [*(place[:2] - [left, top]), 1]
            )
            if (shares >= -1e-6).all():
                numbers = places + np.array([left, top])
                there = shares @ poses[1][numbers[:, 1], numbers[:, 0]]
        target = camera[0] * there[:2] / there[2] + camera[1:]
        moved_x, moved_y, visible = mesh.follow(0, 1, np.float32([x]), np.float32([y]))
        assert np.allclose([moved_x[0], moved_y[0]], target, atol=2e-3)
        first = ray(poses[1], camera, *target)
        if first is not None and abs(first[2] * there[2] - 1) > 1e-3:
            assert not visible[0]
        elif first is None or first[2] * there[2] - 1 < 1e-5:
            assert visible[0]
        seen.append(visible[0])
    assert len(seen) > 10


def test_color_is_the_mean_of_rays() -> None:
    mesh = mesh_of(3)
    x, y = np.float32([60, 64, 70, 88, 91]), np.float32([50, 50, 42, 51, 52])
    lanes = mesh.look(0, x, y)
    for k in range(len(x)):
        total = np.zeros(4)
        for dx in (-1 / 3, 0, 1 / 3):
            for dy in (-1 / 3, 0, 1 / 3):
                place = ray(mesh.pose(0.0), camera_of(mesh), float(x[k]) + dx, float(y[k]) + dy)
                if place is not None:
                    at = np.float32([place[0] * 39 / 5]), np.float32([place[1] * 29 / 4])
                    color = mesh.texels.look_up(*at)[0].astype(np.float64)
                    total += np.array([*(color[:3] * color[3]), color[3]])
        assert lanes[k, 3] == pytest.approx(total[3] / 9, abs=300)
        if total[3]:
            assert np.allclose(lanes[k, :3], total[:3] / total[3], atol=600)
    # Beside the surface there is nothing.
    assert not mesh.look(0, np.float32([5]), np.float32([5])).any()


def test_the_back_of_a_tube_is_occluded() -> None:
    """A third of a turn: what comes from the front goes out of view on one side."""
    angles = np.linspace(0, 2 * np.pi, 25)
    x, z = np.tile(0.5 * np.sin(angles), (2, 1)), np.tile(0.5 * np.cos(angles), (2, 1))
    y = np.repeat([[-1.0], [1.0]], 25, axis=1)
    center = np.array([0, 0, 4.0])
    view = View(100.0, (64.0, 48.0), (2.0, 20.0), STILL)
    white = Image.new("RGBA", (48, 48), (250, 250, 250, 255))
    turning = Rigid(np.array([0, 2 * np.pi / 3, 0]), np.zeros(3), center)
    tube = Mesh(Texels.of(white), np.stack([x, y, z], axis=2) + center, turning, view, 0.5)
    flow, occluded = truth(Canvas(96, 128), [backdrop(view), tube], 0, 1)
    on_tube = np.linalg.norm(flow, axis=2) > 0
    row = slice(40, 56)
    columns = np.flatnonzero(on_tube[48])
    assert 22 <= len(columns) <= 28
    # About two thirds of the visible half turn away.
    assert occluded[row][on_tube[row]].mean() == pytest.approx(2 / 3, abs=0.15)
    assert not occluded[~on_tube].any()
    hidden = np.flatnonzero(occluded[48])
    assert (np.diff(hidden) == 1).all()


def test_forms_are_finite_and_of_their_size() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        body = turned_body(rng, 1.0)
        assert np.isfinite(body).all()
        assert np.allclose(body[:, 0], body[:, -1])
        assert 0.1 < np.abs(body).max() < 3
        assert np.allclose(body[[0, -1]][..., [0, 2]], 0)
        land = hills(rng, 4.0, 6.0)
        assert (land[..., 1] <= 0).all()
        assert np.allclose(land[[0, -1], :, 1], 0)
        assert land[0, 0, 2] == 3


def test_some_things_are_curved() -> None:
    flat = replace(CURVED, curved_share=0.0)
    changed = sum(
        not same(render_scene(flat, seed, textures()), scene(seed, CURVED)) for seed in SEEDS
    )
    assert changed >= 6
    effects = replace(CURVED, clean=False, fog=1.0, motion_blur=1.0, defocus=1.0)
    assert render_scene(effects, 1, textures()).image0.std() > 3


@settings(max_examples=15)
@given(
    size=st.tuples(st.integers(32, 72), st.integers(32, 72)),
    seed=st.integers(0, 2**64),
    largest=st.floats(0.5, 300),
    thin=st.floats(0, 1),
    still=st.floats(0, 1),
)
def test_any_settings(
    size: tuple[int, int], seed: int, largest: float, thin: float, still: float
) -> None:
    config = SyntheticConfig(
        height=size[0],
        width=size[1],
        max_displacement=largest,
        perspective_share=1.0,
        curved_share=0.7,
        specular=1.0,
        thin_share=thin,
        still_share=still,
    )
    shown = render_scene(config, seed, textures())
    assert np.linalg.norm(shown.flow, axis=2).max() <= largest + 1e-3
    assert np.isfinite(shown.backward_flow).all()
    _, inside = warp(shown.image1, shown.flow, return_mask=True)
    assert (inside | shown.occluded).all()


def test_wrong_arguments() -> None:
    pose, camera = np.ones((2, 2, 3)), (10.0, 0.0, 0.0)
    x, met = np.zeros(2, np.float32), np.zeros((3, 2), np.float32)
    with pytest.raises(ValueError, match="points"):
        _native.trace(pose[:1], camera, 0.1, x, x, met)
    with pytest.raises(ValueError, match="near"):
        _native.trace(pose, camera, 0.0, x, x, met)
    with pytest.raises(ValueError, match="16384"):
        _native.trace(pose, camera, 0.1, x * np.nan, x, met)
    with pytest.raises(ValueError, match="rays"):
        words, lanes = np.zeros((2, 2), np.uint64), np.zeros((2, 4), np.uint16)
        _native.mesh_lanes(pose, camera, 0.1, words, 2, x, x, lanes)
    far, lanes = np.float32([-16384, 16384]), np.zeros((2, 4), np.uint16)
    for places in ((far, far), (far, far / 4)):
        with pytest.raises(ValueError, match="a box of at most 2\\^26 pixels"):
            _native.trace(pose, camera, 0.1, *places, met)
        with pytest.raises(ValueError, match="a box of at most 2\\^26 pixels"):
            _native.mesh_lanes(pose, camera, 0.1, np.zeros((2, 2), np.uint64), 1, *places, lanes)
    _native.trace(pose, camera, 0.1, far, x, met)
    _native.trace(pose, camera, 0.1, x[:0], x[:0], met[:, :0].copy())


@pytest.mark.parametrize("far", [math.nan, math.inf, -math.inf, 1e200])
def test_corners_that_are_nowhere(far: float) -> None:
    """Triangles with such corners are not met, the others are."""
    pose = np.ones((2, 3, 3))
    pose[..., :2] = np.stack(np.meshgrid([0, 10, 20], [0, 10]), axis=2)
    pose[0, 2, :2], pose[1, 1, :2], pose[1, 2, :2] = (far, far), (far, -far), math.nan
    # Beside the triangle with two of them, but in the box around it, and in the first triangle.
    x, y, met = np.float32([12, 3]), np.float32([8, 3]), np.empty((3, 2), np.float32)
    _native.trace(pose, (1.0, 0.0, 0.0), 0.1, x, y, met)
    assert met[2].tolist() == [0, 1]
