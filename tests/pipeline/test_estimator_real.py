"""The estimator on real pairs, where they are."""

from __future__ import annotations

import numpy as np
import pytest

import hamflow
from _paths import DATA, needs_data
from hamflow.datasets.folder import FolderDataset
from hamflow.evaluation import opencv_methods, sparsification

# Errors with room for other descriptors, and where DIS is beaten by how much.
PAIRS = {
    "middlebury-flow/RubberWhale": (0.2, 1.0),
    "middlebury-stereo-as-flow/cv_cones": (1.8, 1.0),
    "sintel-clean/cave_4_0029": (1.5, 0.8),
    "sintel-clean/market_5_0002": (10.0, 0.6),
}


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("name", PAIRS)
def test_error(name: str) -> None:
    most, share = PAIRS[name]
    pair = FolderDataset(DATA).subset([name])[0]
    result = hamflow.estimate(pair.image0, pair.image1)
    error = hamflow.endpoint_error(result.flow, pair.flow)
    assert np.nanmean(error) < most
    other = opencv_methods()["DIS medium"](pair.image0, pair.image1)
    assert np.nanmean(error) < share * np.nanmean(hamflow.endpoint_error(other, pair.flow))
    # The confidence knows more than nothing: a random order has a curve of ones.
    assert result.confidence is not None
    curve = sparsification(error, result.confidence)
    assert curve.ause < 0.8 * float((1 - curve.oracle).mean())


@needs_data
def test_occlusions() -> None:
    pair = FolderDataset(DATA).subset(["sintel-clean/market_5_0002"])[0]
    result = hamflow.estimate(pair.image0, pair.image1, preset="fast")
    assert result.occlusion is not None
    assert pair.occluded is not None
    # Found where they are at least twice as often as elsewhere.
    rates = [float(result.occlusion[mask].mean()) for mask in (pair.occluded, ~pair.occluded)]
    assert rates[0] > 2 * rates[1]
