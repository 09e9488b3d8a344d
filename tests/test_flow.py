from __future__ import annotations

import tracemalloc
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

import hamflow.flow
from hamflow.errors import InputError
from hamflow.flow import endpoint_error, resize, warp

SHAPES = [(2, 2), (2, 2, 3), (2, 2, 2, 2), (0, 2, 2), (2,), ()]


def constant(height: int, width: int, u: float, v: float) -> NDArray[np.float32]:
    return np.broadcast_to(np.array([u, v], np.float32), (height, width, 2)).copy()


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_that_are_no_flow(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="truth must have the shape"):
        endpoint_error(constant(2, 2, 0, 0), np.zeros(shape))
    with pytest.raises(InputError, match="flow must have the shape"):
        warp(np.zeros((2, 2)), np.zeros(shape))


# Warping


@settings(max_examples=60, deadline=None)
@given(
    image=hnp.arrays(
        st.sampled_from([np.uint8, np.uint16, np.float32, np.float64]),
        st.tuples(st.integers(1, 7), st.integers(1, 7))
        | st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 4)),
    ),
    u=st.integers(-8, 8),
    v=st.integers(-8, 8),
)
def test_whole_pixel_shifts_are_exact(image: NDArray[Any], u: int, v: int) -> None:
    if image.dtype.kind == "f":
        image = np.where(np.isinf(image), image.dtype.type(7), image)
    height, width = image.shape[:2]
    warped, mask = warp(image, constant(height, width, u, v), return_mask=True)
    assert warped.dtype == image.dtype
    for y in range(height):
        for x in range(width):
            inside = 0 <= y + v < height and 0 <= x + u < width
            assert mask[y, x] == inside
            expected = image[y + v, x + u] if inside else np.zeros(image.shape[2:], image.dtype)
            assert np.array_equal(warped[y, x], expected, equal_nan=image.dtype.kind == "f")


def test_direction() -> None:
    first = np.zeros((5, 8), np.uint8)
    first[1, 2] = 200
    second = np.zeros((5, 8), np.uint8)
    second[3, 6] = 200  # four to the right, two down
    assert (warp(second, constant(5, 8, 4, 2)) == first).all()


def test_interpolation() -> None:
    y, x = np.mgrid[:6, :9].astype(np.float64)
    ramp = 3 * x + 10 * y
    warped, mask = warp(ramp, constant(6, 9, 0.25, -0.5), return_mask=True)
    assert mask[1:, :-1].all()
    assert not mask[0].any()
    assert not mask[:, -1].any()
    assert np.allclose(warped[mask], ramp[mask] + 0.75 - 5)
    assert warp(np.array([[0, 255]], np.uint8), constant(1, 2, 0.7, 0))[0, 0] == 178  # 178.5
    assert warp(np.array([[0, 1]], np.uint16), constant(1, 2, 0.6, 0))[0, 0] == 1


def test_extremes_of_integers_survive_interpolation() -> None:
    rng = np.random.default_rng(0)
    flow = rng.uniform(-3, 3, (40, 50, 2)).astype(np.float32)
    for dtype in (np.uint8, np.uint16):
        white = np.full((40, 50), np.iinfo(dtype).max, dtype)
        warped, mask = warp(white, flow, return_mask=True)
        assert (warped[mask] == white.max()).all()


def test_fill_and_mask() -> None:
    image = np.ones((3, 4, 2), np.float32)
    flow = constant(3, 4, 0, 0)
    flow[0, 0, 0] = np.nan
    flow[0, 1, 1] = np.inf
    flow[1, 0] = 1e10
    flow[1, 1] = -0.01
    warped, mask = warp(image, flow, fill=np.nan, return_mask=True)
    assert np.argwhere(~mask).tolist() == [[0, 0], [0, 1], [1, 0]]
    assert np.isnan(warped[~mask]).all()
    assert (warped[mask] == 1).all()
    assert warp(np.ones((3, 4), np.uint8), flow, fill=9)[0, 0] == 9


def test_nan_next_to_a_target_on_a_pixel() -> None:
    image = np.array([[1, np.nan, 3]], np.float32)
    assert warp(image, constant(1, 3, 0, 0)).tobytes() == image.tobytes()


def test_many_blocks_equal_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (37, 23, 3), np.uint8)
    flow = (rng.normal(size=(37, 23, 2)) * 5).astype(np.float32)
    whole = warp(image, flow)
    monkeypatch.setattr(hamflow.flow, "_BLOCK_PIXELS", 50)
    assert (warp(image, flow) == whole).all()


def test_memory_of_large_images_is_modest() -> None:
    image = np.zeros((1000, 1500, 3), np.uint8)
    flow = np.zeros((1000, 1500, 2), np.float32)
    tracemalloc.start()
    warp(image, flow)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The result and the masks, and a few blocks: far from one float64 per channel.
    assert peak < image.nbytes + 20e6


def test_bad_images() -> None:
    flow = constant(2, 3, 0, 0)
    for shape in ((3, 2), (2,), (2, 3, 1, 1), (2, 3, 0)):
        with pytest.raises(InputError, match="rows and columns"):
            warp(np.zeros(shape), flow)
    for dtype in (bool, np.int32, np.float16, complex):
        with pytest.raises(InputError, match="type"):
            warp(np.zeros((2, 3), dtype), flow)
    for fill in (-1, 256, 0.5, np.nan, np.inf):
        with pytest.raises(InputError, match="fill"):
            warp(np.zeros((2, 3), np.uint8), flow, fill=fill)


# Comparing


def test_endpoint_error() -> None:
    truth = constant(2, 2, 1, 1)
    flow = constant(2, 2, 4, 5)
    flow[0, 1, 1] = np.nan
    truth[1, 0, 0] = np.nan
    error = endpoint_error(flow, truth)
    assert error.dtype == np.float32
    assert error.shape == (2, 2)
    assert np.array_equal(error, [[5, np.nan], [np.nan, 5]], equal_nan=True)
    assert endpoint_error(flow.astype(float), truth).dtype == np.float32


def test_endpoint_error_of_different_shapes() -> None:
    with pytest.raises(InputError, match="same shape"):
        endpoint_error(constant(2, 2, 0, 0), constant(2, 3, 0, 0))


# Resizing


@given(
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=9),
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=9),
)
@settings(max_examples=50, deadline=None)
def test_one_motion_stays_one_motion(before: tuple[int, int], after: tuple[int, int]) -> None:
    resized = resize(constant(*before, 3, -2), *after)
    assert resized.shape == (*after, 2)
    expected = (3 * after[1] / before[1], -2 * after[0] / before[0])
    assert np.allclose(resized, expected, rtol=1e-5)


def test_the_flow_of_a_zoom_is_resized_with_its_images() -> None:
    """A zoom about the center is the same map at every size, so its flow is known at each."""

    def zoom(height: int, width: int) -> NDArray[np.float32]:
        y, x = np.mgrid[:height, :width] + 0.5
        return np.stack([(x - width / 2) / 8, (y - height / 2) / 8], axis=2).astype(np.float32)

    inner = slice(4, -4)
    for size in ((48, 80), (12, 20), (24, 40), (31, 40)):
        assert np.allclose(
            resize(zoom(24, 40), *size)[inner, inner], zoom(*size)[inner, inner], atol=1e-4
        )


def test_unknown_vectors_do_not_spoil_known_ones() -> None:
    flow = constant(8, 8, 4, 2)
    flow[:, :3, 0] = np.nan
    small = resize(flow, 4, 4)
    assert np.isnan(small[:, 0]).all()
    assert np.allclose(small[:, 2:], (2, 1))
    assert np.isnan(resize(constant(3, 3, np.nan, 0), 6, 6)).all()


def test_the_same_size_is_a_copy() -> None:
    flow = constant(3, 4, 1, 2)
    same = resize(flow, 3, 4)
    same[:] = 0
    assert flow[0, 0, 0] == 1


def test_resize_refuses() -> None:
    for size in ((0, 3), (3, -1)):
        with pytest.raises(InputError, match="positive"):
            resize(constant(2, 2, 0, 0), *size)
    with pytest.raises(InputError, match="shape"):
        resize(np.zeros((3, 4)), 2, 2)
