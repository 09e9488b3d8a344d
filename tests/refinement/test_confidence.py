"""The confidence as a function of what it is made of; how well it knows errors is tested with
the estimator, on rendered scenes."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from hamflow.refinement import confidence

AMOUNTS = st.floats(0, 2.0**66, width=32)


def of(*amounts: float) -> Any:
    fields: list[NDArray[np.float32]] = [np.full((2, 3), a, np.float32) for a in amounts]
    result = confidence(*fields)
    assert result.shape == (2, 3)
    assert result.dtype == np.float32
    assert (result == result[0, 0]).all()
    return result[0, 0]


@given(amounts=st.tuples(AMOUNTS | st.just(np.inf), AMOUNTS, AMOUNTS))
def test_range(amounts: tuple[float, float, float]) -> None:
    assert 0 <= of(*amounts) <= 1


@given(amounts=st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), which=st.integers(0, 2), more=AMOUNTS)
def test_more_of_anything_is_worse(
    amounts: tuple[float, float, float], which: int, more: float
) -> None:
    worse = list(amounts)
    worse[which] += more
    assert of(*worse) <= of(*amounts) + 1e-6


@pytest.mark.parametrize("which", [0, 1, 2])
def test_everything_counts(which: int) -> None:
    usual = [1.0, 0.1, 0.05]
    worse = usual.copy()
    worse[which] *= 10
    assert of(*worse) < of(*usual) - 0.01


def test_every_pixel_by_itself() -> None:
    rng = np.random.default_rng(0)
    fields = [(rng.random((4, 5)) * scale).astype(np.float32) for scale in (3, 1, 0.3)]
    for (y, x), value in np.ndenumerate(confidence(*fields)):
        assert value == pytest.approx(of(*(field[y, x] for field in fields)), rel=1e-6)


def test_ends() -> None:
    assert of(0, 0, 0) > 0.9
    assert of(np.inf, 3, 0.5) < 0.2
    # Outside of the image there is still a difference between near to a match and far from it.
    assert 0 < of(np.inf, 1, 0.1) < of(np.inf, 0, 0.1)
