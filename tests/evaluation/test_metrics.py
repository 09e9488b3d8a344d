from __future__ import annotations

import math

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
    slow_metrics,
)
from hamflow.datasets import demo_scene
from hamflow.errors import InputError
from hamflow.evaluation import epe_metrics


def test_by_hand() -> None:
    truth = row((3, 4), (0, 10), (60, 80), (NAN, 0), (100, 0), (0, -40))
    flow = row((3, 4), (0, 8), (64, 80), (5, 5), (100, 6), (4, -40))
    metrics = epe_metrics(flow, truth, [[False, True, False, True, True, False]])
    # Errors 0, 2, 4, -, 6, 4 at lengths 5, 10, 100, -, 100, 40.
    angles = [
        0.0,
        math.degrees(math.atan(10) - math.atan(8)),  # same direction, other length
        math.degrees(math.acos((60 * 64 + 80 * 80 + 1) / math.sqrt(10001 * (64**2 + 80**2 + 1)))),
        math.degrees(math.acos(10001 / math.sqrt(10001 * (100**2 + 6**2 + 1)))),
        math.degrees(math.acos(1601 / math.sqrt(1601 * (40**2 + 4**2 + 1)))),
    ]
    expected = {
        "epe_all": 16 / 5,
        "epe_noc": 8 / 3,
        "epe_occ": 4.0,
        "s0_10": 0.0,
        "s10_40": 2.0,
        "s40plus": 14 / 3,
        "d0_10": 8 / 3,  # all that are visible
        "d10_60": NAN,
        "d60_140": NAN,
        "fl_all": 2 / 5,  # an error of 4 is below 5 % of 100
        "fl_noc": 1 / 3,
        "outlier_1px": 4 / 5,
        "outlier_3px": 3 / 5,
        "outlier_5px": 1 / 5,
        "outlier_1px_noc": 2 / 3,
        "outlier_3px_noc": 2 / 3,
        "outlier_5px_noc": 0.0,
        "angular_all": sum(angles) / 5,
        "angular_noc": (angles[0] + angles[2] + angles[4]) / 3,
        "pixels": 5,
        "pixels_noc": 3,
        "pixels_occ": 2,
        "pixels_s0_10": 1,
        "pixels_s10_40": 1,
        "pixels_s40plus": 3,
        "pixels_d0_10": 3,
        "pixels_d10_60": 0,
        "pixels_d60_140": 0,
    }
    # arccos, as everybody writes the angle, has only half of the digits for small ones.
    assert figures(metrics) == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True)


def test_angles_by_hand() -> None:
    def angle(flow: tuple[float, float], truth: tuple[float, float]) -> float:
        return epe_metrics(row(flow), row(truth)).angular_all

    assert angle((1, 0), (0, 0)) == pytest.approx(45)
    assert angle((0, -1), (0, 0)) == pytest.approx(45)
    assert angle((1, 0), (-1, 0)) == pytest.approx(90)
    assert angle((math.sqrt(3), 0), (0, 0)) == pytest.approx(60)
    assert angle((1, 1), (1, 0)) == pytest.approx(math.degrees(math.acos(2 / math.sqrt(6))))
    assert angle((1e5, 0), (-1e5, 0)) == pytest.approx(180, abs=2e-3)
    assert angle((0.1, 0.7), (0.1, 0.7)) == 0
    # Tiny angles, for which arccos finds 0.
    assert angle((1e-9, 0), (0, 0)) == pytest.approx(math.degrees(1e-9), rel=1e-6)
    assert angle((1e200, 0), (0, 1e200)) == pytest.approx(90)


def test_distance_bands_by_hand() -> None:
    """One row of 200 pixels; the boundary is columns 19 and 20, of which 19 is occluded."""
    truth = np.zeros((1, 200, 2))
    flow = np.zeros((1, 200, 2))
    flow[0, :, 0] = np.arange(200)  # the error of a pixel is its column
    occluded = np.arange(200)[None] < 20
    metrics = epe_metrics(flow, truth, occluded)
    assert metrics.pixels_d0_10 == 10  # columns 20..29
    assert metrics.d0_10 == np.mean(range(20, 30))
    assert metrics.pixels_d10_60 == 50  # columns 30..79
    assert metrics.d10_60 == np.mean(range(30, 80))
    assert metrics.pixels_d60_140 == 80  # columns 80..159
    assert metrics.d60_140 == np.mean(range(80, 160))
    assert metrics.pixels_noc == 180  # the last 40 of them are in no band
    assert metrics.epe_occ == np.mean(range(20))

    # A visible pixel on the boundary is at distance 0 also where the other side is unknown.
    truth[0, :20] = NAN
    unknown = epe_metrics(flow, truth, occluded)
    assert (unknown.d0_10, unknown.d10_60, unknown.d60_140) == (
        metrics.d0_10,
        metrics.d10_60,
        metrics.d60_140,
    )
    assert math.isnan(unknown.epe_occ)


@pytest.mark.parametrize("value", [False, True])
def test_without_a_boundary(value: bool) -> None:
    metrics = epe_metrics(np.ones((4, 5, 2)), np.zeros((4, 5, 2)), np.full((4, 5), value))
    for name in ("d0_10", "d10_60", "d60_140"):
        assert math.isnan(getattr(metrics, name))
        assert getattr(metrics, f"pixels_{name}") == 0


def test_limits_are_not_outliers() -> None:
    metrics = epe_metrics(row((1, 0), (3, 0), (5, 0)), row((0, 0), (0, 0), (0, 0)))
    shares = metrics.outlier_1px, metrics.outlier_3px, metrics.outlier_5px
    assert shares == (2 / 3, 1 / 3, 0)
    assert metrics.fl_all == 1 / 3
    # Exactly 5 % of the length.
    assert epe_metrics(row((84, 0)), row((80, 0))).fl_all == 0
    assert epe_metrics(row((84.01, 0)), row((80, 0))).fl_all == 1


def test_without_occlusions() -> None:
    metrics = epe_metrics(row((1, 0)), row((0, 0)))
    assert metrics.epe_all == 1
    assert metrics.pixels == 1
    unknown = {name for name in MEANS if math.isnan(getattr(metrics, name))}
    assert unknown == {
        *("epe_noc", "epe_occ", "fl_noc", "angular_noc"),
        *("outlier_1px_noc", "outlier_3px_noc", "outlier_5px_noc"),
        *("d0_10", "d10_60", "d60_140", "s10_40", "s40plus"),
    }
    assert metrics.pixels_noc == metrics.pixels_occ == metrics.pixels_d0_10 == 0


def test_kinds_without_pixels() -> None:
    nowhere = epe_metrics(row((1, 0)), row((0, 0)), np.zeros((1, 1), bool))
    assert nowhere.epe_noc == 1
    assert math.isnan(nowhere.epe_occ)
    unknown = epe_metrics(row((NAN, NAN)), row((NAN, 0)), np.ones((1, 1), bool))
    assert unknown.pixels == unknown.pixels_occ == 0
    assert all(math.isnan(getattr(unknown, name)) for name in MEANS)
    assert not any(getattr(unknown, name) for name in COUNTS)


@given(cases())
def test_pixel_by_pixel(case: Case) -> None:
    assert_same(epe_metrics(*case), slow_metrics(*case))


@given(long_cases())
def test_pixel_by_pixel_with_all_distances(case: Case) -> None:
    assert_same(epe_metrics(*case), slow_metrics(*case))


def test_a_whole_scene() -> None:
    scene = demo_scene(48, 64)
    rng = np.random.default_rng(0)
    flow = scene.flow + rng.normal(0, 3, scene.flow.shape).astype(np.float32)
    assert_same(
        epe_metrics(flow, scene.flow, scene.occluded),
        slow_metrics(flow, scene.flow, scene.occluded),
    )
    exact = epe_metrics(scene.flow, scene.flow, scene.occluded)
    assert exact.epe_all == exact.epe_occ == exact.fl_all == exact.outlier_1px == 0
    assert exact.d0_10 == exact.angular_all == 0


def test_sums_are_of_64_bits() -> None:
    flow = np.zeros((1000, 2000, 2), np.float32)
    flow[:, :, 0] = np.float32(0.1)
    metrics = epe_metrics(flow, np.zeros_like(flow))
    assert metrics.epe_all == pytest.approx(float(np.float32(0.1)), rel=1e-13)


def test_unknown_flow() -> None:
    truth = row((1, 2), (3, 4), (NAN, NAN))
    with pytest.raises(InputError, match=r"^flow is unknown \(NaN\) at 1 of the 2 .*; complete it"):
        epe_metrics(row((1, NAN), (0, 0), (0, 0)), truth)
    assert epe_metrics(row((1, 2), (3, 4), (NAN, np.inf)), truth).epe_all == 0


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite(value: float) -> None:
    with pytest.raises(InputError, match=r"^flow has infinite"):
        epe_metrics(row((value, 0)), row((0, 0)))
    with pytest.raises(InputError, match=r"^truth has infinite"):
        epe_metrics(row((0, 0)), row((value, 0)))


def test_bad_shapes_and_types() -> None:
    good = np.zeros((3, 4, 2))
    with pytest.raises(InputError, match=r"^flow and truth must have the same shape"):
        epe_metrics(good, np.zeros((4, 3, 2)))
    with pytest.raises(InputError, match=r"^flow must have the shape"):
        epe_metrics(np.zeros((3, 4)), good)
    with pytest.raises(InputError, match=r"^truth must have the shape"):
        epe_metrics(good, np.zeros((3, 4, 3)))
    with pytest.raises(InputError, match=r"^occluded must have the shape \(3, 4\)"):
        epe_metrics(good, good, np.zeros((4, 3), bool))
    with pytest.raises(InputError, match=r"^occluded must be of type bool"):
        epe_metrics(good, good, np.zeros((3, 4), np.uint8))
