"""Matching and completion, tile by tile."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from _problems import same_bytes
from _tiles import InTiles, apart, scene
from hamflow import Estimator
from hamflow.config import PRESETS
from hamflow.datasets.synthetic import SyntheticConfig
from hamflow.matching.local_model import LocalModel
from hamflow.pipeline.matches import Matches
from hamflow.result import FlowResult

SCENE = SyntheticConfig(height=240, width=400, max_displacement=12)
WINDOW = 30
JOINT = replace(PRESETS["fast"], levels=1)
LOCAL = replace(JOINT, matcher=LocalModel())


def found(estimator: Estimator) -> tuple[FlowResult, Matches]:
    images = scene(4, SCENE)
    return estimator.between(estimator.frame(images.image0), estimator.frame(images.image1))


@cache
def whole(kind: str) -> tuple[FlowResult, Matches]:
    config = LOCAL if kind == "local" else JOINT
    return found(Estimator(config, window=WINDOW, scale=1))


def tiled(config: Any, **limits: int) -> tuple[FlowResult, Matches]:
    estimator = InTiles(config, 300 * 300, window=WINDOW, scale=1)
    estimator.limits |= limits
    return found(estimator)


def test_the_local_model_is_identical() -> None:
    result, matches = tiled(LOCAL, matched_labels=190 * 190 * 2 * WINDOW)
    expected = whole("local")[1]
    for mine, other in zip(matches.directions, expected.directions, strict=True):
        assert same_bytes(mine.flow, other.flow)
        assert same_bytes(mine.trusted, other.trusted)
        assert same_bytes(mine.decided, other.decided)
    assert result.gap is None


def test_the_joint_model_is_nearly_so() -> None:
    result, matches = tiled(JOINT, matched_labels=190 * 190 * 2 * WINDOW)
    expected, before = whole("joint")
    assert not same_bytes(matches.directions[0].decided, before.directions[0].decided)
    for mine, other in zip(matches.directions, before.directions, strict=True):
        assert (apart(mine.flow, other.flow) > 1).mean() < 0.01
    assert (apart(result.flow, expected.flow) > 1).mean() < 0.01
    # Every tile has an energy of its own, and that of the whole is unknown.
    assert (result.energy, result.bound, result.gap, result.history) == (None, None, None, ())
    assert result.window == expected.window


def test_the_completion_is_nearly_so() -> None:
    result, matches = tiled(JOINT, completed_pixels=260 * 260)
    expected, before = whole("joint")
    assert not same_bytes(matches.directions[0].completed, before.directions[0].completed)
    assert np.median(apart(result.flow, expected.flow)) < 0.01
    assert (apart(result.flow, expected.flow) > 1).mean() < 0.03


@pytest.mark.parametrize("before", [True, False])
def test_the_next_pair_of_a_video(before: bool) -> None:
    """Labels and priors are cut as images are."""
    config = replace(PRESETS["fast"], prior=5.0)
    images = scene(4, SCENE)
    estimators = [Estimator(config, scale=2), InTiles(config, 150 * 150, scale=2)]
    estimators[1].limits = {"matched_labels": 100_000}  # type: ignore[attr-defined]
    flows = []
    for estimator in estimators:
        first, second = estimator.frame(images.image0), estimator.frame(images.image1)
        previous = estimator.between(second, first)[1] if before else None
        flows.append(estimator.between(first, second, previous=previous)[0].flow)
    assert np.median(apart(*flows)) < 0.05
