"""From coarse to fine, and when the pair before may decide where to step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hamflow.estimation
from hamflow import Estimator, EstimatorConfig, Window
from hamflow.crf import joint_model
from hamflow.matching.local_model import LocalModel
from hamflow.pipeline.matches import Matches
from hamflow.pipeline.scales import SearchStep, full_window
from hamflow.refinement import AffineCompletion, NoCompletion

Array = NDArray[Any]

CONFIG = EstimatorConfig(model="pairs", completion=AffineCompletion(neighbors=20, rounds=2))


def texture(seed: int = 0, height: int = 100, width: int = 140) -> Array:
    """Blobs of a few pixels, in 0..1."""
    rng = np.random.default_rng(seed)
    image = rng.random((height, width, 3)).astype(np.float32)
    for axis in (0, 1) * 2:
        image = (image + np.roll(image, 1, axis) + np.roll(image, -1, axis)) / 3
    low, high = image.min(), image.max()
    return (image - low) / (high - low)


def frames(shift: int, seeds: tuple[int, int] = (0, 0)) -> tuple[Array, Array]:
    """Two cut-outs; everything moves to the right by `shift`."""
    first, second = texture(seeds[0]), texture(seeds[1])
    return first[20:80, 30:110], second[20:80, 30 - shift : 110 - shift]


def match(
    images: tuple[Array, Array],
    config: EstimatorConfig,
    window: Any = "auto",
    previous: Matches | None = None,
) -> Matches:
    estimator = Estimator(config, window=window)
    pair = [estimator.frame(image) for image in images]
    return estimator.between(pair[0], pair[1], previous=previous)[1]


@contextmanager
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, list[Window]]]]:
    """Record at which scales and in which windows is looked."""
    seen = []
    real = hamflow.estimation.search

    def spy(pair: Any, step: SearchStep, *more: Any) -> Any:
        seen.append((step.scale, list(step.windows)))
        return real(pair, step, *more)

    with monkeypatch.context() as patch:
        patch.setattr(hamflow.estimation, "search", spy)
        yield seen


def found_shift(matches: Matches, direction: int = 0) -> tuple[float, float]:
    u, v = np.median(matches.directions[direction].completed.reshape(-1, 2), axis=0)
    return round(float(u), 1), round(float(v), 1)


def test_from_coarse_to_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    with looks(monkeypatch) as seen:
        matched = match(frames(9), CONFIG)
    (coarse, first), (fine, second) = seen
    assert (coarse, fine, matched.scale) == (2, 1, 1)
    assert first == [full_window((30, 40), 2.0)] * 2
    assert second[0].contains(9, 0)
    assert second[1].contains(-9, 0)
    assert max(w.du * w.dv for w in second) < 0.5 * first[0].du * first[0].dv
    assert found_shift(matched) == (9, 0)
    assert found_shift(matched, 1) == (-9, 0)
    assert 0.5 < matched.trusted_share < 1


def test_a_given_window(monkeypatch: pytest.MonkeyPatch) -> None:
    window = Window(0, 13, -2, 5)
    with looks(monkeypatch) as seen:
        matched = match(frames(9), CONFIG, window)
    assert seen == [(1, [window, window.opposite()])]  # and none at a coarser scale
    assert found_shift(matched) == (9, 0)
    assert matched.directions[0].certificate.window == window


def test_one_direction() -> None:
    matched = match(frames(4), replace(CONFIG, bidirectional=False, levels=1))
    assert len(matched.directions) == 1
    assert matched.directions[0].trusted.all()
    assert found_shift(matched) == (4, 0)


def test_the_pair_before_decides_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    before = match(frames(9), CONFIG)
    with looks(monkeypatch) as seen:
        matched = match(frames(13), CONFIG, previous=before)
    ((factor, windows),) = seen
    assert factor == 1
    assert windows[0].contains(13, 0)
    assert windows[0].du < full_window((60, 80), 2.0).du
    assert found_shift(matched) == (13, 0)
    assert (before.warm, matched.warm) == (False, True)


@pytest.mark.parametrize("what", ["cut", "fast"])
def test_unless_it_knows_nothing_about_this_one(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    before = match(frames(2), CONFIG)
    pair = frames(25) if what == "fast" else frames(0, (0, 1))
    with looks(monkeypatch) as seen:
        matched = match(pair, CONFIG, previous=before)
    assert [factor for factor, _ in seen] == [1, 2, 1]
    # As if there had been no pair before.
    alone = match(pair, CONFIG)
    assert not matched.warm
    for found, expected in zip(matched.directions, alone.directions, strict=True):
        assert (found.flow == expected.flow).all()
        assert (found.completed == expected.completed).all()
    if what == "fast":
        assert found_shift(matched) == (25, 0)


def test_another_scale_or_a_given_window_goes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    before = match(frames(2), CONFIG)
    with looks(monkeypatch) as seen:
        match(frames(2), replace(CONFIG, scale=2, levels=1), previous=before)
        match(frames(2), replace(CONFIG, levels=1), Window.of(8), before)
    assert seen[0] == (2, [full_window((30, 40), 2.0)] * 2)
    assert seen[1] == (1, [Window.of(8), Window.of(8).opposite()])


def test_a_pair_before_of_another_kind_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    larger = texture(0), texture(0)
    one_way = replace(CONFIG, levels=1, bidirectional=False)
    others = [
        match(larger, replace(CONFIG, levels=1), Window.of(4)),
        match(frames(2), one_way, Window.of(4)),
    ]
    for other in others:
        assert other.scale == 1
        with looks(monkeypatch) as seen:
            match(frames(2), CONFIG, previous=other)
        assert [factor for factor, _ in seen] == [2, 1]


def test_the_joint_model_is_given_the_images(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = joint_model.solve

    def spy(**arguments: Any) -> Any:
        calls.append(arguments)
        return real(**arguments)

    monkeypatch.setattr(joint_model, "solve", spy)
    estimator = Estimator(replace(CONFIG, scale=2), window=8)
    pair = [estimator.frame(image) for image in frames(3)]
    estimator.between(*pair)
    # Both directions are matched at the same time, so either can be the first.
    forward, backward = sorted(calls, key=lambda c: not (c["image"] == pair[0].at(2)).all())
    assert (forward["image"] == pair[0].at(2)).all()
    assert (backward["image"] == pair[1].at(2)).all()
    assert (forward["bits1"] == backward["bits0"]).all()
    assert (forward["bits0"] == backward["bits1"]).all()
    assert forward["config"] == CONFIG.matcher


def test_the_local_model_as_matcher() -> None:
    local = replace(CONFIG, matcher=LocalModel())
    assert found_shift(match(frames(9), local)) == (9, 0)
    result = Estimator(local, window=24).estimate(*frames(9))
    assert (result.energy, result.bound, result.gap, result.history) == (None, None, None, ())
    assert result.summary()["gap"] is None
    assert "gap" not in repr(result)


def test_without_completion_the_matches_decide_the_window() -> None:
    bare = replace(CONFIG, completion=NoCompletion())
    found = match(frames(9), bare)
    assert found_shift(found) == (9, 0)
    assert not found.directions[0].distance.any()
