"""The motion of the camera from exact and from spoiled flow."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from _results import flow_result
from hamflow.motion.camera import (
    Samples,
    apply,
    fit_camera,
    fit_fundamental,
    fit_homography,
    fit_similarity,
    samples_of,
    sampson_error,
    transfer_error,
)

HOMOGRAPHY = np.array([[1.02, -0.03, 4.0], [0.02, 0.99, -3.0], [5e-5, -3e-5, 1]])
Floats = NDArray[np.float64]


def pairs(matrix: Floats, spoiled: float, noise: float = 0.1) -> Samples:
    rng = np.random.default_rng(0)
    here = rng.uniform(0, (200, 150), (1500, 2))
    there = apply(matrix, here) + rng.normal(0, noise, here.shape)
    wrong = rng.random(len(here)) < spoiled
    there[wrong] += rng.normal(0, 20, (wrong.sum(), 2))
    return Samples(here, there, np.full(len(here), 0.3))


def through_space(moving: float = 0.0) -> tuple[Samples, Floats]:
    """Points at many depths before a camera that moves; some of them move by themselves."""
    rng = np.random.default_rng(1)
    points = rng.uniform((-2, -1.5, 3), (2, 1.5, 12), (2000, 3))
    focal, middle = 150.0, np.array([100.0, 75.0])
    turned = points + np.cross([0.01, -0.02, 0.005], points) + (0.4, 0.1, -0.5)
    apart = rng.random(len(points)) < moving
    turned[apart] += (0.0, 1.0, 0.0)
    here, there = (focal * p[:, :2] / p[:, 2:] + middle for p in (points, turned))
    there = there + rng.normal(0, 0.1, there.shape)
    return Samples(here, there, np.full(len(here), 0.3)), apart


@pytest.mark.parametrize("spoiled", [0.0, 0.4])
def test_homography(spoiled: float) -> None:
    found = fit_homography(pairs(HOMOGRAPHY, spoiled))
    corners = np.array([[0.0, 0], [200, 0], [0, 150], [200, 150]])
    assert transfer_error(found, corners, apply(HOMOGRAPHY, corners)).max() < 0.1
    assert found[2, 2] == 1


def test_similarity() -> None:
    matrix = np.array([[0.98, -0.05, 3.0], [0.05, 0.98, 7], [0, 0, 1]])
    found = fit_similarity(pairs(matrix, 0.3))
    assert np.allclose(found[:2, :2], matrix[:2, :2], atol=5e-4)
    assert np.allclose(found[:2, 2], matrix[:2, 2], atol=0.05)
    assert found[2].tolist() == [0, 0, 1]


def test_fundamental_matrix() -> None:
    samples, apart = through_space(0.3)
    found = fit_fundamental(samples)
    assert np.linalg.svd(found)[1][2] < 1e-9
    error = sampson_error(found, samples.here, samples.there)
    assert np.percentile(error[~apart], 95) < 0.5
    assert np.median(error[apart]) > 3


def test_the_error_is_the_distance_to_the_line() -> None:
    """For a camera that moves sideways, the lines are rows, and v is the error."""
    sideways = np.array([[0, 0, 0], [0, 0, -1.0], [0, 1, 0]])
    here, there = np.array([[10.0, 20]]), np.array([[35.0, 23]])
    assert sampson_error(sideways, here, there) == pytest.approx([3.0])


def test_the_simpler_model_is_taken_if_it_fits() -> None:
    assert fit_camera(pairs(HOMOGRAPHY, 0.2)).kind == "homography"
    assert fit_camera(through_space()[0]).kind == "fundamental"


@pytest.mark.parametrize("samples", [pairs(HOMOGRAPHY, 0.0), through_space()[0]])
def test_reversed(samples: Samples) -> None:
    camera = fit_camera(samples)
    back = camera.reversed.deviation(samples.there, samples.here)
    assert np.median(back) < 0.3


def test_the_same_flow_gives_the_same_camera() -> None:
    samples = through_space(0.2)[0]
    assert np.array_equal(fit_fundamental(samples), fit_fundamental(samples))


def test_what_is_occluded_or_doubtful_is_left_out() -> None:
    flow = np.zeros((60, 80, 2), np.float32)
    hidden = np.zeros((60, 80), bool)
    flow[:, :40] = 30
    hidden[:, :40] = True
    samples = samples_of(flow_result(flow, None, hidden))
    assert samples.here[:, 0].min() >= 40
    doubtful = flow_result(flow, None, None, confidence=np.where(hidden, 0.1, 1).astype(np.float32))
    assert samples_of(doubtful).here[:, 0].min() >= 40


def test_tiny_images() -> None:
    assert fit_camera(samples_of(flow_result(np.ones((1, 1, 2), np.float32)))).kind == "homography"
