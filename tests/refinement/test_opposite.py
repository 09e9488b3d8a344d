"""Refinement that starts from the finished flow of the other direction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hamflow
from hamflow import _native
from hamflow._types import Flow
from hamflow.datasets.synthetic import SyntheticConfig, load_textures, render_scene
from hamflow.flow import endpoint_error
from hamflow.refinement import GuardedRefinement, VariationalRefinement
from hamflow.refinement.pyramid import coarse_to_fine


def adopted(opposite: Flow, tolerance: float, flow: Flow) -> Flow:
    """The obvious way."""
    result = flow.copy()
    height, width = flow.shape[:2]
    for y in range(height):
        for x in range(width):
            tx, ty = np.float32(x) + flow[y, x, 0], np.float32(y) + flow[y, x, 1]
            if not (0 <= tx <= width - 1 and 0 <= ty <= height - 1):
                continue
            expected = -opposite[int(ty + np.float32(0.5)), int(tx + np.float32(0.5))]
            if np.abs(expected - flow[y, x]).max() <= tolerance:
                result[y, x] = expected
    return result


@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 11)),
    tolerance=st.sampled_from([0.0, 0.5, 2.0, 8.0]),
)
def test_adopts_what_is_near(seed: int, shape: tuple[int, int], tolerance: float) -> None:
    rng = np.random.default_rng(seed)
    flow, opposite = (rng.normal(0, 3, (*shape, 2)).astype(np.float32) for _ in range(2))
    opposite[rng.random(shape) < 0.1] = np.nan
    flow[rng.random(shape) < 0.2] = np.rint(flow[0, 0])
    expected = adopted(opposite, tolerance, flow)
    _native.adopt_opposite(opposite, tolerance, flow)
    np.testing.assert_array_equal(flow, expected)


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="opposite"):
        _native.adopt_opposite(
            np.zeros((3, 4, 2), np.float32), 1.0, np.zeros((4, 4, 2), np.float32)
        )


def a_scene():
    """Return a scene, its frames, and its true flow at quarter size, which is trusted."""
    config = SyntheticConfig(height=96, width=128, max_displacement=8)
    scene = render_scene(config, 3, load_textures())
    estimator = hamflow.Estimator("fast")
    frames = estimator.frame(scene.image0), estimator.frame(scene.image1)
    coarse = scene.flow[1::4, 1::4] / np.float32(4)
    return scene, frames, coarse, np.ones(coarse.shape[:2], np.bool_)


@pytest.mark.parametrize("method", [GuardedRefinement, VariationalRefinement])
def test_starts_from_it_where_matches_agree(method: type[VariationalRefinement]) -> None:
    scene, frames, coarse, trusted = a_scene()
    # Without any warps the start is the result.
    refinement = method(warps=0)
    enlarged = refinement(frames, coarse, trusted, 4)
    start = refinement(frames, coarse, trusted, 4, scene.backward_flow)
    visible = ~scene.occluded
    errors = [endpoint_error(flow, scene.flow)[visible].mean() for flow in (start, enlarged)]
    assert errors[0] < 0.7 * errors[1]
    # Matches that disagree with it do not use it.
    far = scene.backward_flow + np.float32(1000)
    start = refinement(frames, coarse, trusted, 4, far)
    np.testing.assert_allclose(endpoint_error(start, scene.flow).mean(), errors[1], rtol=0.3)


@pytest.mark.parametrize(
    ("scale", "finest", "twice", "known", "refined"),
    [
        (4, 1, False, False, [2, 1]),
        (4, 1, True, False, [2, 1]),
        (4, 1, False, True, [1]),
        (4, 1, True, True, [2]),
        (2, 1, False, False, [1]),
        (2, 1, True, False, [2, 1]),
        (2, 1, True, True, [2]),
        (8, 2, False, False, [4, 2]),
        (8, 2, True, True, [4]),
        (1, 1, False, False, [1]),
        (1, 1, True, False, [1]),
        (1, 1, True, True, [1]),
        (2, 4, True, False, [2]),
    ],
)
def test_which_scales_are_refined(
    scale: int, finest: int, twice: bool, known: bool, refined: list[int]
) -> None:
    frame = hamflow.Estimator("fast").frame(np.zeros((32, 48, 3), np.uint8))
    flow = np.full((32 // scale, 48 // scale, 2), 4 / scale, np.float32)
    seen = []

    def refine_at(finer: int, start: Flow, weight: np.ndarray, near: bool) -> Flow:
        assert start.shape == (32 // finer, 48 // finer, 2)
        assert weight.shape == start.shape[:2]
        assert near == known
        np.testing.assert_allclose(start, 4 / finer)
        seen.append(finer)
        return start

    result = coarse_to_fine(
        frame,
        flow,
        np.ones(flow.shape[:2], np.bool_),
        scale,
        refine_at,
        opposite=np.full((32, 48, 2), -4, np.float32) if known else None,
        finest=finest,
        twice=twice,
    )
    assert seen == refined
    np.testing.assert_allclose(result, np.full((32, 48, 2), 4))


def test_a_following_pair_has_the_details_of_the_other_direction() -> None:
    scene, frames, coarse, trusted = a_scene()
    following = hamflow.Estimator("fast").config.refinement.warm_started()
    assert isinstance(following, GuardedRefinement)
    errors = [
        endpoint_error(following(frames, coarse, trusted, 4, opposite), scene.flow)[~scene.occluded]
        for opposite in (scene.backward_flow, scene.backward_flow + np.float32(1000))
    ]
    assert np.median(errors[0]) < 0.6 * np.median(errors[1])
    assert errors[0].mean() < 0.8 * errors[1].mean()
