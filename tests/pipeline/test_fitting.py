"""Labels that do not fit into memory are in files, and the matches are those of the whole."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from _problems import same_bytes
from _tiles import InTiles, scene
from hamflow import Estimator, plan
from hamflow.config import PRESETS, EstimatorConfig
from hamflow.crf.backend import BACKENDS
from hamflow.crf.streamed import StreamedBackend
from hamflow.datasets.synthetic import SyntheticConfig
from hamflow.matching import local_model, projection
from hamflow.matching.local_model import LocalModel
from hamflow.pipeline.matches import Matches
from hamflow.result import FlowResult

SCENE = SyntheticConfig(height=240, width=400, max_displacement=12)
WINDOW = 30
NARROW = (-60, 121, -3, 7)  # many labels, and little work
JOINT = replace(PRESETS["fast"], levels=1)
LOCAL = replace(JOINT, matcher=LocalModel())


class Small(StreamedBackend):
    """Out of core, in small parts; counts the volumes."""

    volumes = 0

    def __init__(self) -> None:
        super().__init__((1_500_000, 1_500_000))

    def empty(self, shape: tuple[int, int, int], dtype: type[Any]) -> Any:
        Small.volumes += 1
        return super().empty(shape, dtype)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Small, "volumes", 0)
    monkeypatch.setattr("hamflow.crf.streamed.Small", Small, raising=False)
    monkeypatch.setitem(BACKENDS, "streamed", "hamflow.crf.streamed:Small")


def found(estimator: Estimator, size: SyntheticConfig = SCENE) -> tuple[FlowResult, Matches]:
    images = scene(4, size)
    return estimator.between(estimator.frame(images.image0), estimator.frame(images.image1))


@cache
def whole(kind: str) -> tuple[FlowResult, Matches]:
    config = LOCAL if kind == "local" else JOINT
    return found(Estimator(config, window=WINDOW, scale=1))


def fitting(config: EstimatorConfig, labels: int) -> tuple[FlowResult, Matches]:
    estimator = InTiles(config, 300 * 300, window=WINDOW, scale=1)
    estimator.limits = {"matched_labels": labels}
    return found(estimator)


def same_matches(one: Matches, other: Matches) -> bool:
    """All that the stages behind the matching start from."""
    return all(
        same_bytes(getattr(mine, name), getattr(its, name))
        for mine, its in zip(one.directions, other.directions, strict=True)
        for name in ("flow", "trusted", "decided", "completed", "distance")
    )


def certificate(result: FlowResult) -> tuple[Any, ...]:
    steps = [(step.iteration, step.bound, step.energy) for step in result.history]
    return result.energy, result.bound, result.gap, result.window, steps


@pytest.mark.parametrize("labels", [240 * 400 * 2 * WINDOW, 240 * 400 * 2 * WINDOW - 1])
def test_the_joint_model_is_identical(labels: int) -> None:
    result, matches = fitting(JOINT, labels)
    expected, before = whole("joint")
    assert (Small.volumes > 0) == (labels < 240 * 400 * 2 * WINDOW)
    assert same_matches(matches, before)
    assert certificate(result) == certificate(expected)


def test_the_local_model_is_identical(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "LABELS_AT_ONCE", 240 * 400 * 7)
    result, matches = fitting(LOCAL, 1000)
    assert same_matches(matches, whole("local")[1])
    assert result.gap is None
    images = scene(4, SCENE)
    bits = [Estimator(LOCAL).frame(image).bits(1) for image in (images.image0, images.image1)]
    expected = local_model.LocalModel()
    assert same_bytes(
        projection.winner_takes_all(*bits, WINDOW, outside=expected.outside),
        projection.min_projection(*bits, WINDOW, outside=expected.outside).wta(),
    )


@pytest.mark.parametrize("before", [True, False])
def test_the_next_pair_of_a_video(before: bool) -> None:
    """With labels of the pair before, and with priors."""
    config = replace(PRESETS["fast"], prior=5.0)
    images = scene(4, SCENE)
    estimators = [Estimator(config, scale=2), InTiles(config, 150 * 150, scale=2)]
    estimators[1].limits = {"matched_labels": 1000}  # type: ignore[attr-defined]
    results = []
    for estimator in estimators:
        first, second = estimator.frame(images.image0), estimator.frame(images.image1)
        previous = estimator.between(second, first)[1] if before else None
        results.append(estimator.between(first, second, previous=previous))
    assert Small.volumes > 0
    assert same_matches(results[0][1], results[1][1])
    assert certificate(results[0][0]) == certificate(results[1][0])


def test_in_the_smallest_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    size = SyntheticConfig(height=300, width=500, max_displacement=30)
    least = plan(500, 300, "fast", window=NARROW, scale=1).smallest
    estimators = [
        Estimator("fast", window=NARROW, scale=1, max_memory=limit) for limit in (None, least)
    ]
    (expected, before), (result, matches) = (found(estimator, size) for estimator in estimators)
    assert Small.volumes > 0
    assert same_matches(matches, before)
    assert certificate(result) == certificate(expected)
    assert not list(tmp_path.iterdir())
