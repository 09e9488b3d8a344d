"""Refinement that starts from a finished flow the other way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hamflow
from hamflow import _native
from hamflow._types import Flow
from hamflow.datasets.synthetic import SyntheticConfig, load_textures, render_sequence
from hamflow.flow import endpoint_error
from hamflow.refinement import GuardedRefinement, VariationalRefinement
from hamflow.stages import Opposite


def adopted(opposite: Flow, there: bool, tolerance: float, flow: Flow) -> Flow:
    """The obvious way."""
    result = flow.copy()
    height, width = flow.shape[:2]
    for y in range(height):
        for x in range(width):
            row, column = y, x
            if there:
                tx, ty = np.float32(x) + flow[y, x, 0], np.float32(y) + flow[y, x, 1]
                if not (0 <= tx <= width - 1 and 0 <= ty <= height - 1):
                    continue
                row, column = int(ty + np.float32(0.5)), int(tx + np.float32(0.5))
            expected = -opposite[row, column]
            if np.abs(expected - flow[y, x]).max() <= tolerance:
                result[y, x] = expected
    return result


@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 11)),
    there=st.booleans(),
    tolerance=st.sampled_from([0.0, 0.5, 2.0, 8.0]),
)
def test_adopts_what_is_near(
    seed: int, shape: tuple[int, int], there: bool, tolerance: float
) -> None:
    rng = np.random.default_rng(seed)
    flow, opposite = (rng.normal(0, 3, (*shape, 2)).astype(np.float32) for _ in range(2))
    opposite[rng.random(shape) < 0.1] = np.nan
    flow[rng.random(shape) < 0.2] = np.rint(flow[0, 0])
    expected = adopted(opposite, there, tolerance, flow)
    _native.adopt_expected(opposite, there, tolerance, flow)
    np.testing.assert_array_equal(flow, expected)


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="opposite"):
        _native.adopt_expected(
            np.zeros((3, 4, 2), np.float32), True, 1.0, np.zeros((4, 4, 2), np.float32)
        )


@pytest.mark.parametrize("method", [GuardedRefinement, VariationalRefinement])
def test_starts_from_it_where_matches_agree(method: type[VariationalRefinement]) -> None:
    config = SyntheticConfig(height=96, width=128, max_displacement=8)
    scene = render_sequence(config, 3, load_textures(), frames=2)[0]
    estimator = hamflow.Estimator("fast")
    frames = estimator.frame(scene.image0), estimator.frame(scene.image1)
    coarse = scene.flow[1::4, 1::4] / np.float32(4)
    trusted = np.ones(coarse.shape[:2], np.bool_)
    # Without any warps, the start is the result: the opposite flow where the matches agree.
    refinement = method(warps=0)
    opposite = Opposite(-scene.flow, there=False)
    start = refinement(frames, coarse, trusted, 4, opposite)
    same = endpoint_error(start, scene.flow) == 0
    assert same.mean() > 0.8
    far = Opposite(-scene.flow - np.float32(1000), there=False)
    near = endpoint_error(refinement(frames, coarse, trusted, 4, far), scene.flow)
    assert near.mean() < 2  # matches disagree with it: it is not used
    assert endpoint_error(start, scene.flow).mean() < near.mean()


def test_a_video_starts_from_the_pair_before() -> None:
    config = SyntheticConfig(height=96, width=160, max_displacement=12)
    pairs = render_sequence(config, 5, load_textures(), frames=3)
    estimator = hamflow.Estimator("fast")
    frames = [estimator.frame(pairs[0].image0)]
    frames += [estimator.frame(pair.image1) for pair in pairs]
    state = estimator.between(frames[0], frames[1])[1]
    assert [flow.shape for flow in state.refined] == [(96, 160, 2)] * 2
    result = estimator.between(frames[1], frames[2], previous=state)[0]
    alone = estimator.between(frames[1], frames[2])[0]
    errors = [endpoint_error(r.flow, pairs[1].flow).mean() for r in (result, alone)]
    assert errors[0] < 1.1 * errors[1] + 0.05
