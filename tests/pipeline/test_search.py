"""Where each scale looks, and when the pair before may decide that."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from hamflow import EstimatorConfig, Window, crf, load_model, search
from hamflow.config import PRESETS
from hamflow.frame import Frame
from hamflow.refinement import FillConfig
from hamflow.search import (
    Clock,
    Direction,
    Matched,
    full_window,
    match,
    mirrored,
    plan_factors,
    reduced_window,
)

Array = NDArray[Any]

CONFIG = EstimatorConfig(model="pairs", fill=FillConfig(neighbors=20, rounds=2))


# --- scales --------------------------------------------------------------------------------------


def small_sides(shape: tuple[int, int], factor: int) -> tuple[int, int]:
    return -(-shape[0] // factor), -(-shape[1] // factor)


@given(
    shape=st.tuples(st.integers(1, 20000), st.integers(1, 20000)),
    pixels=st.integers(1, 10**6),
    levels=st.integers(1, 6),
)
def test_factors(shape: tuple[int, int], pixels: int, levels: int) -> None:
    factors = plan_factors(shape, replace(CONFIG, matching_pixels=pixels, levels=levels))
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
        assert plan_factors(shape, PRESETS[name]) == [1]
    if name == "paper":
        assert plan_factors((4000, 6000), PRESETS[name]) == [1]
    else:
        assert len(plan_factors((436, 1024), PRESETS[name])) == PRESETS[name].levels
        assert plan_factors((2160, 3840), PRESETS[name])[-1] >= 4


def test_a_given_scale() -> None:
    assert plan_factors((1000, 1000), replace(CONFIG, scale=1, levels=3)) == [4, 2, 1]
    assert plan_factors((1000, 1000), replace(CONFIG, scale=8, levels=2)) == [16, 8]
    assert plan_factors((3, 3), replace(CONFIG, scale=256, levels=2)) == [256]


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
    assert mirrored(window).contains(-u, -v)
    assert mirrored(mirrored(window)) == window
    assert (mirrored(window).du, mirrored(window).dv) == (window.du, window.dv)


@given(window=WINDOWS, which=DISPLACEMENTS, factor=st.sampled_from([1, 2, 4, 8, 256]))
def test_reduced_windows(window: Window, which: tuple[int, int], factor: int) -> None:
    small = reduced_window(window, factor)
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
    assert mirrored(window) == window
    # Half of the image, or else very far.
    assert window.v0 == -min(shape[0] // 2, 96)
    assert window.u0 == -min(shape[1] // 2, 96)
    assert full_window((*shape, 3), 2.0) == window


def direction(flow: Array, trusted: Array | None = None, filled: Array | None = None) -> Direction:
    """What a scale has found, without the rest."""
    solution: Any = None
    everywhere = np.ones(flow.shape[:2], np.bool_)
    return Direction(
        flow,
        everywhere if trusted is None else trusted,
        flow if filled is None else filled,
        np.zeros(flow.shape[:2], np.float32),
        solution,
    )


def around(found: Direction, memory: float = 2.0, factor: int = 2, margin: int = 4) -> Window:
    return search._window_around(found, replace(CONFIG, memory=memory), factor, margin)


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


def test_around_both_matches_and_what_filling_made_of_them() -> None:
    flow, filled = np.zeros((2, 30, 40, 2), np.float32)
    flow[:, 20:30] = 7, 0
    filled[:, :10] = 0, 2.5
    trusted = np.ones((30, 40), np.bool_)
    found = direction(flow, trusted, filled)
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


# --- matching ------------------------------------------------------------------------------------


def texture(seed: int = 0, height: int = 100, width: int = 140) -> Array:
    """Blobs of a few pixels, in 0..1."""
    rng = np.random.default_rng(seed)
    image = rng.random((height, width, 3)).astype(np.float32)
    for axis in (0, 1) * 2:
        image = (image + np.roll(image, 1, axis) + np.roll(image, -1, axis)) / 3
    low, high = image.min(), image.max()
    return (image - low) / (high - low)


def frames(shift: int, seeds: tuple[int, int] = (0, 0)) -> tuple[Frame, Frame]:
    """Two cut-outs; everything moves to the right by `shift`."""
    model = load_model("pairs")
    first, second = texture(seeds[0]), texture(seeds[1])
    cuts = first[20:80, 30:110], second[20:80, 30 - shift : 110 - shift]
    return Frame(cuts[0], model), Frame(cuts[1], model)


@contextmanager
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, list[Window]]]]:
    """Record at which scales and in which windows is looked."""
    seen = []
    real = search._match_at

    def spy(factor: int, pair: Any, config: Any, windows: Any, *more: Any, **other: Any) -> Any:
        seen.append((factor, list(windows)))
        return real(factor, pair, config, windows, *more, **other)

    with monkeypatch.context() as patch:
        patch.setattr(search, "_match_at", spy)
        yield seen


def found_shift(matched: Matched) -> tuple[float, float]:
    forward = matched.directions[0]
    u, v = np.median(forward.filled.reshape(-1, 2), axis=0)
    return round(float(u), 1), round(float(v), 1)


def test_from_coarse_to_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    with looks(monkeypatch) as seen:
        matched = match(frames(9), CONFIG, None, Clock())
    (coarse, first), (fine, second) = seen
    assert (coarse, fine, matched.factor) == (2, 1, 1)
    assert first == [full_window((30, 40), 2.0)] * 2
    assert second[0].contains(9, 0)
    assert second[1].contains(-9, 0)
    assert max(w.du * w.dv for w in second) < 0.5 * first[0].du * first[0].dv
    assert found_shift(matched) == (9, 0)
    assert found_shift(Matched(matched.directions[::-1], 1)) == (-9, 0)
    assert 0.5 < matched.trusted_share < 1


def test_a_given_window(monkeypatch: pytest.MonkeyPatch) -> None:
    window = Window(0, 13, -2, 5)
    with looks(monkeypatch) as seen:
        matched = match(frames(9), CONFIG, window, Clock())
    assert [factor for factor, _ in seen] == [2, 1]
    for factor, windows in seen:
        assert windows == [reduced_window(w, factor) for w in (window, mirrored(window))]
    assert found_shift(matched) == (9, 0)
    assert matched.directions[0].solution.window == window


def test_one_direction() -> None:
    matched = match(frames(4), replace(CONFIG, both=False, levels=1), None, Clock())
    assert len(matched.directions) == 1
    assert matched.directions[0].trusted.all()
    assert found_shift(matched) == (4, 0)


def test_the_pair_before_decides_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    before = match(frames(9), CONFIG, None, Clock())
    with looks(monkeypatch) as seen:
        matched = match(frames(13), CONFIG, None, Clock(), before)
    ((factor, windows),) = seen
    assert factor == 1
    assert windows[0].contains(13, 0)
    assert windows[0].du < full_window((60, 80), 2.0).du
    assert found_shift(matched) == (13, 0)


@pytest.mark.parametrize("what", ["cut", "fast"])
def test_unless_it_knows_nothing_about_this_one(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    before = match(frames(2), CONFIG, None, Clock())
    pair = frames(25) if what == "fast" else frames(0, (0, 1))
    with looks(monkeypatch) as seen:
        matched = match(pair, CONFIG, None, Clock(), before)
    assert [factor for factor, _ in seen] == [1, 2, 1]
    # As if there had been no pair before.
    alone = match(pair, CONFIG, None, Clock())
    assert (matched.directions[0].flow == alone.directions[0].flow).all()
    if what == "fast":
        assert found_shift(matched) == (25, 0)


def test_another_scale_or_a_given_window_goes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    before = match(frames(2), CONFIG, None, Clock())
    with looks(monkeypatch) as seen:
        match(frames(2), replace(CONFIG, scale=2, levels=1), None, Clock(), before)
        match(frames(2), replace(CONFIG, levels=1), Window.of(8), Clock(), before)
    assert seen[0] == (2, [full_window((30, 40), 2.0)] * 2)
    assert seen[1] == (1, [Window.of(8), mirrored(Window.of(8))])


def test_a_pair_before_of_another_kind_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model("pairs")
    larger = Frame(texture(0), model), Frame(texture(0), model)
    one_way = replace(CONFIG, levels=1, both=False)
    others = [
        match(larger, replace(CONFIG, levels=1), Window.of(4), Clock()),
        match(frames(2), one_way, Window.of(4), Clock()),
    ]
    for other in others:
        assert other.factor == 1
        with looks(monkeypatch) as seen:
            match(frames(2), CONFIG, None, Clock(), other)
        assert [factor for factor, _ in seen] == [2, 1]


def test_the_joint_model_is_given_the_images(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = crf.solve

    def spy(**arguments: Any) -> Any:
        calls.append(arguments)
        return real(**arguments)

    monkeypatch.setattr(crf, "solve", spy)
    pair = frames(3)
    match(pair, replace(CONFIG, levels=1, scale=2), Window.of(8), Clock())
    forward, backward = calls
    assert (forward["image"] == pair[0].at(2)).all()
    assert (backward["image"] == pair[1].at(2)).all()
    assert (forward["bits1"] == backward["bits0"]).all()
    assert (forward["bits0"] == backward["bits1"]).all()
    assert forward["config"] == CONFIG.crf


# --- the clock -----------------------------------------------------------------------------------


def test_the_clock_adds_up() -> None:
    calls: list[tuple[str, float]] = []
    clock = Clock(lambda name, share: calls.append((name, share)))
    for name, share in (("a", 0.1), ("b", 0.5), ("a", 0.3), ("c", 0.9)):
        with clock.stage(name, share):
            pass
    assert list(clock.seconds) == ["a", "b", "c"]
    assert min(clock.seconds.values()) >= 0
    assert calls == [("a", 0.1), ("b", 0.5), ("a", 0.5), ("c", 0.9)]


def test_the_clock_counts_what_failed() -> None:
    clock = Clock()
    with pytest.raises(KeyError), clock.stage("a", 0.1):
        raise KeyError
    assert list(clock.seconds) == ["a"]
