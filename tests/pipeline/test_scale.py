"""Images at a fraction of their size and fields back at full size, pixel by pixel."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
from hypothesis import given
from numpy.typing import NDArray

from hamflow._scale import downsample, reduced, upsample_linear, upsample_nearest

Array = NDArray[Any]

SIDES = st.integers(1, 7)
FACTORS = st.sampled_from([1, 2, 3, 4])
FIELDS = hnp.arrays(
    np.float32,
    st.one_of(st.tuples(SIDES, SIDES), st.tuples(SIDES, SIDES, st.just(2))),
    elements=st.floats(-100, 100, width=32),
)


@st.composite
def enlargements(draw: st.DrawFn) -> tuple[Array, int, tuple[int, int]]:
    """A field, a factor, and a size that needs every row and column of the field."""
    field, factor = draw(FIELDS), draw(FACTORS)
    height, width = (factor * side - draw(st.integers(0, factor - 1)) for side in field.shape[:2])
    return field, factor, (height, width)


@given(
    image=hnp.arrays(
        st.sampled_from([np.dtype("u1"), np.dtype("u2"), np.dtype("f4")]),
        st.one_of(
            st.tuples(st.integers(4, 9), st.integers(4, 9)),
            st.tuples(st.integers(4, 9), st.integers(4, 9), st.just(3)),
        ),
        elements={"min_value": 0, "max_value": 200},
    ),
    factor=FACTORS,
)
def test_reduced(image: Array, factor: int) -> None:
    small = downsample(image, factor)
    assert small.dtype == image.dtype
    assert small.shape == (*(side // factor for side in image.shape[:2]), *image.shape[2:])
    for y, x in np.ndindex(small.shape[:2]):
        box = image[y * factor : (y + 1) * factor, x * factor : (x + 1) * factor]
        mean = box.astype(np.float64).mean(axis=(0, 1))
        if image.dtype.kind == "u":
            mean = np.rint(mean)
        assert np.allclose(small[y, x], mean, rtol=1e-5, atol=1e-5)


@given(
    image=hnp.arrays(
        np.float32,
        st.tuples(SIDES, SIDES, st.integers(1, 3)),
        elements=st.floats(0, 1, width=32),
    ),
    factor=FACTORS,
)
def test_incomplete_boxes_are_completed(image: Array, factor: int) -> None:
    padding = [(0, -side % factor) for side in image.shape[:2]]
    padded = np.pad(image, [*padding, (0, 0)], mode="edge")
    assert (reduced(image, factor) == downsample(padded, factor)).all()


@given(enlargements())
def test_enlarged_boxes(problem: tuple[Array, int, tuple[int, int]]) -> None:
    field, factor, shape = problem
    large = upsample_nearest(field, factor, shape)
    assert large.shape == (*shape, *field.shape[2:])
    assert large.dtype == field.dtype
    assert large.flags.c_contiguous
    for y, x in np.ndindex(shape):
        assert (large[y, x] == field[y // factor, x // factor]).all()


@given(enlargements(), st.integers(0, 5))
def test_enlarged_boxes_are_continued(
    problem: tuple[Array, int, tuple[int, int]], more: int
) -> None:
    field, factor, _ = problem
    shape = factor * field.shape[0] + more, factor * field.shape[1] + more
    large = upsample_nearest(field, factor, shape)
    for y, x in np.ndindex(shape):
        near = min(y // factor, field.shape[0] - 1), min(x // factor, field.shape[1] - 1)
        assert (large[y, x] == field[near]).all()


@given(enlargements())
def test_enlarged_smoothly(problem: tuple[Array, int, tuple[int, int]]) -> None:
    field, factor, shape = problem
    large = upsample_linear(field, factor, shape)
    assert large.shape == (*shape, *field.shape[2:])
    assert large.dtype == field.dtype
    centers = [(np.arange(side) + 0.5) * factor - 0.5 for side in field.shape[:2]]
    for y, x in np.ndindex(shape):
        columns = np.apply_along_axis(lambda c, x=x: np.interp(x, centers[1], c), 1, field)
        expected = np.apply_along_axis(lambda c, y=y: np.interp(y, centers[0], c), 0, columns)
        assert np.allclose(large[y, x], expected, rtol=0, atol=1e-4)


@given(value=st.floats(-1e6, 1e6, width=32), factor=FACTORS)
def test_equal_values_stay_exactly(value: float, factor: int) -> None:
    field = np.full((3, 4), value, np.float32)
    assert (upsample_linear(field, factor, (3 * factor, 4 * factor)) == field[0, 0]).all()
