"""Cuts: frames that have nothing to do with each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hamflow
from _problems import same_bytes
from _route import SMALL, shifted, texture
from hamflow import Estimator
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.matching.local_model import LocalModel
from hamflow.pipeline.matches import Matches

Array = NDArray[Any]
SHAPE = (96, 128)


def noisy(image: Any, sigma: float, seed: int) -> Array:
    noise = np.random.default_rng(seed).normal(0, sigma, (*SHAPE, 3))
    return (image + noise).clip(0, 255).astype(np.uint8)


def scenes() -> SyntheticDataset:
    config = SyntheticConfig(height=96, width=128, max_displacement=20)
    return SyntheticDataset(config, seed=5, size=3)


def test_unrelated_images_are_a_cut() -> None:
    result = hamflow.estimate(texture(60, 80, 0), texture(60, 80, 1), SMALL)
    assert result.cut
    assert result.summary()["cut"] is True
    assert repr(result).startswith("<FlowResult 80×60, cut, ")
    assert result.backward is not None
    assert result.occlusion is not None
    assert result.confidence is not None
    for field, dtype in (
        (result.flow, np.float32),
        (result.backward, np.float32),
        (result.confidence, np.float32),
    ):
        assert field.shape[:2] == (60, 80)
        assert field.dtype == dtype
        assert not field.any()
    assert result.occlusion.all()
    assert "refinement" not in result.timings


@pytest.mark.parametrize("preset", ["fast", "realtime"])
def test_scenes(preset: str) -> None:
    """From one scene to the next it is a cut; within one it is none, under whatever light."""
    estimator, found = Estimator(preset), scenes()
    for k in range(3):
        first, second = found[k].image0, found[k].image1
        assert estimator.estimate(first, found[(k + 1) % 3].image0).cut
        covered = second.copy()
        covered[:, :70] = found[(k + 1) % 3].image0[:, :70]
        for other in (second, noisy(second * 0.3, 2, k), noisy(second * 1.2 + 60, 2, k), covered):
            assert not estimator.estimate(first, other).cut


@pytest.mark.parametrize("level", [3, 128])
def test_noise_alone_is_no_cut(level: int) -> None:
    estimator = Estimator("fast")
    first, second = (noisy(level, 2, seed) for seed in (0, 1))
    assert not estimator.estimate(first, second).cut
    assert not estimator.estimate(first, first).cut
    assert estimator.estimate(first, noisy(level + 90, 2, 1)).cut


def test_the_next_pair_starts_from_nothing() -> None:
    estimator = Estimator(SMALL)
    other, first, second = texture(60, 80, 1), *shifted(5, -3)
    results = [pair.result for pair in hamflow.video([other, first, second], estimator)]
    assert [r.cut for r in results] == [True, False]
    assert same_bytes(results[1].flow, estimator.estimate(first, second).flow)


def test_what_cannot_know_says_no() -> None:
    images = texture(60, 80, 0), texture(60, 80, 1)
    for config in (replace(SMALL, bidirectional=False), replace(SMALL, matcher=LocalModel())):
        assert not hamflow.estimate(*images, config).cut


def test_clear_share() -> None:
    estimator = Estimator(SMALL)
    _, matches = estimator.between(*(estimator.frame(image) for image in shifted(5, -3)))
    clear = [(d.trusted & (d.decided > 0.5)).mean() for d in matches.directions]
    assert matches.clear_share == pytest.approx(np.mean(clear))
    assert 0.5 < matches.clear_share <= matches.trusted_share
    assert not Matches(matches.directions, matches.scale).cut
