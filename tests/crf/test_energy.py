"""The energy that is minimized: weights of edges, ρ, and the arithmetic that holds its costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from _crf_problems import LEVELS, random_problem, rho_of, same_result, usual
from _problems import at_level
from hamflow import InputError, crf
from hamflow.crf import CrfConfig


@pytest.mark.parametrize("shape", [(4, 5, 3), (4, 5), (1, 5), (5, 1), (1, 1, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float16, np.float32, np.float64])
def test_edge_weights(shape: tuple[int, ...], dtype: Any) -> None:
    unit = np.random.default_rng(0).random(shape)
    largest = 1.0
    if np.issubdtype(dtype, np.integer):
        largest = float(np.iinfo(dtype).max)
    image = (unit * largest).astype(dtype)
    right, down = crf.edge_weights(image, 3.0)
    pixels = (image.astype(np.float64) / largest).reshape(*shape[:2], -1)
    for (y, x), weight in np.ndenumerate(right):
        expected = 0.0
        if x + 1 < shape[1]:
            expected = math.exp(-3 * abs(pixels[y, x] - pixels[y, x + 1]).mean())
        assert weight == pytest.approx(expected, rel=1e-6)
    for (y, x), weight in np.ndenumerate(down):
        expected = 0.0
        if y + 1 < shape[0]:
            expected = math.exp(-3 * abs(pixels[y, x] - pixels[y + 1, x]).mean())
        assert weight == pytest.approx(expected, rel=1e-6)
    assert right.dtype == down.dtype == np.float32


def test_flat_images_have_weights_of_one() -> None:
    right, down = crf.edge_weights(np.full((3, 4), 77, np.uint8), 8.5)
    assert (right == [[1, 1, 1, 0]] * 3).all()
    assert (down == [[1] * 4, [1] * 4, [0] * 4]).all()


@pytest.mark.parametrize("delta", [2.0, 2.5, 3.0, 3.01, 7.0, 100.0])
@pytest.mark.parametrize("count", [1, 2, 9])
def test_rho(delta: float, count: int) -> None:
    config = CrfConfig(tau1=1.5, tau2=20.0, delta=delta)
    assert crf.rho(config, count).tolist() == pytest.approx(
        [rho_of(config, t) for t in range(count)], rel=1e-14
    )


def test_the_arithmetic_is_chosen() -> None:
    small = usual()
    assert small.solve().slack_u.dtype == np.int16
    assert small.with_config(arithmetic="float32").solve().slack_u.dtype == np.float32
    large = small.with_config(c_outside=1e4)
    assert large.solve().slack_u.dtype == np.float32
    assert large.solve().slack_u.dtype == large.solve().lam_v.dtype
    for changes in ({"c_outside": 1e4}, {"c_outside": -1e4}, {"tau2": 1e4}):
        with pytest.raises(InputError, match=r"'int16' cannot hold costs up to .*; use 'auto'"):
            small.with_config(arithmetic="int16", **changes).solve()


@pytest.mark.parametrize("c_outside", [0.0, -64.0, 64.0, 333.3, 1e4])
@pytest.mark.parametrize("tau2", [0.0, 25.0, 50.0, 400.0])
@pytest.mark.parametrize("words", [1, 2])
def test_nothing_can_overflow(c_outside: float, tau2: float, words: int) -> None:
    problem = usual(c_outside=c_outside, tau2=tau2, tau1=0.0, words=words)
    arithmetic = problem.arithmetic()
    most = 32767 if arithmetic.dtype is np.int16 else 2**22
    assert arithmetic.scale * (2 * max(64 * words, abs(c_outside)) + 6 * tau2) <= most
    result = problem.solve()
    for volume in (result.slack_u, result.slack_v, result.lam_v):
        assert abs(volume.astype(np.float64)).max() <= most
        assert (volume == np.floor(volume)).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"tau2": 1e308},
        {"c_outside": -1e308},
        {"tau2": 1e60},
        {"c_outside": 1e60},
        {"c_outside": 1e9},
        {"tau2": 1e8},
        {"c_outside": 5e5, "tau2": 5e5},
        {"c_outside": -5e5, "tau2": 5e5},
    ],
)
def test_absurd_parameters(changes: dict[str, float]) -> None:
    """Refused, or solved with a bound that holds at every level."""
    try:
        problem = random_problem(np.random.default_rng(1), (2, 3), (-1, 3, 0, 2), **changes)
        results = [at_level(level, problem.solve) for level in LEVELS]
    except InputError:
        return
    for result in results:
        assert same_result(result, results[0])
        assert result.bound <= result.energy


def test_alpha_beyond_float32() -> None:
    right, _ = crf.edge_weights(np.array([[0, 0, 255]], np.uint8), 1e39)
    assert right.tolist() == [[1, 0, 0]]


def test_descriptors_of_zeros() -> None:
    phi = np.zeros((2, 3, 4), np.float32)
    config = CrfConfig(tau1=0, tau2=0)
    result = crf.solve(
        phi0=phi, phi1=phi, image=np.zeros((2, 3)), window=(-1, 2, 0, 2), config=config
    )
    assert result.energy == 0
    assert -0.1 < result.bound <= 0
