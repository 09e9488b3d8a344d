"""Frames in between."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hamflow
from _results import flow_result
from _synthetic import textures
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticFilm
from hamflow.motion._filters import box_mean, vector_median
from hamflow.motion.interpolation import _filled, frames_between, in_between, spaced
from hamflow.sequence import VideoItem


def passing(left: int) -> NDArray[np.uint8]:
    """A square of 16 columns before a ground that stands still; both have a pattern."""
    y, x = np.indices((40, 96))
    image = np.stack([40 + (3 * x) % 90, 40 + (5 * y) % 90, 60 + (x + y) % 40], axis=-1)
    image[10:30, left : left + 16] = np.stack(
        [150 + 5 * (np.indices((20, 16))[1]), np.full((20, 16), 230), np.full((20, 16), 20)],
        axis=-1,
    )
    return image.astype(np.uint8)


def passing_result(before: int, after: int) -> hamflow.FlowResult:
    """The true flow of `passing`, with that of the ground where it is hidden."""
    flow, back = np.zeros((40, 96, 2), np.float32), np.zeros((40, 96, 2), np.float32)
    flow[10:30, before : before + 16, 0] = after - before
    back[10:30, after : after + 16, 0] = before - after
    hidden = np.zeros((40, 96), bool)
    hidden[10:30, before + 16 : after + 16] = True
    return flow_result(flow, back, hidden)


@pytest.mark.parametrize(("time", "left"), [(0.25, 24), (0.5, 28), (0.75, 32)])
def test_what_is_hidden_comes_from_the_other_frame(time: float, left: int) -> None:
    """The ground on both sides of the square is in one of the two frames alone."""
    first, second = passing(20), passing(36)
    (found,) = frames_between(first, second, passing_result(20, 36), [time])
    off = np.abs(found.astype(int) - passing(left)).max(axis=2)
    # Edges are soft: of the square, and of what is taken from one frame.
    alone = {"second": slice(22, left - 1), "first": slice(left + 17, 50)}
    for columns in alone.values():
        assert off[12:28, columns].size
        assert off[12:28, columns].max() <= 1
    assert off[12:28, left + 2 : left + 14].max() <= 1
    assert off[12:28, :18].max() <= 1
    assert off[12:28, 54:].max() <= 1
    assert off[:8].max() <= 1
    assert found.dtype == np.uint8
    plain = (first.astype(float) + second) / 2
    assert np.abs(plain - passing(left)).max() > 50  # or the test would show nothing


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_the_ends_are_the_frames(dtype: type) -> None:
    scale = {np.uint8: 1, np.uint16: 257, np.float32: 1 / 255}[dtype]
    first, second = ((scale * passing(k).astype(float)).astype(dtype) for k in (20, 36))
    start, middle, end = frames_between(first, second, passing_result(20, 36), [0, 0.5, 1])
    assert np.array_equal(start, first)
    assert np.array_equal(end, second)
    assert middle.dtype == dtype
    assert np.abs(middle / scale - passing(28))[12:28, 30:42].max() <= 1


def test_gray_frames_without_an_occlusion_mask() -> None:
    first, second = (passing(k)[..., 0] for k in (20, 36))
    known = passing_result(20, 36)
    (found,) = frames_between(first, second, flow_result(known.flow, known.backward), [0.5])
    assert found.shape == (40, 96)
    assert np.abs(found.astype(int) - passing(28)[..., 0])[12:28, 30:42].max() <= 1


def test_one_direction_is_not_enough() -> None:
    with pytest.raises(hamflow.InputError, match="only one direction"):
        next(frames_between(passing(20), passing(36), flow_result(np.zeros((40, 96, 2))), [0.5]))


def test_rendered_film() -> None:
    config = SyntheticConfig(
        height=96, width=128, max_displacement=8.0, clean=True, elastic_share=0.0, max_layers=3
    )
    film = SyntheticFilm(config, 4, textures(), 3)
    first, middle, second = film.images
    frames = list(hamflow.interpolate([first, second], 2, "fast"))
    assert len(frames) == 3
    assert np.array_equal(frames[0], first)
    assert np.array_equal(frames[2], second)
    error, plain = (
        np.square(picture.astype(float) - middle).mean()
        for picture in (frames[1], (first.astype(float) + second) / 2)
    )
    assert error < plain / 3


def test_frames_repeat_at_a_cut() -> None:
    first, second = passing(20), 255 - passing(50)
    result = flow_result(np.zeros((40, 96, 2), np.float32), cut=True)
    frames = list(in_between([VideoItem(first, second, result, 0, "0")], [0.25, 0.5, 0.75]))
    assert [np.array_equal(frame, first) for frame in frames] == [True, True, False, False, False]
    assert all(np.array_equal(frame, second) for frame in frames[2:])


def test_no_frames() -> None:
    assert list(in_between([], [0.5])) == []


@pytest.mark.parametrize("times", [[1.5], [-0.1], [np.nan]])
def test_wrong_times(times: list[float]) -> None:
    with pytest.raises(hamflow.InputError, match="times"):
        hamflow.interpolate([], times=times)


def test_factors() -> None:
    assert spaced(4) == [0.25, 0.5, 0.75]
    with pytest.raises(hamflow.InputError, match="factor"):
        spaced(0)


# --- filters -------------------------------------------------------------------------------------


@given(st.integers(0, 3), st.integers(1, 7), st.integers(1, 7), st.integers(0, 99))
def test_box_mean(radius: int, height: int, width: int, seed: int) -> None:
    field = np.random.default_rng(seed).random((height, width))
    padded = np.pad(field, radius, mode="edge")
    for y in range(height):
        for x in range(width):
            square = padded[y : y + 2 * radius + 1, x : x + 2 * radius + 1]
            assert box_mean(field, radius)[y, x] == pytest.approx(square.mean())


def test_vector_median_removes_stray_vectors() -> None:
    flow = np.zeros((9, 12, 2), np.float32)
    flow[:, 6:] = (8, -3)
    spotted = flow.copy()
    spotted[4, 2] = (50, 50)
    spotted[2, 9] = (-7, 7)
    assert np.array_equal(vector_median(spotted, 1), flow)


@given(st.integers(0, 99), st.floats(0.02, 1))
def test_holes_are_filled(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    known = rng.random((11, 7)) < share
    known[rng.integers(11), rng.integers(7)] = True
    field = np.where(known[..., None], rng.normal(0, 5, (11, 7, 2)), 1e9)
    filled = _filled(field.astype(np.float32), known)
    assert np.array_equal(filled[known], field.astype(np.float32)[known])
    low, high = filled[known].min(axis=0), filled[known].max(axis=0)
    assert (filled >= low - 1e-4).all()
    assert (filled <= high + 1e-4).all()
