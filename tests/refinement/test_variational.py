"""The variational refinement against plain numpy, and on motions that are known exactly."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from _problems import same_bytes, same_everywhere, with_threads
from _variational_reference import (
    Array,
    F,
    Motion,
    Problem,
    derivative,
    energy,
    gradient_square,
    linear_system,
    random_problem,
    reference,
    run,
)
from hamflow import InputError
from hamflow.refinement import VariationalRefinement, refine
from hamflow.refinement.variational import features

SHAPES = [(5, 6), (6, 5), (1, 7), (8, 1), (2, 2), (9, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("schedule", [(1, 1, 1, 1.0), (1, 1, 4, 1.8), (1, 3, 2, 1.5), (2, 2, 3, 1)])
def test_equals_plain_numpy(shape: tuple[int, int], schedule: Any) -> None:
    rng = np.random.default_rng(sum(shape) + schedule[1])
    for first_group in (3, 0, 7):
        p = random_problem(rng, shape, schedule=schedule, first_group=first_group)
        result = run(p)
        assert abs(result - p.flow).max() > 0.01
        assert np.allclose(result, reference(p), rtol=0, atol=2e-3)


def test_sweeps_converge() -> None:
    p = random_problem(np.random.default_rng(3), (6, 7), schedule=(1, 1, 300, 1.3))
    a, b = linear_system(p, p.flow.astype(float), np.zeros_like(p.flow))
    step = np.linalg.solve(a, b).reshape(2, -1).T.reshape(p.flow.shape)
    assert np.allclose(run(p), p.flow + step.clip(-2, 2), rtol=0, atol=2e-3)


@pytest.mark.parametrize(("distance", "found"), [(1.5, 1.5), (10, 2)])
def test_a_step_is_limited(distance: float, found: float) -> None:
    """A ramp of gray is a linear problem however far it moved; two pixels of it are believed."""
    ramp = np.zeros((6, 40, 8), F)
    ramp[..., 0] = np.arange(40) / 40
    moved = ramp - F(distance / 40)
    ones = np.ones((6, 40), F)
    p = Problem(ramp, moved, np.zeros((6, 40, 2), F), ones, ones, ones, terms=(1e-4, 0.1, 0.01))
    flow = run(replace(p, schedule=(1, 1, 50, 1.5)))
    assert abs(flow[:, 5:-5] - [found, 0]).max() < 0.01


# --- known motions -------------------------------------------------------------------------------


def texture(x: Array, y: Array, seed: int = 0) -> Array:
    """Waves of several lengths and directions, at any point; in 0..1."""
    rng = np.random.default_rng(seed)
    image = np.zeros((*x.shape, 3))
    for _ in range(8):
        length, angle = rng.uniform(7, 25), rng.uniform(0, 2 * np.pi)
        phase, amplitude = rng.uniform(0, 2 * np.pi, 3), rng.uniform(0.3, 1, 3) / 20
        along = (x * np.cos(angle) + y * np.sin(angle)) * 2 * np.pi / length
        image += amplitude * np.sin(along[..., None] + phase)
    return (image + 0.5).astype(F)


def grid(height: int, width: int) -> tuple[Array, Array]:
    y, x = np.mgrid[:height, :width].astype(float)
    return x, y


def moved(motion: Motion, shape: tuple[int, int], seed: int = 0) -> tuple[Array, Array, Array]:
    """Return two images without any interpolation, and the flow."""
    x, y = grid(*shape)
    sx, sy = x, y
    for _ in range(60):  # where the pixels of the second image come from
        u, v = motion(sx, sy)
        sx, sy = x - u, y - v
    flow = np.stack(np.broadcast_arrays(*motion(x, y), x)[:2], axis=2)
    return texture(x, y, seed), texture(sx, sy, seed), flow.astype(F)


def refined(image0: Array, image1: Array, start: Array, **config: Any) -> Array:
    settings = VariationalRefinement(**config)
    weight = np.ones(start.shape[:2], F)
    maps = (features(image, settings.blur) for image in (image0, image1))
    return refine(*maps, start, weight, config=settings)


def inner_error(flow: Array, truth: Array, margin: int = 10) -> float:
    inner = np.s_[margin:-margin, margin:-margin]
    return float(np.linalg.norm(flow - truth, axis=2)[inner].max())


@pytest.mark.parametrize("shift", [(0.37, 0), (0, -0.62), (-0.5, 0.5), (3.3, -2.2), (-7.45, 4.5)])
def test_fractions_of_a_shift(shift: tuple[float, float]) -> None:
    image0, image1, truth = moved(lambda x, y: (F(shift[0]), F(shift[1])), (50, 60))
    assert inner_error(refined(image0, image1, np.rint(truth)), truth) < 0.02
    if max(abs(c) for c in shift) < 1:
        assert inner_error(refined(image0, image1, np.zeros_like(truth)), truth) < 0.02


def test_an_affine_motion() -> None:
    def motion(x: Array, y: Array) -> tuple[Array, Array]:
        return 0.02 * (x - 30) - 0.015 * (y - 25), 0.03 * (x - 30) + 0.01 * (y - 25) + 0.4

    image0, image1, truth = moved(motion, (50, 60))
    assert inner_error(np.rint(truth), truth) > 0.4
    # By colors alone: gradients are turned and stretched by such a motion, which costs a little.
    colors = refined(image0, image1, np.rint(truth), delta=1.0, gamma=0.0)
    assert inner_error(colors, truth) < 0.04
    assert inner_error(refined(image0, image1, np.rint(truth)), truth) < 0.25


def test_nothing_moves() -> None:
    image, _, truth = moved(lambda x, y: (x * 0, y * 0), (23, 31))
    assert same_bytes(refined(image, image, truth), truth)
    noise = np.random.default_rng(0).random((23, 31, 3)).astype(F)
    assert same_bytes(refined(noise, noise, truth), truth)


def test_no_partner() -> None:
    """Where the weight is 0, what the images say does not count, and the flow comes from around."""
    image0, image1, truth = moved(lambda x, y: (F(0.4), F(-0.3)), (50, 60))
    hole = np.s_[20:29, 25:34]
    image1[hole] = np.random.default_rng(0).random((9, 9, 3))
    start = truth.copy()
    start[hole] = 2
    f0, f1 = features(image0, 0.6), features(image1, 0.6)
    wide = np.s_[16:33, 21:38]
    weight = np.ones((50, 60), F)
    weight[wide] = 0  # the smoothing of the images carries the noise a little farther
    config = VariationalRefinement(warps=20, sweeps=40)
    assert inner_error(refine(f0, f1, start, weight, config=config), truth) < 0.05
    trusting = refine(f0, f1, start, np.ones_like(weight), config=config)
    assert inner_error(trusting, truth) > 0.2


def test_image_edges_keep_motions_apart() -> None:
    image = np.full((20, 30, 3), 0.2, F)
    image[:, 15:] = 0.8
    start = np.zeros((20, 30, 2), F)
    start[:, 15:, 0] = 1
    # Nothing but smoothness decides.
    maps, weight = features(image, 0), np.zeros((20, 30), F)
    apart = [
        refine(maps, maps, start, weight, config=VariationalRefinement(kappa=kappa))[:, 15, 0]
        - refine(maps, maps, start, weight, config=VariationalRefinement(kappa=kappa))[:, 14, 0]
        for kappa in (20.0, 5.0, 0.0)
    ]
    assert apart[0].min() > 0.9
    assert apart[0].mean() > apart[1].mean() > apart[2].mean()
    assert apart[2].max() < 0.5


@pytest.mark.parametrize("seed", range(12))
def test_the_energy_falls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.uniform(-0.03, 0.03, 4)
    u, v = rng.uniform(-1, 1, 2)
    shape = (14, 17)
    image0, image1, truth = moved(lambda x, y: (u + a * x + b * y, v + c * x + d * y), shape, seed)
    start = np.zeros_like(truth) if seed % 2 else np.rint(truth)
    if seed % 3 == 0:
        start = start + rng.normal(size=start.shape).astype(F) * F(0.2)
    config = VariationalRefinement()
    p = Problem(
        features(image0, config.blur),
        features(image1, config.blur),
        start,
        rng.choice([0, 1, 1, 1], shape).astype(F),
        rng.uniform(0.2, 1, shape).astype(F),
        rng.uniform(0.2, 1, shape).astype(F),
        3,
        (config.delta, config.gamma),
        (config.alpha, config.zeta, config.epsilon),
        (config.warps, config.inner, config.sweeps, config.omega),
    )
    before, after = energy(p, start), energy(p, run(p))
    assert after < before


# --- what surrounds it ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (1, 30), (30, 1), (2, 3), (17, 19)])
@pytest.mark.parametrize("kind", ["flat", "noise", "black and white"])
def test_any_size_and_image(shape: tuple[int, int], kind: str) -> None:
    rng = np.random.default_rng(0)
    images = {
        "flat": np.full((2, *shape, 3), 0.5),
        "noise": rng.random((2, *shape, 3)),
        "black and white": np.stack([np.zeros((*shape, 3)), np.ones((*shape, 3))]),
    }[kind].astype(F)
    for start in (0, 0.3, 1000):
        flow = refined(*images, np.full((*shape, 2), start, F))
        assert flow.dtype == F
        assert flow.shape == (*shape, 2)
        assert np.isfinite(flow).all()
        if kind == "flat" or start == 1000:
            # Nothing to see, neither here nor outside.
            assert (flow == F(start)).all()


def test_flat_images_smooth_what_they_are_given() -> None:
    start = np.random.default_rng(0).normal(size=(20, 30, 2)).astype(F)
    image = np.full((20, 30, 3), 0.5, F)
    flow = refined(image, image, start)
    assert gradient_square(flow).mean() < 0.1 * gradient_square(start).mean()
    assert start.min() < flow.min() < flow.max() < start.max()


@pytest.mark.parametrize("sweeps", [1, 7, 40])
def test_sweeps_of_blocks_that_meet(sweeps: int) -> None:
    """The more threads, the more blocks of rows share the work; more sweeps take several passes."""
    p = random_problem(np.random.default_rng(1), (150, 21), schedule=(2, 1, sweeps, 1.9))
    one = with_threads(1, lambda: run(p))
    for count in (2, 3, 16):
        assert same_bytes(one, with_threads(count, lambda: run(p)))


def test_levels() -> None:
    p = random_problem(np.random.default_rng(2), (31, 67), schedule=(2, 2, 5, 1.8))
    assert same_everywhere(lambda: run(p))


def test_nothing_to_do() -> None:
    p = random_problem(np.random.default_rng(0), (6, 7))
    for schedule in itertools.product((0, 1), repeat=3):
        assert same_bytes(run(replace(p, schedule=(*schedule, 1.5))), p.flow) != all(schedule)


def test_the_start_is_left_alone() -> None:
    image = texture(*grid(12, 13))
    start = np.full((12, 13, 2), 0.3, F)
    start.flags.writeable = False
    assert abs(refined(image, image, start)).max() < 0.3


def test_types_of_flow_and_weight() -> None:
    maps = [features(texture(*grid(12, 13), seed), 0.6) for seed in (0, 1)]
    flow, weight = np.full((12, 13, 2), 0.25), np.tile([0, 1], (12, 7))[:, :13]
    expected = refine(*maps, flow.astype(F), weight.astype(F))
    assert same_bytes(refine(*maps, flow, weight.astype(bool)), expected)
    assert same_bytes(refine(*maps, np.asfortranarray(flow.astype(F)), weight), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"f0": np.zeros((4, 5, 7), F)}, "f0 has the wrong shape"),
        ({"f1": np.zeros((4, 6, 8), F)}, "f1 has the wrong shape"),
        ({"weight": np.zeros((5, 5), F)}, "weight has the wrong shape"),
        ({"right": np.zeros((4, 4), F)}, "edges has the wrong shape"),
        ({"down": np.zeros((3, 5), F)}, "edges has the wrong shape"),
        ({"flow": np.zeros((4, 5, 3), F)}, "start has the wrong shape"),
        ({"first_group": 9}, "first_group"),
        ({"first_group": -1}, "first_group"),
        ({"terms": (-1, 1, 1)}, "terms"),
        ({"terms": (1, 0, 1)}, "terms"),
        ({"terms": (1, 1, math.nan)}, "terms"),
        ({"schedule": (-1, 1, 1, 1)}, "schedule"),
        ({"schedule": (1, 1, 1, 2)}, "schedule"),
    ],
)
def test_bad_arguments(change: dict[str, Any], message: str) -> None:
    p = random_problem(np.random.default_rng(0), (4, 5))
    run(p)
    with pytest.raises(ValueError, match=message):
        run(replace(p, **change))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", -0.1),
        ("kappa", math.nan),
        ("delta", math.inf),
        ("gamma", -1),
        ("blur", -1),
        ("zeta", 0),
        ("epsilon", 0),
        ("warps", -1),
        ("inner", 1.5),
        ("sweeps", 10**6),
        ("omega", 2),
        ("omega", 0),
    ],
)
def test_bad_parameters(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} must .*{value}.*\\.$"):
        VariationalRefinement(**{name: value})


# --- features ------------------------------------------------------------------------------------


def test_features() -> None:
    image = texture(*grid(20, 25))
    channels = features(image, 0)
    assert channels.shape == (20, 25, 8)
    assert channels.dtype == F
    assert (channels[..., :3] == image).all()
    mean, color = image.mean(axis=2), image[..., 0] - image[..., 2]
    for k, (plane, axis) in enumerate(itertools.product((mean, color), (1, 0))):
        assert np.allclose(channels[..., 3 + k], derivative(plane, axis), rtol=0, atol=1e-6)
    assert not channels[..., 7].any()


def test_blur() -> None:
    point = np.zeros((31, 31, 3), F)
    point[15, 15] = 1
    smooth = features(point, 1.5)[..., 0]
    x, y = grid(31, 31)
    expected = np.exp(-((x - 15) ** 2 + (y - 15) ** 2) / (2 * 1.5**2))
    # A Gaussian that is cut off at three of its deviations.
    assert np.allclose(smooth, expected / expected.sum(), rtol=0, atol=1e-3)
    assert smooth.sum() == pytest.approx(1)
    flat = np.full((3, 4, 3), 0.7, F)
    assert np.allclose(features(flat, 5)[..., :3], 0.7)


@pytest.mark.parametrize("wrong", ["features0", "features1", "flow", "weight"])
def test_shapes_that_do_not_fit(wrong: str) -> None:
    arrays = {
        "features0": np.zeros((6, 7, 8), np.float32),
        "features1": np.zeros((6, 7, 8), np.float32),
        "flow": np.zeros((6, 7, 2), np.float32),
        "weight": np.ones((6, 7), np.float32),
    }
    refine(**arrays)
    arrays[wrong] = arrays[wrong][..., :-1]
    with pytest.raises(InputError, match=f"{wrong} must have the shape"):
        refine(**arrays)
