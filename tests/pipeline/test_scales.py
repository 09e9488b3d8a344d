"""Which scales there are, and which window each look has."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from hamflow import EstimatorConfig, Window
from hamflow.config import PRESETS
from hamflow.pipeline.matches import DirectedMatches
from hamflow.pipeline.scales import full_window, plan_scales, window_around
from hamflow.refinement import AffineCompletion

Array = NDArray[Any]

CONFIG = EstimatorConfig(
    model="pairs", closer_pixels=0, completion=AffineCompletion(neighbors=20, rounds=2)
)


# --- scales --------------------------------------------------------------------------------------


def small_sides(shape: tuple[int, int], factor: int) -> tuple[int, int]:
    return -(-shape[0] // factor), -(-shape[1] // factor)


@given(
    shape=st.tuples(st.integers(1, 20000), st.integers(1, 20000)),
    pixels=st.integers(1, 10**6),
    levels=st.integers(1, 6),
)
def test_factors(shape: tuple[int, int], pixels: int, levels: int) -> None:
    factors = plan_scales(shape, replace(CONFIG, matching_pixels=pixels, levels=levels))
    assert 1 <= len(factors) <= levels
    assert all(coarse == 2 * fine for coarse, fine in itertools.pairwise(factors))
    finest = factors[-1]
    height, width = small_sides(shape, finest)
    assert height * width <= pixels
    if finest > 1:
        height, width = small_sides(shape, finest // 2)
        assert height * width > pixels  # no smaller than it has to be
    # Coarser ones only as long as there is something to see.
    assert len(factors) == 1 or min(shape) // factors[0] >= 24
    assert len(factors) == levels or min(shape) // (2 * factors[0]) < 24


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_factors_of_presets(name: str) -> None:
    for shape in ((1, 1), (1, 5000), (40, 40)):
        assert plan_scales(shape, PRESETS[name]) == [1]
    if name == "paper":
        assert plan_scales((4000, 6000), PRESETS[name]) == [1]
    else:
        known = plan_scales((436, 1024), PRESETS[name], closer=False)
        assert len(known) == PRESETS[name].levels
        assert plan_scales((436, 1024), PRESETS[name]) == known + [1] * (name == "fine")
        assert plan_scales((384, 512), PRESETS[name])[-1] == {"fast": 2, "realtime": 4}.get(name, 1)
        assert plan_scales((2160, 3840), PRESETS[name])[-1] >= 4


def test_a_given_scale() -> None:
    assert plan_scales((1000, 1000), replace(CONFIG, scale=1, levels=3)) == [4, 2, 1]
    assert plan_scales((1000, 1000), replace(CONFIG, scale=8, levels=2)) == [16, 8]
    assert plan_scales((3, 3), replace(CONFIG, scale=256, levels=2)) == [256]


# --- windows -------------------------------------------------------------------------------------

WINDOWS = st.builds(
    Window,
    st.integers(-300, 300),
    st.integers(1, 200),
    st.integers(-300, 300),
    st.integers(1, 200),
)
DISPLACEMENTS = st.tuples(st.integers(0, 199), st.integers(0, 199))


def some(window: Window, which: tuple[int, int]) -> tuple[int, int]:
    """One of the window's displacements."""
    return window.u0 + which[0] % window.du, window.v0 + which[1] % window.dv


@given(window=WINDOWS, which=DISPLACEMENTS)
def test_mirrored(window: Window, which: tuple[int, int]) -> None:
    u, v = some(window, which)
    assert window.opposite().contains(-u, -v)
    assert window.opposite().opposite() == window
    assert (window.opposite().du, window.opposite().dv) == (window.du, window.dv)


@given(window=WINDOWS, which=DISPLACEMENTS, factor=st.sampled_from([1, 2, 4, 8, 256]))
def test_reduced_windows(window: Window, which: tuple[int, int], factor: int) -> None:
    small = window.reduced(factor)
    u, v = some(window, which)
    for whole in (np.floor, np.ceil):  # whatever it is rounded to
        assert small.contains(int(whole(u / factor)), int(whole(v / factor)))
    # But not more than that.
    ends = (window.u0, window.u0 + window.du - 1), (window.v0, window.v0 + window.dv - 1)
    for (low, high), count in zip(ends, (small.du, small.dv), strict=True):
        assert count < (high - low) / factor + 3
    if factor == 1:
        assert small == window


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (50, 70), (100, 3000)])
def test_full_windows(shape: tuple[int, int]) -> None:
    window = full_window(shape, 2.0)
    assert window.opposite() == window
    # Half of the image, or else very far.
    assert window.v0 == -min(shape[0] // 2, 96)
    assert window.u0 == -min(shape[1] // 2, 96)


def direction(
    flow: Array, trusted: Array | None = None, completed: Array | None = None
) -> DirectedMatches:
    """What a scale has found, without the rest."""
    certificate: Any = None
    everywhere = np.ones(flow.shape[:2], np.bool_)
    return DirectedMatches(
        flow,
        everywhere if trusted is None else trusted,
        flow if completed is None else completed,
        np.zeros(flow.shape[:2], np.float32),
        certificate,
        np.ones(flow.shape[:2], np.float32),
    )


def around(found: DirectedMatches, memory: float = 2.0, factor: int = 2, margin: int = 4) -> Window:
    return window_around(found, memory, factor, margin)


def ramp(height: int, width: int, u: int, v: int) -> Array:
    """Flow from -u to u along the rows, and from -v to v along the columns."""
    flow = np.zeros((height, width, 2), np.float32)
    flow[..., 0] = np.linspace(-u, u, width)
    flow[..., 1] = np.linspace(-v, v, height)[:, None]
    return flow


def test_around_what_was_found() -> None:
    flow = np.zeros((30, 40, 2), np.float32)
    flow[:, 20:] = 7, -3
    assert around(direction(flow)) == Window(-4, 2 * 7 + 9, -10, 2 * 3 + 9)
    assert around(direction(flow), factor=1, margin=0) == Window(0, 8, -3, 4)


def test_around_both_matches_and_what_completion_made_of_them() -> None:
    flow, completed = np.zeros((2, 30, 40, 2), np.float32)
    flow[:, 20:30] = 7, 0
    completed[:, :10] = 0, 2.5
    trusted = np.ones((30, 40), np.bool_)
    found = direction(flow, trusted, completed)
    assert around(found, factor=1, margin=0) == Window(0, 8, 0, 4)
    # Matches that are not trusted do not count ...
    trusted[:, 20:30] = False
    assert around(found, factor=1, margin=0) == Window(0, 1, 0, 4)
    # ... and if none is, then what there is.
    trusted[:] = False
    assert around(found, factor=1, margin=0) == Window(0, 1, 0, 4)


def test_few_pixels_do_not_widen_it() -> None:
    flow = np.zeros((50, 50, 2), np.float32)
    flow[0, :3] = 20, 20  # of 2500
    assert around(direction(flow)) == Window(-4, 9, -4, 9)


def test_nothing_is_farther_away_than_the_image_is_large() -> None:
    flow = np.full((10, 20, 2), 18.0, np.float32)
    window = around(direction(flow))
    assert window.u0 + window.du - 1 == 40
    assert window.v0 + window.dv - 1 >= 20  # at the end of it, or where everything was found


def needed(window: Window, pixels: int) -> float:
    """Gigabytes of seven volumes of int16 for each plane."""
    return 7 * 2 * pixels * (window.du + window.dv) / 1e9


@pytest.mark.parametrize("memory", [100, 0.02, 0.01, 0.005, 0.002])
@pytest.mark.parametrize(("u", "v"), [(60, 20), (5, 40), (70, 70)])
def test_memory(memory: float, u: int, v: int) -> None:
    found = direction(ramp(50, 60, u, v))
    window, whole = around(found, memory), around(found, 100)
    assert needed(window, 100 * 120) <= memory
    if needed(whole, 100 * 120) <= memory:
        assert window == whole
    # What is left is the middle, of both components.
    assert window.contains(0, 0)
    assert window.du < whole.du or window.dv < whole.dv or window == whole
    assert abs(window.du / whole.du - window.dv / whole.dv) < 0.4


def test_too_little_memory_for_anything() -> None:
    window = around(direction(ramp(50, 60, 30, 30)), 1e-9)
    assert (window.du, window.dv) == (1, 1)
