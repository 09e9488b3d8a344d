"""Why a pixel got its match: against all of the 4D cost, and against the solver itself."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hamflow
from _problems import BitsProblem, all_distances, bits_problems, brute_wta, nearest_argmin
from _route import SMALL, shifted
from hamflow import Estimator, Explanation, FlowResult, InputError, Recording
from hamflow.crf.joint_model import JointModel
from hamflow.crf.solver import CrfPass, CrfStep
from hamflow.matching.local_model import LocalModel
from hamflow.pipeline.recording import SearchIteration
from hamflow.stages import MatchTask


def explanation_of(problem: BitsProblem, scale: int = 1) -> Explanation:
    labels = np.zeros(problem.bits0.shape[:2], np.int16)
    return Explanation(
        problem.bits0, problem.bits1, problem.window, scale, labels, labels, problem.outside
    )


@settings(max_examples=60, deadline=None)
@given(problem=bits_problems(), place=st.tuples(st.floats(0, 0.999), st.floats(0, 0.999)))
def test_costs_are_the_minima_of_the_4d_cost(
    problem: BitsProblem, place: tuple[float, float]
) -> None:
    height, width = problem.bits0.shape[:2]
    x, y = int(place[0] * width), int(place[1] * height)
    costs = all_distances(problem.bits0, problem.bits1, problem.window, problem.outside)
    found = explanation_of(problem).pixel(x, y)
    window = problem.window
    np.testing.assert_array_equal(found.u.cost, costs[y, x].min(axis=1))
    np.testing.assert_array_equal(found.v.cost, costs[y, x].min(axis=0))
    u, v = brute_wta(costs, window)[y, x]
    assert (found.u.labels[found.u.wta], found.v.labels[found.v.wta]) == (u, v)
    assert found.bits == 64 * (problem.bits0.ndim - 1)


def test_the_map_around_a_match() -> None:
    rng = np.random.default_rng(0)
    bits0, bits1 = rng.integers(0, 2**64, (2, 9, 11), np.uint64)
    problem = BitsProblem(bits0, bits1, hamflow.Window.of(4), 30)
    found = explanation_of(problem, scale=2).pixel(17, 9, around=(4.8, -3.2), radius=3).hamming
    assert found.around == (4, -4)
    assert found.labels_u.tolist() == [-2, 0, 2, 4, 6, 8, 10]
    assert found.labels_v.tolist() == [-10, -8, -6, -4, -2, 0, 2]
    for row, v in enumerate(found.labels_v // 2):
        for column, u in enumerate(found.labels_u // 2):
            x, y = 8 + u, 4 + v
            inside = 0 <= x < 11 and 0 <= y < 9
            distance = bin(int(bits0[4, 8]) ^ int(bits1[y, x])).count("1") if inside else 30
            assert found.cost[row, column] == distance


@cache
def explained(preset: Any = SMALL) -> tuple[FlowResult, Explanation]:
    return Estimator(preset).explained(*shifted(6, -4))


def test_the_result_is_the_same() -> None:
    result, _ = explained()
    expected = hamflow.estimate(*shifted(6, -4), preset=SMALL)
    assert (result.flow == expected.flow).all()
    assert (result.backward == expected.backward).all()


@pytest.mark.parametrize("levels", [1, 2])
def test_slacks_and_labels_are_those_of_the_last_search(levels: int) -> None:
    """The solver is called once more, with what the explanation says that it was called with."""
    estimator = Estimator(replace(SMALL, levels=levels, matching_pixels=4000))
    images = shifted(6, -4, 120, 130)
    result, found = estimator.explained(*images)
    assert result.scale == found.scale == 2
    assert found.window.enlarged(2) == result.window
    frame = estimator.frame(images[0])
    matcher = estimator.config.matcher
    bits = found.bits0, found.bits1
    task = MatchTask(bits, frame.at(2), found.window, prior=found.prior)
    again: Any = matcher(task)
    assert (found.prior is not None) == (levels == 2)
    pixel = found.pixel(31, 20)
    assert pixel.cell == (15, 10)
    for curve, slack, labels in (
        (pixel.u, again.slack_u, again.u),
        (pixel.v, again.slack_v, again.v),
    ):
        assert curve.slack is not None
        np.testing.assert_array_equal(curve.slack, slack[10, 15] / (2 * again.scale))
        assert curve.crf == labels[10, 15]
    assert result.energy == again.energy


def test_the_prior_is_in_bits() -> None:
    estimator = Estimator(replace(SMALL, matching_pixels=4000))
    _, found = estimator.explained(*shifted(6, -4, 120, 130))
    assert found.prior is not None
    a, b = found.prior.unary(found.window)
    pixel = found.pixel(30, 22)
    assert pixel.u.prior is not None
    np.testing.assert_array_equal(pixel.u.prior, a[11, 15] / 2)
    np.testing.assert_array_equal(pixel.v.prior, b[11, 15] / 2)
    assert pixel.u.prior.max() > 0


def test_without_rounding_the_label_has_the_least_slack() -> None:
    matcher = JointModel(outer=1, rounding="argmin")
    _, found = explained(replace(SMALL, matcher=matcher, bidirectional=False))
    for y in range(0, 60, 7):
        for x in range(0, 80, 3):
            pixel = found.pixel(x, y)
            for curve, first in ((pixel.u, found.window.u0), (pixel.v, found.window.v0)):
                assert curve.slack is not None
                assert nearest_argmin(curve.slack, first) == first + (curve.crf or 0)


def test_with_rounding_most_labels_have_the_least_slack() -> None:
    _, found = explained()
    assert found.slack_u is not None
    assert (found.slack_u.argmin(axis=2) == found.u).mean() > 0.9


def test_the_local_model_has_no_slacks() -> None:
    config = replace(SMALL, matcher=LocalModel(outside=20), levels=1)
    _, found = Estimator(config, window=20).explained(*shifted(6, -4))
    assert found.outside == 20
    for y in range(0, 60, 9):
        for x in range(0, 80, 5):
            pixel = found.pixel(x, y)
            assert (pixel.u.slack, pixel.u.crf, pixel.u.prior) == (None, None, None)
            assert (pixel.u.wta, pixel.v.wta) == (found.u[y, x], found.v[y, x])


def test_descriptors_of_two_words() -> None:
    _, found = explained("realtime")
    pixel = found.pixel(40, 30)
    assert pixel.bits == 128
    assert found.outside == 64
    assert pixel.u.crf is not None
    assert pixel.u.labels[pixel.u.crf] == 6


def test_each_pair_of_a_video_is_explained() -> None:
    iterations: list[SearchIteration] = []
    recording = Recording(iterations.append)
    with pytest.raises(InputError, match="No pair has been matched yet"):
        recording.explanation(1)
    scene = shifted(30, 0, 60, 100)[0]
    frames = [scene[:, 3 * k : 3 * k + 70] for k in range(3)]
    estimator = Estimator(SMALL).recorded_by(recording)
    for item in hamflow.video(frames, estimator):
        found = recording.explanation(item.result.scale)
        assert found.window.enlarged(found.scale) == item.result.window
        u = found.pixel(35, 30).u
        assert u.crf is not None
        assert u.labels[u.crf] == -3
        # Of the last search: its last iterations are the result's history.
        forward = [i.step for i in iterations if i.direction == 0]
        steps = [step for step in forward if isinstance(step, CrfStep)]
        assert tuple(steps[-len(item.result.history) :]) == item.result.history
        passes = [step for step in forward if isinstance(step, CrfPass)]
        assert passes[-1].bound == steps[-1].bound
        assert iterations[-1].direction == 1
        assert iterations[-1].shape == (60, 70)


def test_it_is_ready_for_json() -> None:
    text = json.loads(json.dumps(explained()[1].pixel(5, 6).as_dict()))
    assert text["cell"] == [5, 6]
    assert len(text["u"]["labels"]) == len(text["u"]["cost"]) == len(text["u"]["slack"])
    assert np.shape(text["hamming"]["cost"]) == (17, 17)


def test_memory_is_not_bounded() -> None:
    with pytest.raises(InputError, match="max_memory and what explains a result exclude"):
        Estimator(SMALL, max_memory="4 GB").explained(*shifted(6, -4))


def test_a_pixel_outside() -> None:
    with pytest.raises(InputError, match=r"\(80, 3\) is outside of the image"):
        explained()[1].pixel(80, 3)
