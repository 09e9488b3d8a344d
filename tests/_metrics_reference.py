"""The metrics once more, pixel by pixel, and random flows to compare with."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from numpy.typing import NDArray

from hamflow.evaluation import FlowMetrics

NAN = math.nan
Array = NDArray[Any]

MEANS = [
    *("epe_all", "epe_noc", "epe_occ"),
    *("s0_10", "s10_40", "s40plus"),
    *("d0_10", "d10_60", "d60_140"),
    *("fl_all", "fl_noc"),
    *("outlier_1px", "outlier_3px", "outlier_5px"),
    *("outlier_1px_noc", "outlier_3px_noc", "outlier_5px_noc"),
    *("angular_all", "angular_noc"),
]
COUNTS = [
    *("pixels", "pixels_noc", "pixels_occ"),
    *("pixels_s0_10", "pixels_s10_40", "pixels_s40plus"),
    *("pixels_d0_10", "pixels_d10_60", "pixels_d60_140"),
]


def row(*vectors: tuple[float, float]) -> Array:
    return np.array([vectors], np.float64)


def figures(metrics: FlowMetrics) -> dict[str, float]:
    return {name: value for name, value in vars(metrics).items() if name != "sums"}


def assert_same(metrics: FlowMetrics, expected: dict[str, float]) -> None:
    assert figures(metrics) == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


def slow_boundary(occluded: Array) -> list[tuple[int, int]]:
    height, width = occluded.shape
    found = []
    for y in range(height):
        for x in range(width):
            for b, a in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                inside = 0 <= b < height and 0 <= a < width
                if inside and bool(occluded[b, a]) != bool(occluded[y, x]):
                    found.append((y, x))
                    break
    return found


def slow_angle(u: float, v: float, a: float, b: float) -> float:
    """The angle between (u, v, 1) and (a, b, 1) from their products."""
    cross = math.hypot(v - b, a - u, u * b - v * a)
    return math.degrees(math.atan2(cross, u * a + v * b + 1))


def slow_pixels(flow: Array, truth: Array, occluded: Array | None) -> list[dict[str, Any]]:
    """Each pixel of known truth by itself: its errors, and which kinds it belongs to."""
    edges = [] if occluded is None else slow_boundary(occluded)
    pixels = []
    height, width, _ = truth.shape
    for y in range(height):
        for x in range(width):
            u, v = (float(value) for value in truth[y, x])
            if math.isnan(u) or math.isnan(v):
                continue
            a, b = (float(value) for value in flow[y, x])
            error, length = math.dist((a, b), (u, v)), math.hypot(u, v)
            kinds = ["all", "s0_10" if length < 10 else "s10_40" if length < 40 else "s40plus"]
            if occluded is not None:
                kinds.append("occ" if occluded[y, x] else "noc")
            if edges and "noc" in kinds:
                squared = min((y - j) ** 2 + (x - i) ** 2 for j, i in edges)
                for name, low, high in (("d0_10", 0, 10), ("d10_60", 10, 60), ("d60_140", 60, 140)):
                    if low**2 <= squared < high**2:
                        kinds.append(name)
            pixels.append(
                {
                    "epe": error,
                    "fl": error > 3 and error > length / 20,
                    "angular": slow_angle(u, v, a, b),
                    "kinds": kinds,
                }
            )
    return pixels


def slow_means(pixels: list[dict[str, Any]]) -> dict[str, float]:
    def of(name: str, kind: str) -> list[float]:
        return [pixel[name] for pixel in pixels if kind in pixel["kinds"]]

    def mean(values: list[Any]) -> float:
        return math.fsum(values) / len(values) if values else NAN

    bands = ("s0_10", "s10_40", "s40plus", "d0_10", "d10_60", "d60_140")
    result = {f"epe_{kind}": mean(of("epe", kind)) for kind in ("all", "noc", "occ")}
    result |= {band: mean(of("epe", band)) for band in bands}
    for kind in ("all", "noc"):
        result |= {f"fl_{kind}": mean(of("fl", kind))}
        result |= {f"angular_{kind}": mean(of("angular", kind))}
        suffix = "" if kind == "all" else "_noc"
        for limit in (1, 3, 5):
            above = [error > limit for error in of("epe", kind)]
            result |= {f"outlier_{limit}px{suffix}": mean(above)}
    result |= {f"pixels_{kind}": len(of("epe", kind)) for kind in ("noc", "occ", *bands)}
    return result | {"pixels": len(pixels)}


def slow_metrics(flow: Array, truth: Array, occluded: Array | None) -> dict[str, float]:
    """The same as `epe_metrics`, pixel by pixel."""
    return slow_means(slow_pixels(flow, truth, occluded))


values = st.floats(-200, 200, width=32)
Case = tuple[Array, Array, Array | None]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A flow, the truth and the occluded pixels (or None)."""
    shape = (*draw(st.tuples(st.integers(1, 5), st.integers(1, 5))), 2)
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    truth = draw(hnp.arrays(dtype, shape, elements=values | st.just(NAN)))
    near = draw(hnp.arrays(dtype, shape, elements=st.floats(-8, 8, width=32)))
    unknown = np.isnan(truth).any(axis=2)
    flow = np.where(unknown[:, :, None], NAN, truth + near).astype(dtype)
    return flow, truth, draw(st.none() | hnp.arrays(np.bool_, shape[:2]))


@st.composite
def long_cases(draw: st.DrawFn) -> Case:
    """The same, large enough in one direction for all bands of distance."""
    shape = draw(st.sampled_from([(1, 170), (2, 90), (90, 2), (170, 1), (12, 15)]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    truth = rng.normal(0, 30, (*shape, 2))
    truth[rng.random(shape) < 0.1] = NAN
    flow = rng.normal(0, 30, (*shape, 2))
    occluded = np.zeros(shape, bool)
    # Few, so that something is far away.
    occluded.flat[draw(st.lists(st.integers(0, occluded.size - 1), max_size=4))] = True
    return flow, truth, occluded
