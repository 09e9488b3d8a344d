"""Points through rendered films, and through hand-made flow."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hamflow
from _results import flow_result
from _synthetic import textures
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticFilm
from hamflow.motion._sampling import gray, inside, patches_at, vectors_at
from hamflow.motion.drawing import TrackPainter
from hamflow.motion.tracker import Tracker, follow
from hamflow.motion.tracks import (
    TrackedFrame,
    Tracks,
    as_points,
    collect,
    grid_points,
    read_points,
    tracked,
)
from hamflow.sequence import VideoItem

Floats = NDArray[np.float64]


def scene(width: int, frames: int, height: int = 48) -> tuple[list[NDArray[np.uint8]], list[int]]:
    """A still texture; a square of another texture passes over it, 6 pixels per frame."""
    rng = np.random.default_rng(5)
    ground = rng.integers(0, 200, (height, width, 3)).astype(np.uint8)
    thing = rng.integers(55, 256, (height // 2, 12, 3)).astype(np.uint8)
    images, lefts = [], []
    for k in range(frames):
        left = 4 + 6 * k
        image = ground.copy()
        image[12 : 12 + len(thing), left : left + 12] = thing
        images.append(image)
        lefts.append(left)
    return images, lefts


def true_results(lefts: list[int], shape: tuple[int, int]) -> list[hamflow.FlowResult]:
    """The exact flow of `scene`, with the flow of the ground where it gets hidden."""
    results = []
    for before, after in pairwise(lefts):
        flow, back = np.zeros((*shape, 2), np.float32), np.zeros((*shape, 2), np.float32)
        rows = slice(12, 12 + shape[0] // 2)
        flow[rows, before : before + 12, 0] = 6
        back[rows, after : after + 12, 0] = -6
        hidden = np.zeros(shape, bool)
        hidden[rows, before + 12 : after + 12] = True
        results.append(flow_result(flow, back, hidden))
    return results


def test_a_hidden_point_comes_back() -> None:
    images, lefts = scene(64, 7)
    results = true_results(lefts, (48, 64))
    points = np.array([[28.0, 24.0], [8.0, 24.0], [50.0, 4.0]])  # passed over, on top, aside
    tracker = Tracker(gray(images[0]), points)
    for k, result in enumerate(results, 1):
        tracker.step(gray(images[k]), result)
        covered = lefts[k] <= 28 < lefts[k] + 12
        assert tracker.visible.tolist() == [not covered, True, True], k
        moved = points + np.array([[0, 0], [6 * k, 0], [0, 0]])
        assert np.allclose(tracker.position, moved, atol=1e-6)
    assert tracker.confidence[0] < tracker.confidence[2]


def test_what_looks_different_does_not_come_back() -> None:
    images, lefts = scene(64, 7)
    tracker = Tracker(gray(images[0]), np.array([[28.0, 24.0]]))
    for k, result in enumerate(true_results(lefts, (48, 64)), 1):
        image = gray(images[k])
        tracker.step(image if k < 5 else image[::-1].copy(), result)
    assert not tracker.visible.any()


def test_a_hidden_point_turns_with_what_is_around_it() -> None:
    """An affine motion is predicted, not only a translation."""
    shape, angle = (80, 80), 0.05
    y, x = np.indices(shape, np.float64)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    grid = np.stack([x, y], axis=-1) - 40
    flow = (grid @ turn.T - grid).astype(np.float32)
    back = (grid @ turn - grid).astype(np.float32)
    hidden = np.zeros(shape, bool)
    result = flow_result(flow, back, hidden)
    blank = np.zeros(shape, np.float32)  # nothing is recognized in it
    tracker = Tracker(blank, np.array([[55.0, 40.0]]))
    tracker.step(blank, result)
    covered = flow.copy()
    covered[36:46, 50:60] = 20
    place = np.hypot(x - 55, y - 40.7) < 4
    for _ in range(2):
        tracker.step(blank, flow_result(covered, back, place))
    expected = np.linalg.matrix_power(turn, 3) @ [15, 0] + 40
    assert not tracker.visible.any()
    assert np.abs(tracker.position - expected).max() < 0.4


def test_join_takes_over_what_is_near() -> None:
    image = gray(np.random.default_rng(0).integers(0, 256, (40, 40), np.uint8))
    tracker = Tracker(image, np.array([[10.0, 10.0], [20.0, 20.0], [30.0, 30.0]]))
    tracker.visible[1] = False
    flow = np.zeros((40, 40, 2), np.float32)
    flow[20, 20] = 2
    flow[30, 30] = -28  # much too far
    direct = follow(flow_result(flow, None, None), tracker.position)
    assert tracker.join(image, direct, np.array([True, True, True])) == pytest.approx(2 / 3)
    assert tracker.position.tolist() == [[10, 10], [22, 22], [30, 30]]
    assert tracker.visible.all()


def test_rendered_film() -> None:
    config = SyntheticConfig(height=96, width=128, max_displacement=12.0, clean=True, max_layers=3)
    film = SyntheticFilm(config, 3, textures(), 7)
    points = grid_points(film.images[0].shape, 12)
    tracks = hamflow.track(film.images, points, "fast", anchor=3)
    assert tracks.positions.shape == (7, len(points), 2)
    assert tracks.frames.tolist() == list(range(7))
    x, y = points.astype(int).T
    for k in range(1, 7):
        flow, occluded = film.truth(0, k)
        error = np.linalg.norm(tracks.positions[k] - points - flow[y, x], axis=1)
        seen = ~occluded[y, x]
        assert np.median(error[seen]) < 0.5
        assert (error[seen] < 2).mean() > 0.85
        assert (tracks.visible[k] == seen).mean() > 0.85


def test_tracks_end_at_a_cut() -> None:
    images, lefts = scene(64, 4)
    results = true_results(lefts, (48, 64))
    results[1] = flow_result(results[1].flow, cut=True)
    items = [
        VideoItem(images[k], images[k + 1], result, 10 + k, str(k))
        for k, result in enumerate(results)
    ]
    states = list(tracked(items, hamflow.Estimator("fast"), np.array([[50.0, 4.0]]), anchor=0))
    assert [state.index for state in states] == [10, 11]
    assert collect(states).visible.all()


# --- reading between pixels ----------------------------------------------------------------------


def test_motions_are_not_mixed() -> None:
    flow = np.zeros((5, 6, 2), np.float32)
    flow[:, 3:] = (10, -4)
    found = vectors_at(flow, np.array([[2.4, 2.0], [2.6, 2.0]]))
    assert np.allclose(found, [[0, 0], [10, -4]], atol=1e-6)


@given(st.floats(0, 7), st.floats(0, 5), st.integers(0, 99))
def test_smooth_flow_is_interpolated(x: float, y: float, seed: int) -> None:
    slope = np.random.default_rng(seed).normal(0, 0.02, (2, 2))
    grid = np.stack(np.meshgrid(np.arange(8.0), np.arange(6.0)), axis=-1)
    flow = (grid @ slope).astype(np.float32)
    assert np.allclose(vectors_at(flow, np.array([x, y])), [x, y] @ slope, atol=2e-3)


def test_one_pixel() -> None:
    assert vectors_at(np.full((1, 1, 2), 3, np.float32), np.zeros((1, 2))).tolist() == [[3, 3]]
    assert inside(np.array([[0.4, 0.0], [0.6, 0.0], [np.nan, 0.0]]), (1, 1)).tolist() == [
        True,
        False,
        False,
    ]


def test_patches_compare_by_correlation() -> None:
    image = np.random.default_rng(1).random((20, 20), np.float32)
    points = np.array([[9.0, 9.0], [10.25, 8.5]])
    patches = patches_at(image, points)
    brighter = patches_at(0.2 + 0.5 * image, points)
    assert np.allclose((patches * brighter).sum(axis=1), 1, atol=1e-3)
    assert patches_at(np.full((20, 20), 0.3, np.float32), points).max() < 1e-3


# --- files ---------------------------------------------------------------------------------------


def some_tracks() -> hamflow.Tracks:
    position = np.array([[1.5, 2], [3, 4]], np.float32)
    frame = np.zeros((8, 8, 3), np.uint8)
    sure = np.array([1, 0.5], np.float32)
    return collect(
        TrackedFrame(k, frame, position + k, np.array([True, k < 1]), sure) for k in range(2)
    )


def test_save_csv(tmp_path: Path) -> None:
    some_tracks().save(tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["frame", "id", "x", "y", "visible", "confidence"]
    assert [tuple(float(v) for v in row.values()) for row in rows] == [
        (0, 0, 1.5, 2, 1, 1),
        (0, 1, 3, 4, 1, 0.5),
        (1, 0, 2.5, 3, 1, 1),
        (1, 1, 4, 5, 0, 0.5),
    ]
    # The table can be the points of another run.
    assert read_points(tmp_path / "t.csv").shape == (4, 2)


def test_save_npz(tmp_path: Path) -> None:
    tracks = some_tracks()
    tracks.save(tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz") as found:
        for name in ("frames", "positions", "visible", "confidence"):
            assert np.array_equal(found[name], getattr(tracks, name))


def test_unknown_suffix(tmp_path: Path) -> None:
    with pytest.raises(hamflow.FileError, match=r"t\.txt: tracks are written to one of \.csv"):
        some_tracks().save(tmp_path / "t.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "has no columns x and y"),
        ("", "has no columns x and y"),
        ("x,y\n1,two\n", "must have numbers"),
        ("x,y\n", "must have numbers"),
        ("x,y\n1\n", "row 1 of this CSV table has too many or too few"),
        ("x,y\n\x001,2\n", "must have numbers|is not a CSV table"),
        ("x,y\n1,nan\n", "must have numbers"),
    ],
)
def test_wrong_tables(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(hamflow.FileError, match=message):
        read_points(tmp_path / "p.csv")


@pytest.mark.parametrize("points", [[], [1, 2], [[1, 2, 3]], [["a", "b"]], [[np.inf, 0]]])
def test_wrong_points(points: list[object]) -> None:
    with pytest.raises(hamflow.InputError, match="points"):
        as_points(points)  # type: ignore[arg-type]


def test_points_outside() -> None:
    images, _ = scene(64, 2)
    with pytest.raises(hamflow.InputError, match=r"64×48 pixels, but \(64, 3\) is not"):
        hamflow.track(images, [[1, 1], [64, 3]], "fast")


def test_one_frame() -> None:
    with pytest.raises(hamflow.InputError, match="fewer than two frames"):
        hamflow.track(scene(64, 1)[0], preset="fast")


def test_the_grid_is_centered() -> None:
    assert grid_points((5, 10), 4).tolist() == [[x, y] for y in (0, 4) for x in (0, 4, 8)]
    assert len(grid_points((1, 1), 16)) == 1
    with pytest.raises(hamflow.InputError, match="grid"):
        grid_points((5, 10), 0)


# --- pictures ------------------------------------------------------------------------------------


def test_trails_are_drawn() -> None:
    painter = TrackPainter()
    white = np.full((40, 60, 3), 255, np.uint8)
    for k in range(4):
        place = np.array([[5 + 10 * k, 20]], np.float32)
        painter.add(TrackedFrame(k, white, place, np.array([True]), np.ones(1, np.float32)))
    picture = painter.draw(white)
    assert picture.shape == white.shape
    drawn = np.abs(picture.astype(int) - 255).max(axis=2) > 60
    assert drawn[20, 6:35].all()
    assert not drawn[:, 40:].any()
    assert not drawn[:15].any()


def test_tracks_are_shown_in_a_line() -> None:
    visible = np.ones((40, 300), np.bool_)
    positions = np.zeros((40, 300, 2), np.float32)
    tracks = Tracks(np.arange(40), positions, visible, np.float32(visible))
    assert repr(tracks) == "<Tracks of 300 points through 40 frames>"
