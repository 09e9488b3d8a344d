from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from hamflow.datasets import demo_scene
from hamflow.errors import InputError
from hamflow.evaluation import FlowMetrics, epe_metrics, pool

NAN = math.nan
Array = NDArray[Any]


def row(*vectors: tuple[float, float]) -> Array:
    return np.array([vectors], np.float64)


def slow_metrics(flow: Array, truth: Array, occluded: Array | None) -> dict[str, float]:
    """The same, pixel by pixel."""
    errors: dict[str, list[float]] = {
        name: [] for name in ("all", "noc", "occ", "s0_10", "s10_40", "s40plus")
    }
    fl: dict[str, list[bool]] = {"all": [], "noc": []}
    height, width, _ = truth.shape
    for y in range(height):
        for x in range(width):
            u, v = (float(value) for value in truth[y, x])
            if math.isnan(u) or math.isnan(v):
                continue
            error = math.dist(flow[y, x].tolist(), (u, v))
            length = math.hypot(u, v)
            kinds = ["all", "s0_10" if length < 10 else "s10_40" if length < 40 else "s40plus"]
            if occluded is not None:
                kinds.append("occ" if occluded[y, x] else "noc")
            for kind in kinds:
                errors[kind].append(error)
                if kind in fl:
                    fl[kind].append(error > 3 and error > length / 20)

    def mean(values: Any) -> float:
        return sum(values) / len(values) if values else NAN

    result: dict[str, float] = {f"epe_{kind}": mean(errors[kind]) for kind in ("all", "noc", "occ")}
    result |= {kind: mean(errors[kind]) for kind in ("s0_10", "s10_40", "s40plus")}
    result |= {f"fl_{kind}": mean(fl[kind]) for kind in fl}
    result |= {f"outlier_{n}px": mean([e > n for e in errors["all"]]) for n in (1, 3, 5)}
    result |= {f"pixels_{kind}": len(errors[kind]) for kind in errors if kind != "all"}
    return result | {"pixels": len(errors["all"])}


def assert_same(metrics: FlowMetrics, expected: dict[str, float]) -> None:
    assert asdict(metrics) == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


def test_by_hand() -> None:
    truth = row((3, 4), (0, 10), (60, 80), (NAN, 0), (100, 0), (0, -40))
    flow = row((3, 4), (0, 8), (64, 80), (5, 5), (100, 6), (4, -40))
    metrics = epe_metrics(flow, truth, [[False, True, False, True, True, False]])
    # Errors 0, 2, 4, -, 6, 4 at lengths 5, 10, 100, -, 100, 40.
    assert_same(
        metrics,
        {
            "epe_all": 16 / 5,
            "epe_noc": 8 / 3,
            "epe_occ": 4.0,
            "s0_10": 0.0,
            "s10_40": 2.0,
            "s40plus": 14 / 3,
            "fl_all": 2 / 5,  # an error of 4 is below 5 % of 100
            "fl_noc": 1 / 3,
            "outlier_1px": 4 / 5,
            "outlier_3px": 3 / 5,
            "outlier_5px": 1 / 5,
            "pixels": 5,
            "pixels_noc": 3,
            "pixels_occ": 2,
            "pixels_s0_10": 1,
            "pixels_s10_40": 1,
            "pixels_s40plus": 3,
        },
    )


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
    for name in ("epe_noc", "epe_occ", "fl_noc", "s10_40", "s40plus"):
        assert math.isnan(getattr(metrics, name))
    assert metrics.pixels_noc == metrics.pixels_occ == 0


def test_kinds_without_pixels() -> None:
    nowhere = epe_metrics(row((1, 0)), row((0, 0)), np.zeros((1, 1), bool))
    assert nowhere.epe_noc == 1
    assert math.isnan(nowhere.epe_occ)
    unknown = epe_metrics(row((NAN, NAN)), row((NAN, 0)), np.ones((1, 1), bool))
    assert unknown.pixels == unknown.pixels_occ == 0
    assert all(math.isnan(v) for k, v in asdict(unknown).items() if not k.startswith("pixels"))


values = st.floats(-200, 200, width=32)


@given(data=st.data(), dtype=st.sampled_from([np.float32, np.float64]))
def test_pixel_by_pixel(data: st.DataObject, dtype: Any) -> None:
    height, width = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    shape = (height, width, 2)
    truth = data.draw(hnp.arrays(dtype, shape, elements=values | st.just(NAN)))
    near = data.draw(hnp.arrays(dtype, shape, elements=st.floats(-8, 8, width=32)))
    unknown = np.isnan(truth).any(axis=2)
    flow = np.where(unknown[:, :, None], NAN, truth + near).astype(dtype)
    occluded = data.draw(st.none() | hnp.arrays(np.bool_, shape[:2]))
    assert_same(epe_metrics(flow, truth, occluded), slow_metrics(flow, truth, occluded))


def test_a_whole_scene() -> None:
    scene = demo_scene(64, 96)
    rng = np.random.default_rng(0)
    flow = scene.flow + rng.normal(0, 3, scene.flow.shape).astype(np.float32)
    assert_same(
        epe_metrics(flow, scene.flow, scene.occluded),
        slow_metrics(flow, scene.flow, scene.occluded),
    )
    exact = epe_metrics(scene.flow, scene.flow, scene.occluded)
    assert exact.epe_all == exact.epe_occ == exact.fl_all == exact.outlier_1px == 0


def test_sums_are_of_64_bits() -> None:
    flow = np.zeros((1000, 2000, 2), np.float32)
    flow[:, :, 0] = np.float32(0.1)
    metrics = epe_metrics(flow, np.zeros_like(flow))
    assert metrics.epe_all == pytest.approx(float(np.float32(0.1)), rel=1e-13)


def test_unknown_flow() -> None:
    truth = row((1, 2), (3, 4), (NAN, NAN))
    with pytest.raises(InputError, match=r"^flow is unknown \(NaN\) at 1 of the 2 .*; fill it"):
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
    with pytest.raises(InputError, match=r"^metrics must hold"):
        pool([])


@given(data=st.data(), cuts=st.lists(st.integers(1, 19), max_size=4, unique=True))
def test_pooling_the_parts_gives_the_whole(data: st.DataObject, cuts: list[int]) -> None:
    shape = (20, 2, 2)
    truth = data.draw(hnp.arrays(np.float32, shape, elements=values | st.just(NAN)))
    flow = data.draw(hnp.arrays(np.float32, shape, elements=values))
    occluded = data.draw(hnp.arrays(np.bool_, shape[:2]))
    parts = [np.split(a, sorted(cuts)) for a in (flow, truth, occluded)]
    each = [epe_metrics(f, t, o) for f, t, o in zip(*parts, strict=True)]
    assert_same(pool(each).pooled, asdict(epe_metrics(flow, truth, occluded)))
    assert pool(each) == pool(each[::-1]) or np.isnan([*asdict(pool(each).mean).values()]).any()
    for name, value in asdict(pool(each).mean).items():
        if not name.startswith("pixels"):
            own = [getattr(m, name) for m in each if not math.isnan(getattr(m, name))]
            expected = sum(own) / len(own) if own else NAN
            assert value == pytest.approx(expected, nan_ok=True)
