"""The length in full color: one rule for all pictures."""

from __future__ import annotations

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from hamflow.errors import InputError
from hamflow.visualize import RunningScale, common_length, typical_length

LENGTHS = st.lists(st.floats(1, 1000), min_size=1, max_size=60)


def run(lengths: list[float]) -> list[float]:
    scale = RunningScale()
    return [scale.add(length) for length in lengths]


def test_typical_length() -> None:
    flow = np.full((10, 10, 2), np.nan)
    assert typical_length(flow) == 1
    flow[:] = 3, 4
    flow[0, 0] = np.nan
    flow[5, 5] = 1e6  # one wild match
    assert typical_length(flow) == 5
    assert typical_length(flow / 1e9) == 1


def test_common_length() -> None:
    assert common_length([]) == 1
    assert common_length([7]) == 7
    # A still opening does not count, nor do a few wild frames.
    assert common_length([1.0] * 50 + [20.0] * 50 + [900.0] * 3) == 20
    # An iterator is enough.
    assert common_length(length for length in (3.0, 3.0)) == 3


@given(LENGTHS)
def test_the_running_scale_is_smooth_and_within_the_lengths(lengths: list[float]) -> None:
    scales = run(lengths)
    assert scales == run(lengths)
    assert scales[0] == lengths[0]
    for before, after in itertools.pairwise(scales):
        assert 1 / 1.0500001 <= after / before <= 1.5000001
    assert min(lengths) * 0.9999999 <= min(scales)
    assert max(scales) <= max(lengths) * 1.0000001


@given(st.floats(1, 500), st.integers(1, 100))
def test_a_constant_length_is_the_scale(length: float, frames: int) -> None:
    assert run([length] * frames) == [length] * frames


def test_motion_after_a_still_opening() -> None:
    scales = run([1.0] * 50 + [20.0] * 50)
    assert scales[:50] == [1.0] * 50
    # Within half a second of usual video most of it has shades again.
    assert scales[50 + 12] > 10
    assert scales[-1] == pytest.approx(20, rel=0.01)
    assert scales == sorted(scales)


def test_it_falls_slowly() -> None:
    scales = run([20.0] * 10 + [2.0] * 250)
    assert scales[10 + 5] > 15
    assert 2 < scales[10 + 40] < 8
    assert scales[-1] == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("place", [1, 2, 10])
def test_a_single_wild_frame_changes_nothing(place: int) -> None:
    lengths = [5.0] * 30
    lengths[place] = 400.0
    assert run(lengths) == [5.0] * 30
    lengths[place] = 1.0
    assert min(run(lengths)) > 4.5


def test_noise_does_not_flicker() -> None:
    rng = np.random.default_rng(0)
    lengths = 10 * np.exp(0.1 * rng.normal(size=300))
    steps = np.abs(np.diff(np.log(run(lengths.tolist()))))[20:]
    # The scale moves far less than the lengths from frame to frame.
    assert steps.mean() < 0.2 * np.abs(np.diff(np.log(lengths))).mean()
    assert steps.max() < math.log(1.1)


def test_a_cut_starts_anew() -> None:
    scale = RunningScale()
    assert [scale.add(50) for _ in range(4)] == [50] * 4
    scale.cut()
    assert scale.add(3) == 3
    assert scale.add(3) == 3


@pytest.mark.parametrize("length", [0, -1, math.nan, math.inf])
def test_lengths_that_are_none(length: float) -> None:
    with pytest.raises(InputError, match="length must be a positive number"):
        RunningScale().add(length)
    with pytest.raises(InputError, match="length must be a positive number"):
        common_length([1.0, length])
