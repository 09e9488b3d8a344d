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


@pytest.mark.parametrize("method", [GuardedRefinement, VariationalRefinement])
def test_starts_from_it_where_matches_agree(method: type[VariationalRefinement]) -> None:
    config = SyntheticConfig(height=96, width=128, max_displacement=8)
    scene = render_scene(config, 3, load_textures())
    estimator = hamflow.Estimator("fast")
    frames = estimator.frame(scene.image0), estimator.frame(scene.image1)
    coarse = scene.flow[1::4, 1::4] / np.float32(4)
    trusted = np.ones(coarse.shape[:2], np.bool_)
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
