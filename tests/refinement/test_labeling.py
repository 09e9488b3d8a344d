"""Completion by choice among candidate motions, against slow code and on motions that are known."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _candidates_reference import (
    Array,
    F,
    described,
    judged,
    plane_motion,
    random_choice,
    random_scoring,
)
from _interpolation_reference import links_of, random_problem, shortest
from _problems import same_bytes, same_everywhere
from hamflow import InputError, _native
from hamflow.refinement import AffineCompletion, LabelingCompletion, complete
from hamflow.refinement.completion import interpolated
from hamflow.refinement.labeling import gather_candidates
from hamflow.stages import MatchEvidence

H = np.array([[1.02, 0.03, 4.0], [-0.02, 0.97, -3.0], [4e-4, 6e-4, 1.0]])


@pytest.mark.parametrize("seed", range(40))
def test_features_and_scores_equal_slow_code(seed: int) -> None:
    p = random_scoring(np.random.default_rng(seed))
    features, score = p.run()
    assert np.allclose(features, described(p), rtol=0, atol=1e-4)
    assert np.allclose(score, judged(p.network, features), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_distances_equal_shortest_paths(seed: int) -> None:
    p = random_problem(np.random.default_rng(seed))
    source = np.zeros((2, *p.right.shape), np.uint8)
    source[0].flat[p.pixel] = 1
    distance = np.empty(source.shape, F)
    _native.geodesic_distances(p.right, p.down, source, 50, distance)
    found = shortest(links_of(p), [int(start) for start in p.pixel])
    assert np.allclose(distance[0].flat, [found[i][0] for i in range(p.right.size)], rtol=1e-5)
    assert (distance[1] >= 1e30).all()


@pytest.mark.parametrize(
    ("shape", "opened"),
    [
        ((1, 5), [0, 1, 2, 3, 4]),
        ((5, 1), [4, 1, 2, 0, 3]),
        ((1, 5), [3, 0, 1]),  # two trees
        ((2, 2), [0, 1, 3]),  # all four are a loop
        ((3, 3), [1, 3, 4, 5, 7]),
        ((2, 3), [0, 1, 2, 5]),
        ((1, 1), [0]),
    ],
)
@pytest.mark.parametrize("seed", range(10))
def test_choice_on_a_tree_is_optimal(shape: tuple[int, int], opened: list[int], seed: int) -> None:
    p = random_choice(np.random.default_rng(seed), shape, 3, opened)
    p.rounds = 8
    labels = []
    for chosen in itertools.product(range(3), repeat=len(p.pixel)):
        label = np.zeros(shape, np.int32)
        label.flat[p.pixel] = chosen
        labels.append(label)
    best = min(p.energy(label) for label in labels)
    assert p.energy(p.run()) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_choice_on_a_grid_is_good(seed: int) -> None:
    p = random_choice(np.random.default_rng(seed), (7, 8), 4)
    alone = np.zeros((7, 8), np.int32)
    alone.flat[p.pixel] = p.unary.argmin(axis=1)
    assert p.energy(p.run()) < p.energy(alone)


def seeds_of(shape: tuple[int, int], step: int = 3) -> tuple[Array, Array, Array]:
    y, x = (a.ravel() for a in np.mgrid[0 : shape[0] : step, 0 : shape[1] : step])
    return y, x, np.stack([x, y], axis=1).astype(F)


def affine_models(place: Array, flow: Array) -> Array:
    """Plain shifts, relative to the origin."""
    models = np.zeros((len(place), 6), F)
    models[:, 0], models[:, 3] = flow[:, 0], flow[:, 1]
    return models


def found_planes(place: Array, flow: Array, tolerance: float = 1.0) -> tuple[Array, Array]:
    planes, plane = np.empty((5, 9)), np.empty(len(place), np.int32)
    count = _native.find_planes(
        place, flow, affine_models(place, flow), (60, 40, tolerance), planes, plane
    )
    return planes[:count].reshape(-1, 3, 3), plane


@pytest.mark.parametrize("shape", [(1, 1), (40, 17), (3, 50)])
def test_motions_of_planes(shape: tuple[int, int]) -> None:
    horizon = H.copy()
    horizon[2] = 0.02, -0.03, 0.4
    motion = np.full((2, *shape, 2), np.nan, F)
    _native.plane_motions(np.stack([H, horizon]).reshape(2, 9), motion)
    for found, homography in zip(motion, (H, horizon), strict=True):
        assert np.allclose(found, plane_motion(homography, shape), rtol=1e-5, atol=1e-4)


def test_planes_are_found_among_outliers() -> None:
    rng = np.random.default_rng(1)
    y, x, place = seeds_of((90, 120))
    first, second = plane_motion(H, (90, 120))[y, x], F([-9, 5])
    flow = np.where((x < 60)[:, None], first, second).astype(F)
    wrong = rng.random(len(flow)) < 0.2
    flow[wrong] += rng.normal(size=(wrong.sum(), 2)).astype(F) * 20
    planes, plane = found_planes(place, flow)
    assert len(planes) == 2
    for k, motion in enumerate(plane_motion(m, (90, 120)) for m in planes):
        residual = np.hypot(*(motion[y, x] - flow).T)
        assert (residual[plane == k] < 1.001).all()
        assert (residual[~wrong & (plane == k)] < 0.1).all()
    assert set(plane[~wrong]) == {0, 1}


def test_a_match_less_changes_hardly_any_plane() -> None:
    """Of a bent surface, which planes are found depends on the starts alone."""
    y, x, place = seeds_of((150, 210))
    flow = np.stack([8 * np.sin(x / 25), 8 * np.cos(y / 20)], axis=1).astype(F)
    before = found_planes(place, flow)[0]
    assert len(before) == 5
    same = 0
    for left_out in range(0, len(place), 37):
        after = found_planes(*(np.delete(a, left_out, axis=0) for a in (place, flow)))[0]
        change = plane_motion(after[0], (150, 210)) - plane_motion(before[0], (150, 210))
        same += bool(np.abs(change).mean() < 0.1)
    assert same > 0.9 * len(range(0, len(place), 37))


def moved_bits(flow: Array) -> tuple[Array, Array]:
    """Random bits; where a flow in whole pixels leads are those of where it starts."""
    height, width = flow.shape[:2]
    first, second = np.random.default_rng(0).integers(0, 2**63, (2, height, width), np.uint64)
    y, x = np.indices((height, width))
    y1, x1 = (y + flow[..., 1]).astype(int), (x + flow[..., 0]).astype(int)
    inside = (y1 >= 0) & (y1 < height) & (x1 >= 0) & (x1 < width)
    first[inside] = second[y1[inside], x1[inside]]
    return first, second


def test_a_plane_that_leaves_the_frame_is_continued() -> None:
    """The affine continuation of a homography is wrong by pixels; the one that is chosen is not.

    Half of the hole moves out of the frame, where no bits tell. Above is another motion, for which
    the affine continuation is right.
    """
    rng = np.random.default_rng(0)
    shape, horizon = (120, 160), 40
    ground = np.array([[1.1, 0.03, 6.0], [-0.02, 1.05, -3.0], [-1e-3, 6e-4, 1.0]])
    truth = plane_motion(ground, shape)
    truth[:horizon] = -6, 1
    image = rng.random((*shape, 3)).astype(F) / 2
    image[:horizon] += 0.5
    trusted = np.broadcast_to(np.arange(160) < 80, shape)
    flow = np.rint(truth)
    bits = moved_bits(flow)
    flow[~trusted] += rng.integers(-20, 21, flow[~trusted].shape)
    completed, _ = LabelingCompletion()(MatchEvidence(image, bits, flow, trusted))
    affine, _ = complete(image, flow, trusted)
    below, above = ~trusted, ~trusted
    below[:horizon], above[horizon:] = False, False
    error, before = (np.hypot(*np.moveaxis(f - truth, 2, 0)) for f in (completed, affine))
    assert before[below].mean() > 3
    assert error[below].mean() < 0.5 * before[below].mean()
    assert error[above].mean() < 0.01


@settings(max_examples=10, deadline=None)
@given(u=st.integers(-9, 9), v=st.integers(-9, 9), seed=st.integers(0, 99))
def test_constant_flow_stays(u: int, v: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    flow = np.broadcast_to(F([u, v]), (30, 40, 2)).copy()
    trusted = np.ones((30, 40), np.bool_)
    top, left = rng.integers(0, 20, 2)
    trusted[top : top + 15, left : left + 15] = False
    flow[~trusted] = rng.normal(size=2) * 20
    image = rng.random((30, 40, 3)).astype(F)
    bits = moved_bits(np.rint(flow))
    completed, distance = LabelingCompletion()(MatchEvidence(image, bits, flow, trusted))
    assert np.allclose(completed, [u, v], atol=1e-2)
    assert completed.dtype == distance.dtype == F


SPECK = slice(20, 25), slice(38, 43)  # smaller than what is trusted after all


def scene() -> MatchEvidence:
    """Two planes, a strip between them of which only a speck is trusted, and the way back."""
    rng = np.random.default_rng(3)
    shape = 60, 90
    flow = plane_motion(H, shape)
    flow[:, 45:] = [-6, 1]
    trusted = np.ones(shape, np.bool_)
    trusted[:, 35:50] = False
    trusted[SPECK] = True
    bits = moved_bits(np.rint(flow))
    back = np.rint(-flow), rng.random(shape) < 0.8
    image = rng.random((*shape, 3)).astype(F)
    return MatchEvidence(image, bits, np.rint(flow), trusted, back)


def test_trusted_matches_keep_the_affine_flow() -> None:
    matches = scene()
    affine, lengths = complete(matches.image, matches.flow, matches.trusted)
    filled = interpolated(matches.image, matches.flow, matches.trusted, AffineCompletion())
    motion = gather_candidates(filled, LabelingCompletion()).motion
    assert same_bytes(motion[0], affine)
    kept = matches.trusted.copy()
    kept[SPECK] = False
    alone = MatchEvidence(matches.image, matches.bits, matches.flow, matches.trusted)
    for known in (matches, alone):
        completed, distance = LabelingCompletion()(known)
        assert same_bytes(distance, lengths)
        assert same_bytes(completed[kept], affine[kept])
        # The others take one of the candidates each, also those that were dropped as too few.
        assert (completed == motion).all(axis=3).any(axis=0).all()
        assert (completed != affine)[SPECK].any()


def test_without_planes_there_is_nothing_to_choose() -> None:
    matches = scene()
    without = LabelingCompletion(planes=0)(matches)
    for found, expected in zip(without, AffineCompletion()(matches), strict=True):
        assert same_bytes(found, expected)


def test_unknown_flow() -> None:
    matches = scene()
    matches.flow[~matches.trusted] = np.nan
    assert matches.back is not None
    matches.back[0][::2] = np.nan
    assert np.isfinite(LabelingCompletion()(matches)[0]).all()


def test_same_bytes_everywhere() -> None:
    matches = scene()
    assert same_everywhere(lambda: LabelingCompletion()(matches)[0])


def test_bad_input() -> None:
    matches = scene()
    for change in (
        {"bits": (matches.bits[0], matches.bits[1][1:])},
        {"back": (np.zeros((2, 2, 2)),) * 2},
    ):
        bad = MatchEvidence(**{**vars(matches), **change})
        with pytest.raises(InputError, match="must have the shape"):
            LabelingCompletion()(bad)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("planes", 256),
        ("tries", -1),
        ("least", 11),
        ("sweeps", 1.0),
        ("plane_tolerance", 0.0),
        ("smoothness", -1.0),
        ("contrast", math.nan),
        ("cap", math.inf),
        ("cell", 0),
    ],
)
def test_bad_parameters(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} must be .*{value}.*\\.$"):
        LabelingCompletion(**{name: value})
