"""The closer look at the end of the search: when there is one, and what it is good for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hamflow
import hamflow.estimation
from _route import SMALL, shifted
from hamflow import Estimator
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.flow import endpoint_error
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.region import Surroundings
from hamflow.pipeline.scales import SearchStep, plan_scales, reduced_shape

CLOSER = replace(SMALL, matching_pixels=2000, closer_pixels=5000)


@given(
    st.tuples(st.integers(1, 3000), st.integers(1, 3000)),
    st.integers(1, 10**6),
    st.integers(0, 10**7),
)
def test_when(shape: tuple[int, int], matching: int, closer: int) -> None:
    config = replace(SMALL, matching_pixels=matching, closer_pixels=closer)
    known, scales = plan_scales(shape, config, closer=False), plan_scales(shape, config)
    assert scales[: len(known)] == known
    finer = known[-1] // 2
    if finer and np.prod(reduced_shape(shape, finer)) <= closer:
        assert scales[len(known) :] == [finer]
    else:
        assert scales == known
    assert plan_scales(shape, replace(config, scale=2)) == plan_scales(
        shape, replace(config, scale=2), closer=False
    )


def steps(monkeypatch: pytest.MonkeyPatch) -> list[SearchStep]:
    seen: list[SearchStep] = []
    real = hamflow.estimation.search

    def spy(frames: Any, step: SearchStep, *others: Any) -> Any:
        seen.append(step)
        return real(frames, step, *others)

    monkeypatch.setattr(hamflow.estimation, "search", spy)
    return seen


def test_the_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = steps(monkeypatch)
    result = Estimator(CLOSER).estimate(*shifted(7, -3))
    assert [(step.scale, step.closer) for step in seen] == [(2, False), (1, True)]
    assert result.scale == 1
    assert np.abs(result.flow[20:-20, 20:-20] - (7, -3)).max() < 0.1


def test_not_with_a_window_or_a_scale() -> None:
    images = shifted(7, -3)
    assert Estimator(CLOSER, window=32).estimate(*images).scale == 2
    assert Estimator(CLOSER, scale=2).estimate(*images).scale == 2


def test_videos_have_none() -> None:
    """All pairs have the same detail, and the next one starts from the one before."""
    items = list(hamflow.video([*shifted(7, -3), shifted(7, -3)[0]], Estimator(CLOSER)))
    assert [item.result.scale for item in items] == [2, 2]


def test_a_pair_before_without_videos(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = Estimator(CLOSER)
    first, second = (estimator.frame(image) for image in shifted(7, -3))
    result, matches = estimator.between(first, second)
    assert result.scale == 1
    seen = steps(monkeypatch)
    scales = []
    for _ in range(2):
        result, matches = estimator.between(first, second, previous=matches)
        scales.append(result.scale)
    assert scales == [2, 2]
    assert seen[1].warm
    assert not any(step.closer for step in seen)


@pytest.mark.parametrize("closer", [0, 5000])
def test_parts_are_searched_at_the_scales_of_the_whole(closer: int) -> None:
    estimator = Estimator(replace(CLOSER, closer_pixels=closer))
    frames = tuple(estimator.frame(image) for image in shifted(7, -3))
    assert isinstance(frames[0], Frame)
    around = Surroundings(frames, estimator.config, None)  # type: ignore[arg-type]
    for width, height in ((11, 7), (40, 30), (80, 60)):
        box = hamflow.pipeline.box.Box(0, 0, width, height)
        scales = plan_scales((height, width), around.settings(box))
        assert scales[-1] == plan_scales((60, 80), estimator.config)[-1]
    part = estimator.estimate(*shifted(7, -3), region=(20, 20, 40, 20))
    assert part.scale == (1 if closer else 2)
    assert np.abs(part.flow - (7, -3)).max() < 0.1


@pytest.mark.slow
def test_borders_are_found_where_they_are() -> None:
    """Scenes in space that had been matched at half of the size."""
    space = SyntheticConfig(height=384, width=512, max_displacement=60, perspective_share=1.0)
    errors = {0: 0.0, 200_000: 0.0}
    for number in (1, 2):
        scene = SyntheticDataset(space, None, size=3)[number]
        for pixels in errors:
            estimator = Estimator(hamflow.EstimatorConfig(closer_pixels=pixels))
            flow = estimator.estimate(scene.image0, scene.image1).flow
            errors[pixels] += float(endpoint_error(flow, scene.flow).mean())
    assert errors[200_000] < 0.8 * errors[0]
