"""Completion by choice among candidates for all pixels, against slow code and on known motions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from _candidates_reference import plane_motion
from _choice_reference import FEATURES, FIELDS, Array, colors_apart, random_network, scored
from _problems import same_bytes, same_everywhere
from hamflow import _native
from hamflow.refinement import ChoiceCompletion, LabelingCompletion
from hamflow.refinement._networks import network
from hamflow.refinement.choice import all_candidates, scores_in_context
from hamflow.refinement.completion import interpolated
from hamflow.stages import MatchEvidence

F = np.float32


def native_scores(features: Array, fields: Array, numbers: Array) -> Array:
    scores = np.full((len(features), *features.shape[2:]), np.nan, F)
    _native.score_in_context(features, fields, numbers, scores)
    return scores


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 9), (3, 8, 8), (5, 13, 37), (1, 30, 17)])
def test_scores_equal_slow_code(shape: tuple[int, int, int]) -> None:
    labels, height, width = shape
    rng = np.random.default_rng(labels)
    features = rng.normal(size=(labels, FEATURES, height, width)).astype(F)
    fields = rng.random((FIELDS, height, width)).astype(F)
    for numbers in (random_network(rng), network("choice")):
        found = native_scores(features, fields, numbers)
        expected = scored(features.astype(np.float64), fields, numbers)
        assert np.allclose(found, expected, rtol=1e-4, atol=1e-4 * (1 + np.abs(expected).max()))


def test_the_order_of_candidates_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(6, FEATURES, 11, 21)).astype(F)
    fields = rng.random((FIELDS, 11, 21)).astype(F)
    order = rng.permutation(6)
    scores = native_scores(features, fields, network("choice"))
    again = native_scores(np.ascontiguousarray(features[order]), fields, network("choice"))
    assert np.allclose(again, scores[order], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1, 1, 1), (9, 14, 3), (5, 40, 1)])
def test_color_differences_equal_slow_code(shape: tuple[int, int, int], step: int) -> None:
    rng = np.random.default_rng(step)
    first, second = rng.random((2, *shape)).astype(F)
    motion = (rng.normal(size=(3, *shape[:2], 2)) * 6).astype(F)
    motion[0] = np.rint(motion[0])
    out = np.full((3, -(-shape[0] // step), -(-shape[1] // step)), np.nan, F)
    _native.color_differences(motion, first, second, step, out)
    assert np.allclose(out, colors_apart(motion, first, second, step), rtol=0, atol=1e-4)


def still_and_moving(seed: int) -> tuple[MatchEvidence, Array]:
    """Return a textured plane that moves before a still one, matched with errors, and its flow."""
    rng = np.random.default_rng(seed)
    height, width = 96, 128
    turn = np.array([[1.01, 0.02, 7.0], [-0.01, 0.99, -4.0], [1e-5, 2e-5, 1.0]])
    front = np.zeros((height, width), np.bool_)
    front[20:70, 30:90] = True
    flow = np.where(front[..., None], plane_motion(turn, (height, width)), 0.0).astype(F)
    # Colors and bits of each surface; the second image shows them where the flow leads.
    image = np.where(front[..., None], 0.7, 0.3) + rng.random((height, width, 3)) * 0.2
    bits = rng.integers(0, 2**63, (height, width), np.uint64)
    other, there = image.copy(), bits.copy()
    y, x = np.nonzero(front)
    to_x, to_y = np.rint(x + flow[y, x, 0]).astype(int), np.rint(y + flow[y, x, 1]).astype(int)
    other[to_y, to_x], there[to_y, to_x] = image[y, x], bits[y, x]
    matched, trusted = np.rint(flow), np.ones(front.shape, np.bool_)
    trusted[:, 60:76] = False  # nothing is known there
    matched[~trusted] = rng.integers(-9, 9, (int((~trusted).sum()), 2))
    matched[74:94, 4:50] = -5, 6  # a wrong match that is trusted
    back = np.zeros_like(flow)
    back[to_y, to_x] = -np.rint(flow[y, x])
    known = MatchEvidence(
        image.astype(F), (bits, there), matched.astype(F), trusted, (back, trusted),
        other.astype(F), trusted.astype(F), None,
    )  # fmt: skip
    return known, flow


def error(found: Array, flow: Array) -> float:
    return float(np.hypot(*(found - flow).transpose(2, 0, 1)).mean())


@pytest.mark.parametrize("seed", range(3))
def test_wrong_matches_are_replaced(seed: int) -> None:
    known, flow = still_and_moving(seed)
    found, alone = ChoiceCompletion()(known)[0], LabelingCompletion()(known)[0]
    wrong = slice(74, 94), slice(4, 50)
    assert error(alone[wrong], flow[wrong]) > 7  # they are trusted, so that a labeling keeps them
    assert error(found[wrong], flow[wrong]) < 0.1 * error(alone[wrong], flow[wrong])
    assert error(found[:, 60:76], flow[:, 60:76]) < 0.5 * error(alone[:, 60:76], flow[:, 60:76])
    assert error(found, flow) < 0.4 * error(alone, flow)


def test_pairs_that_follow_keep_the_labeling() -> None:
    assert ChoiceCompletion(cell=4, planes=3).warm_started() == LabelingCompletion(cell=4, planes=3)


def test_a_coarse_flow_is_a_candidate() -> None:
    known, flow = still_and_moving(0)
    filled = interpolated(known.image, known.flow, known.trusted, ChoiceCompletion())
    without = all_candidates(known, filled, ChoiceCompletion())
    candidates = all_candidates(replace(known, coarse=flow), filled, ChoiceCompletion())
    assert len(candidates.motion) == len(without.motion) + 1
    assert np.array_equal(candidates.motion[-1], flow)


def test_without_the_other_image_it_is_a_labeling() -> None:
    known = replace(still_and_moving(0)[0], other=None)
    assert same_bytes(ChoiceCompletion()(known)[0], LabelingCompletion()(known)[0])


def test_same_bytes_everywhere() -> None:
    known = still_and_moving(1)[0]

    def run() -> list[np.ndarray]:
        filled = interpolated(known.image, known.flow, known.trusted, ChoiceCompletion())
        candidates = all_candidates(known, filled, ChoiceCompletion())
        scores = scores_in_context(known, filled, candidates)
        return [scores, ChoiceCompletion()(known)[0]]

    assert same_everywhere(run)
