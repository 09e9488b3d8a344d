from __future__ import annotations

import tracemalloc
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings
from numpy.typing import NDArray

import hamflow.flow
from hamflow.errors import InputError
from hamflow.visualize import color_wheel, flow_to_color, typical_length


def constant(height: int, width: int, u: float, v: float) -> NDArray[np.float32]:
    return np.broadcast_to(np.array([u, v], np.float32), (height, width, 2)).copy()


def special_flows() -> dict[str, NDArray[Any]]:
    y, x = np.mgrid[-40:41, -60:61].astype(np.float32)
    rng = np.random.default_rng(0)
    return {
        "zeros": np.zeros((5, 6, 2), np.float32),
        "single pixel": np.array([[[3, -4]]], np.float32),
        "wheel": np.stack([x, y], axis=2),
        "axes": np.array([[[1, 0], [0, 1], [-1, 0], [0, -1], [-0.0, -0.0], [-1, -0.0]]], "f4"),
        "tiny": (rng.normal(size=(9, 9, 2)) * 1e-7).astype(np.float32),
        "huge": (rng.normal(size=(9, 9, 2)) * 1e12).astype(np.float32),
        "one large vector": constant(9, 9, 0.1, 0) + 500 * np.eye(9, dtype=np.float32)[:, :, None],
        "double precision": rng.normal(size=(30, 40, 2)),
        "more than one block": (rng.normal(size=(300, 500, 2)) * 9).astype(np.float32),
        "not contiguous": rng.normal(size=(40, 30, 4)).astype(np.float32)[::-1, ::2, 1:3],
    }


def longest(flow: NDArray[Any]) -> float | None:
    """The length that flow_vis shows in full color, where it is always the longest one."""
    return float(np.sqrt(np.square(flow[..., 0]) + np.square(flow[..., 1])).max()) or None


def comparable(flow: NDArray[Any]) -> NDArray[np.bool_]:
    """All directions but the last 54th of the circle, where flow_vis does not end at red.

    Nor the longest vectors where rounding makes flow_vis take them for longer than the longest.
    """
    turn = (np.arctan2(-flow[..., 1], -flow[..., 0]) / np.pi + 1) / 2
    lengths = np.sqrt(np.square(flow[..., 0]) + np.square(flow[..., 1]))
    u, v = (flow[..., k] / (lengths.max() + 1e-5) for k in range(2))
    within = np.sqrt(np.square(u) + np.square(v)) <= 1
    return np.asarray(((turn < 53 / 54 - 1e-6) | ~flow.any(axis=2)) & within)


@pytest.mark.parametrize("name", special_flows())
def test_colors_of_special_flows(name: str) -> None:
    flow_vis = pytest.importorskip("flow_vis")
    flow = special_flows()[name]
    expected = flow_vis.flow_to_color(flow, convert_to_bgr=False)
    compared = comparable(flow)
    assert compared.mean() > 0.8
    assert (flow_to_color(flow, longest(flow))[compared] == expected[compared]).all()


@settings(max_examples=100, deadline=None)
@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 8), st.integers(1, 8), st.just(2)),
        elements=st.floats(-(2.0**60), 2.0**60, width=32),
    )
)
@example(np.array([[[1.4057927e17, 1.1529215e18]]], np.float32))  # rounded to beyond full color
def test_colors_of_random_flows(flow: NDArray[np.float32]) -> None:
    flow_vis = pytest.importorskip("flow_vis")
    expected = flow_vis.flow_to_color(flow, convert_to_bgr=False)
    compared = comparable(flow)
    assert (flow_to_color(flow, longest(flow))[compared] == expected[compared]).all()


def test_wheel() -> None:
    wheel = color_wheel()
    assert wheel.shape == (55, 3)
    assert wheel[0].tolist() == [255, 0, 0]
    assert pytest.importorskip("flow_vis").make_colorwheel().tolist() == wheel.tolist()


def test_unknown_is_black_and_does_not_count() -> None:
    flow = np.random.default_rng(0).normal(size=(20, 30, 2)).astype(np.float32)
    plain = flow_to_color(flow)
    holes = np.concatenate([flow, constant(4, 30, 999, 999)])
    holes[20:, :, 0] = np.nan
    holes[22:, :, 1] = np.nan
    assert (flow_to_color(holes)[:20] == plain).all()
    assert (flow_to_color(holes)[20:] == 0).all()
    assert np.isnan(holes[20:, :, 0]).all()
    assert (flow_to_color(np.full((2, 3, 2), np.nan)) == 0).all()


def test_max_flow_fixes_the_scale() -> None:
    flow = np.random.default_rng(0).normal(size=(20, 30, 2)).astype(np.float32) * 9
    assert (flow_to_color(flow, typical_length(flow)) == flow_to_color(flow)).all()
    part = flow_to_color(flow[:10], max_flow=10.0)
    assert (part == flow_to_color(flow, max_flow=10.0)[:10]).all()
    assert (part != flow_to_color(flow[:10], max_flow=11.0)).any()


def test_beyond_max_flow_is_full_color() -> None:
    """Up to full color as in flow_vis; beyond it the color stays, where flow_vis darkens it."""
    flow_vis = pytest.importorskip("flow_vis")
    flow = np.random.default_rng(0).normal(size=(20, 30, 2)).astype(np.float32)
    u, v = flow[..., 0] / np.float32(1 + 1e-5), flow[..., 1] / np.float32(1 + 1e-5)
    theirs, ours = flow_vis.flow_uv_to_colors(u, v), flow_to_color(flow, max_flow=1)
    inside = np.sqrt(np.square(u) + np.square(v)) <= 1
    assert 0.2 < inside.mean() < 0.8
    compared = inside & comparable(flow)
    assert (ours[compared] == theirs[compared]).all()
    # On the rim of the wheel, in the same direction.
    rim = flow / np.hypot(flow[..., :1], flow[..., 1:])
    full = flow_to_color(rim, max_flow=1).astype(int)
    assert abs(ours[~inside] - full[~inside]).max() <= 1
    assert ours[~inside].max(axis=1).min() > 200 > theirs[~inside].max()


def test_a_surface_that_moves_as_a_whole_has_no_edges() -> None:
    """Lengths on both sides of full color: the color goes on, in steps that are not seen."""
    flow = np.zeros((1, 400, 2), np.float32)
    flow[0, :, 0] = np.linspace(5, 15, 400)
    steps = np.diff(flow_to_color(flow, max_flow=10)[0].astype(int), axis=0)
    assert abs(steps).max() <= 1


def test_the_circle_is_closed() -> None:
    """All directions in small steps, over the one where the wheel begins and ends."""
    angles = np.linspace(-np.pi, np.pi, 3601)
    colors = flow_to_color(np.stack([np.cos(angles), np.sin(angles)], axis=1)[None], max_flow=1)[0]
    steps = abs(np.diff(colors.astype(int), axis=0)).max(axis=1)
    assert steps.max() <= 8
    right = flow_to_color(np.array([[[1, -1e-6], [1, 1e-6]]]), max_flow=1)[0].astype(int)
    assert abs(right[0] - right[1]).max() <= 1


@pytest.mark.parametrize("max_flow", [0, -1, np.nan, np.inf])
def test_bad_max_flow(max_flow: float) -> None:
    with pytest.raises(InputError, match="max_flow"):
        flow_to_color(constant(1, 1, 0, 0), max_flow=max_flow)


def test_infinite_flow_has_no_color() -> None:
    with pytest.raises(InputError, match="infinite"):
        flow_to_color(constant(2, 2, np.inf, 0))


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 3), (2, 2, 2, 2), (0, 2, 2), (2,), ()])
def test_shapes_that_are_no_flow(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="flow must have the shape"):
        flow_to_color(np.zeros(shape))


def test_many_blocks_equal_one(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = (np.random.default_rng(0).normal(size=(37, 23, 2)) * 5).astype(np.float32)
    whole = flow_to_color(flow)
    monkeypatch.setattr(hamflow.flow, "_BLOCK_PIXELS", 50)
    assert (flow_to_color(flow) == whole).all()


def test_memory_of_large_images_is_modest() -> None:
    flow = np.zeros((1000, 1500, 2), np.float32)
    tracemalloc.start()
    picture = flow_to_color(flow)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The result and the masks, and a few blocks: far from one float64 per channel.
    assert peak < picture.nbytes + 20e6
