"""Metrics of several images together, and as rows of a table."""

from __future__ import annotations

import csv
import io
import json
import math
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from _metrics_reference import (
    COUNTS,
    MEANS,
    NAN,
    Case,
    assert_same,
    cases,
    figures,
    long_cases,
    row,
    slow_means,
    slow_pixels,
)
from hamflow.errors import InputError
from hamflow.evaluation import epe_metrics, pool


def test_pool_by_hand() -> None:
    small = epe_metrics(row((4, 0)), row((0, 0)), [[True]])
    large = epe_metrics(row((0, 0), (2, 0), (0, 1)), row((0, 0), (0, 0), (0, 0)), [[False] * 3])
    nothing = epe_metrics(row((0, 0)), row((NAN, NAN)))
    both = pool(iter([small, large, nothing]))
    assert both.images == 3
    assert both.pooled.epe_all == 7 / 4
    assert both.mean.epe_all == (4 + 1) / 2
    assert both.pooled.epe_occ == both.mean.epe_occ == 4
    assert both.pooled.epe_noc == both.mean.epe_noc == 1
    assert both.pooled.outlier_1px == 2 / 4
    assert both.mean.outlier_1px == pytest.approx((1 + 1 / 3) / 2)
    assert math.isnan(both.pooled.s40plus)
    assert math.isnan(both.mean.s40plus)
    for metrics in (both.pooled, both.mean):
        assert (metrics.pixels, metrics.pixels_noc, metrics.pixels_occ) == (4, 3, 1)


def test_pool_nothing() -> None:
    with pytest.raises(InputError, match=r"^metrics must contain"):
        pool([])


@given(st.lists(cases() | long_cases(), min_size=1, max_size=4))
def test_pooled_is_of_all_pixels_together(images: list[Case]) -> None:
    each = [epe_metrics(*case) for case in images]
    both = pool(each)
    together = slow_means([pixel for case in images for pixel in slow_pixels(*case)])
    assert_same(both.pooled, together)
    for name in MEANS:
        own = [getattr(one, name) for one in each if not math.isnan(getattr(one, name))]
        expected = math.fsum(own) / len(own) if own else NAN
        assert getattr(both.mean, name) == pytest.approx(expected, nan_ok=True)
    for name in COUNTS:
        assert getattr(both.mean, name) == getattr(both.pooled, name) == together[name]
    assert both.images == len(images)


@given(st.lists(cases(), min_size=1, max_size=5), st.integers(0, 5))
def test_neither_order_nor_groups_matter(images: list[Case], cut: int) -> None:
    each = [epe_metrics(*case) for case in images]
    both = pool(each)
    assert pool(each[::-1]).as_row() == both.as_row()
    groups = [pool(group).pooled for group in (each[:cut], each[cut:]) if group]
    assert_same(pool(groups).pooled, figures(both.pooled))


def test_pooling_is_exact() -> None:
    """Thirds and sevenths have no exact mean, but exact sums."""
    images = []
    for count in (3, 7, 49, 11, 13):
        flow = np.zeros((1, count, 2))
        flow[0, 0] = 3, 4
        images.append(flow)
    whole = np.concatenate(images, axis=1)
    pooled = pool(epe_metrics(flow, np.zeros_like(flow)) for flow in images).pooled
    alone = epe_metrics(whole, np.zeros_like(whole))
    assert pooled.epe_all == alone.epe_all == 25 / 83
    assert pooled.outlier_3px == alone.outlier_3px == pooled.fl_all == 5 / 83
    assert pooled.sums["epe_all"] == 25


def test_rows() -> None:
    flow, truth = row((4, 0), (0, 0)), row((0, 0), (0, 0))
    first = epe_metrics(flow, truth, [[True, False]])
    second = epe_metrics(row((1, 0)), row((0, 0)))
    columns = [*MEANS, *COUNTS]
    for one in (first, second):
        assert list(one.as_row()) == columns
        # No NaN, which is not JSON.
        assert json.loads(json.dumps(one.as_row(), allow_nan=False)) == one.as_row()
    assert first.as_row()["epe_all"] == 2.0
    assert first.as_row()["s40plus"] is None
    assert second.as_row()["epe_noc"] is None

    both = pool([first, second]).as_row()
    assert list(both) == ["images", *columns, *(f"image_mean_{name}" for name in MEANS)]
    assert (both["images"], both["pixels"]) == (2, 3)
    assert both["epe_all"] == 5 / 3
    assert both["image_mean_epe_all"] == (2 + 1) / 2
    assert both["image_mean_epe_noc"] == 0
    assert both["s40plus"] is both["image_mean_s40plus"] is None
    assert {type(value) for value in both.values()} == {int, float, type(None)}

    text = io.StringIO()
    writer = csv.DictWriter(text, both)
    writer.writeheader()
    writer.writerow(both)
    (read,) = csv.DictReader(io.StringIO(text.getvalue()))
    assert read == {name: "" if value is None else str(value) for name, value in both.items()}


def test_metrics_travel_between_processes() -> None:
    metrics = epe_metrics(row((4, 0)), row((0, 0)), [[True]])
    copy = pickle.loads(pickle.dumps(metrics))
    assert copy.as_row() == metrics.as_row()
    assert pool([copy]).as_row() == pool([metrics]).as_row()
    assert hash(metrics)
    assert "sums" not in repr(metrics)
