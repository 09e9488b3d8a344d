"""The confidence as a function of what it is made of; how well it knows errors is tested with
the estimator, on rendered scenes."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from _problems import same_bytes, with_threads
from hamflow import _native
from hamflow.descriptors import load_model
from hamflow.pipeline.frame import Frame
from hamflow.refinement import assess, confidence, evidence, occluded

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


@pytest.mark.parametrize(("shape", "scale"), [((1, 1), 1), ((13, 37), 2), ((30, 18), 4)])
def test_one_pass_says_the_same(shape: tuple[int, int], scale: int) -> None:
    rng = np.random.default_rng(0)
    descriptor = load_model("pairs")
    frames = tuple(Frame(rng.random((*shape, 3), np.float32), descriptor) for _ in range(2))
    # Steps that lead outside, to pixels and between them.
    flow = rng.normal(size=(2, *shape, 2)).astype(np.float32) * 4
    flow[rng.random(flow.shape) < 0.3] = 1
    flow[1, : shape[0] // 2] = -flow[0, : shape[0] // 2]
    flow[0, 0, 0] = 1e9
    small = [-(-side // scale) for side in shape]
    distance = rng.exponential(size=small).astype(np.float32)

    def run() -> tuple[Any, Any]:
        return assess((frames[0], frames[1]), list(flow), distance, scale)

    hidden, certain = with_threads(1, run)
    expected = confidence(*evidence((frames[0], frames[1]), list(flow), distance, scale))
    assert (hidden == occluded(*flow)).all()
    assert np.allclose(certain, expected, rtol=1e-5, atol=1e-6)
    try:
        for level in _native.levels():
            assert _native.force_level(level)
            for other, one in zip(with_threads(2, run), (hidden, certain), strict=True):
                assert same_bytes(other, one), level
    finally:
        _native.force_level(None)
