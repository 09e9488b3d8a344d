"""Steady pictures."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import hamflow
from _videos import write_folder
from hamflow.motion.camera import apply
from hamflow.motion.stabilization import CameraPath, camera_path, smoothed, steady

SHAPE = (96, 128)
Floats = NDArray[np.float64]


def shaking(frames: int, size: float = 2.0, pan: float = 1.0) -> list[Floats]:
    """Homographies from the scene to each frame."""
    rng = np.random.default_rng(2)
    matrices = []
    for k in range(frames):
        matrix = np.eye(3)
        angle = rng.normal(0, 0.004 * size)
        matrix[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        matrix[:2, 2] = rng.normal(0, size, 2) - (20 + pan * k, 20)
        matrix[2, :2] = rng.normal(0, 1e-5, 2)
        matrices.append(matrix)
    return matrices


def motions(matrices: list[Floats]) -> list[Floats | None]:
    found = [b @ np.linalg.inv(a) for a, b in pairwise(matrices)]
    return [m / m[2, 2] for m in found]


def shake(matrices: list[Floats] | Floats) -> float:
    """How much points of the scene are accelerated on the screen."""
    points = np.array([[50.0, 50], [90, 60], [70, 80]])
    places = np.stack([apply(matrix, points) for matrix in matrices])
    return float(np.sqrt(np.square(np.diff(places, 2, axis=0)).sum(axis=-1).mean()))


def pictures(matrices: list[Floats]) -> list[NDArray[np.uint8]]:
    """A texture that is shaken."""
    small = np.random.default_rng(3).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    scene = Image.fromarray(small).resize((240, 160), Image.Resampling.BICUBIC)
    half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    images = []
    for matrix in matrices:
        back = half @ np.linalg.inv(matrix) @ np.linalg.inv(half)
        data = tuple((back / back[2, 2]).ravel()[:8].tolist())
        kind, filter_ = Image.Transform.PERSPECTIVE, Image.Resampling.BICUBIC
        images.append(np.asarray(scene.transform(SHAPE[::-1], kind, data, filter_)))
    return images


def test_shaken_pictures_become_steady() -> None:
    matrices = shaking(10)
    images = pictures(matrices)
    path = camera_path(hamflow.video(images, "fast"))
    plan = smoothed(path)
    after = [warp @ matrix for warp, matrix in zip(plan.matrices, matrices, strict=True)]
    assert plan.kept * shake(after) < shake(matrices) / 5
    # And the pictures are where the matrices say: they hardly differ but for the slow pan.
    shown = np.stack(list(steady(images, plan))).astype(float)
    jumps = [np.abs(np.diff(frames, axis=0)).mean() for frames in (np.stack(images) * 1.0, shown)]
    assert jumps[1] < 0.6 * jumps[0]
    assert shown.shape == (10, *SHAPE, 3)


def test_steady_motion_stays() -> None:
    """A camera that pans evenly is not changed, also not at the ends."""
    path = CameraPath(motions(shaking(12, size=0.0, pan=3.0)), SHAPE)
    plan = smoothed(path, strength=4)
    assert plan.kept > 0.99
    assert np.abs(plan.matrices - np.eye(3))[:, :2].max() < 0.6


@pytest.mark.parametrize("strength", [1.0, 4.0, 100.0])
def test_more_strength_is_smoother(strength: float) -> None:
    matrices = shaking(30)
    plan = smoothed(CameraPath(motions(matrices), SHAPE), strength=strength, crop=1)
    after = shake([w @ m for w, m in zip(plan.matrices, matrices, strict=True)])
    assert after < shake(matrices) * {1.0: 0.5, 4.0: 0.05, 100.0: 0.03}[strength]


def test_each_shot_has_its_own_path() -> None:
    first, second = shaking(6), shaking(9, size=1.0)
    alone = [smoothed(CameraPath(motions(m), SHAPE), crop=1).matrices for m in (first, second)]
    both = smoothed(CameraPath([*motions(first), None, *motions(second)], SHAPE), crop=1)
    assert np.allclose(both.matrices, np.concatenate(alone))


def test_a_cut_after_one_frame() -> None:
    plan = smoothed(CameraPath([None, *motions(shaking(3)), None], SHAPE), crop=1)
    assert len(plan.matrices) == 5
    assert np.array_equal(plan.matrices[0], np.eye(3))
    assert np.array_equal(plan.matrices[4], np.eye(3))


@pytest.mark.parametrize("crop", [None, 0.95, 0.7])
def test_no_border_is_shown(crop: float | None) -> None:
    matrices = shaking(20, size=5.0)
    plan = smoothed(CameraPath(motions(matrices), SHAPE), crop=crop)
    assert plan.kept == pytest.approx(crop) if crop else plan.kept >= 0.8
    height, width = SHAPE
    corners = np.array([[0.0, 0], [width - 1, 0], [0, height - 1], [width - 1, height - 1]])
    for matrix in plan.matrices:
        places = apply(np.linalg.inv(matrix), corners)
        assert (places > -0.51).all()
        assert (places < np.array([width, height]) - 0.49).all()
    white = [np.full((*SHAPE, 3), 255, np.uint8)] * len(plan.matrices)
    assert all(frame.min() > 250 for frame in steady(white, plan))


def test_the_whole_picture_with_borders() -> None:
    plan = smoothed(CameraPath(motions(shaking(20, size=5.0)), SHAPE), crop=1)
    white = [np.full((*SHAPE, 3), 255, np.uint8)] * 20
    assert plan.kept == 1
    assert min(frame.min() for frame in steady(white, plan)) == 0


def test_files_are_read_twice(tmp_path: Path) -> None:
    images = pictures(shaking(3))
    write_folder(tmp_path / "in", images)
    from_files = list(hamflow.stabilize(tmp_path / "in", "fast", motion="similarity"))
    at_hand = list(hamflow.stabilize(images, "fast", motion="similarity"))
    assert all(np.array_equal(a, b) for a, b in zip(from_files, at_hand, strict=True))


def test_what_can_be_read_only_once_is_refused() -> None:
    with pytest.raises(hamflow.InputError, match="read only once"):
        hamflow.stabilize(iter(pictures(shaking(3))), "fast")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"strength": 0}, "strength"), ({"crop": 0.05}, "crop"), ({"crop": 1.5}, "crop")],
)
def test_wrong_options(options: dict[str, float], message: str) -> None:
    with pytest.raises(hamflow.InputError, match=message):
        hamflow.stabilize([], **options)  # type: ignore[arg-type]


def test_unknown_motion() -> None:
    with pytest.raises(hamflow.InputError, match="motion must be 'homography'"):
        camera_path([], "affine")  # type: ignore[arg-type]


def test_too_few_frames() -> None:
    with pytest.raises(hamflow.InputError, match="fewer than two frames"):
        hamflow.stabilize([np.zeros((8, 8, 3), np.uint8)], "fast")
