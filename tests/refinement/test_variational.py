"""The variational refinement against plain numpy, and on motions that are known exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from _problems import same_bytes, with_threads
from hamflow import InputError, _native
from hamflow.refinement import VariationalConfig, refine
from hamflow.refinement.variational import features

Array = NDArray[Any]
F = np.float32
Motion = Callable[[Array, Array], tuple[Array, Array]]


@dataclass(frozen=True)
class Problem:
    """The arguments of the native solver."""

    f0: Array
    f1: Array
    flow: Array
    weight: Array
    right: Array
    down: Array
    first_group: int = 3
    strength: tuple[float, float] = (0.3, 1.0)
    terms: tuple[float, float, float] = (0.3, 0.1, 0.01)
    schedule: tuple[int, int, int, float] = (1, 1, 3, 1.5)

    @property
    def shape(self) -> tuple[int, int]:
        return self.flow.shape[0], self.flow.shape[1]


def run(p: Problem) -> Array:
    flow = p.flow.copy()
    _native.variational(
        p.f0,
        p.f1,
        p.first_group,
        p.strength,
        p.weight,
        p.right,
        p.down,
        p.terms,
        p.schedule,
        flow,
    )
    return flow


def random_problem(rng: np.random.Generator, shape: tuple[int, int], **other: Any) -> Problem:
    """Random features; the flow points outside now and then."""
    return Problem(
        rng.random((*shape, 8)).astype(F),
        rng.random((*shape, 8)).astype(F),
        rng.uniform(-1.5, 1.5, (*shape, 2)).astype(F),
        rng.choice([0, 0.4, 1], shape).astype(F),
        rng.random(shape).astype(F),
        rng.random(shape).astype(F),
        **other,
    )


# --- plain numpy ---------------------------------------------------------------------------------


def catmull_rom(t: float) -> Array:
    """Return the weights of the pixels at -1, 0, 1, 2."""

    def kernel(x: float) -> float:
        x = abs(x)
        if x < 1:
            return 1.5 * x**3 - 2.5 * x**2 + 1
        return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0

    return np.array([kernel(t + 1), kernel(t), kernel(t - 1), kernel(t - 2)])


def warped(p: Problem, flow: Array) -> tuple[Array, Array]:
    """Return f1 fetched back, and where it was inside; elsewhere f0."""
    height, width = p.shape
    out, inside = p.f0.astype(float), np.zeros(p.shape, np.bool_)
    for y, x in np.ndindex(p.shape):
        tx, ty = x + float(flow[y, x, 0]), y + float(flow[y, x, 1])
        if not (0 <= tx <= width - 1 and 0 <= ty <= height - 1):
            continue
        inside[y, x] = True
        left, top = math.floor(tx), math.floor(ty)
        rows = np.clip(np.arange(top - 1, top + 3), 0, height - 1)
        columns = np.clip(np.arange(left - 1, left + 3), 0, width - 1)
        patch = p.f1[np.ix_(rows, columns)].astype(float)
        weights = np.outer(catmull_rom(ty - top), catmull_rom(tx - left))
        out[y, x] = np.tensordot(weights, patch, 2)
    return out, inside


def derivative(field: Array, axis: int) -> Array:
    """Five points; constant beyond the border."""
    n = field.shape[axis]
    taps = [field.take(np.clip(np.arange(n) + k, 0, n - 1), axis) for k in (-2, -1, 1, 2)]
    return (taps[0] - 8 * taps[1] + 8 * taps[2] - taps[3]) / 12


def normalized(p: Problem, flow: Array) -> tuple[Array, Array, Array, Array]:
    """Return the derivatives and differences of f, times the root of theta, and who is inside."""
    back, inside = warped(p, flow)
    mean = (p.f0 + back) / 2
    dx, dy = derivative(mean, 1), derivative(mean, 0)
    root = 1 / np.sqrt(dx**2 + dy**2 + p.terms[1] ** 2)
    return root * dx, root * dy, root * (back - p.f0), inside


def groups(p: Problem) -> list[tuple[float, slice]]:
    first, second = slice(0, p.first_group), slice(p.first_group, 8)
    return [(p.strength[0], first), (p.strength[1], second)]


def gradient_square(flow: Array) -> Array:
    """Central differences; half of that at the border."""
    padded = np.pad(flow, ((1, 1), (1, 1), (0, 0)), mode="edge")
    x = (padded[1:-1, 2:] - padded[1:-1, :-2]) / 2
    y = (padded[2:, 1:-1] - padded[:-2, 1:-1]) / 2
    squares: Array = (x**2 + y**2).sum(axis=2)
    return squares


def neighbors(p: Problem) -> list[tuple[int, int, float]]:
    """Return pairs of pixels and the weight between them."""
    height, width = p.shape
    pairs = []
    for y, x in np.ndindex(p.shape):
        i = y * width + x
        if x + 1 < width:
            pairs.append((i, i + 1, float(p.right[y, x])))
        if y + 1 < height:
            pairs.append((i, i + width, float(p.down[y, x])))
    return pairs


def linear_system(p: Problem, flow: Array, step: Array) -> tuple[Array, Array]:
    """Return A and b of the increments (u of all pixels, then v) for the weights at `step`."""
    alpha, _, epsilon = p.terms
    n = p.flow[..., 0].size
    dx, dy, dt, inside = (part.reshape(n, -1) for part in normalized(p, flow))
    a, b = np.zeros((2 * n, 2 * n)), np.zeros(2 * n)
    du, dv = step.reshape(n, 2).T
    for i in range(n):
        for strength, channels in groups(p):
            g = np.stack([dx[i, channels], dy[i, channels]])
            residual = dt[i, channels] + du[i] * g[0] + dv[i] * g[1]
            slope = 0.5 / math.sqrt(residual @ residual + epsilon**2)
            c = float(p.weight.flat[i]) * float(inside[i, 0]) * strength * slope
            here = np.ix_([i, i + n], [i, i + n])
            a[here] += c * g @ g.T
            b[[i, i + n]] -= c * g @ dt[i, channels]
    psi = 0.5 / np.sqrt(gradient_square(flow + step) + epsilon**2).reshape(n)
    start = flow.reshape(n, 2)
    for i, j, weight in neighbors(p):
        c = alpha * weight * (psi[i] + psi[j]) / 2
        for k in range(2):
            s, t = i + k * n, j + k * n
            a[s, s] += c
            a[t, t] += c
            a[s, t] -= c
            a[t, s] -= c
            b[s] += c * (start[j, k] - start[i, k])
            b[t] += c * (start[i, k] - start[j, k])
    return a, b


def relaxed(a: Array, b: Array, z: Array, width: int, omega: float) -> Array:
    """One sweep over the two colors of a chessboard, both components of a pixel at a time."""
    n = len(b) // 2
    for color in (0, 1):
        for i in range(n):
            if (i // width + i % width) % 2 == color:
                here = [i, i + n]
                block = a[np.ix_(here, here)]
                best = np.linalg.solve(block, b[here] - a[here] @ z + block @ z[here])
                z[here] += omega * (best - z[here])
    return z


def reference(p: Problem) -> Array:
    warps, inner, sweeps, omega = p.schedule
    flow = p.flow.astype(float)
    for _ in range(warps):
        step = np.zeros_like(flow)
        for _ in range(inner):
            a, b = linear_system(p, flow, step)
            z = step.reshape(-1, 2).T.ravel()
            for _ in range(sweeps):
                z = relaxed(a, b, z, p.shape[1], omega)
            step = z.reshape(2, -1).T.reshape(flow.shape)
        flow = flow + step.clip(-2, 2)
    return flow


def energy(p: Problem, flow: Array) -> float:
    """E as variational.hpp defines it; an edge's gradient is the mean of its ends' penalties."""
    alpha, _, epsilon = p.terms
    _, _, dt, inside = normalized(p, flow)
    total = 0.0
    for strength, channels in groups(p):
        psi = np.sqrt((dt[..., channels] ** 2).sum(axis=2) + epsilon**2)
        total += strength * float((p.weight * inside * psi).sum())
    psi = np.sqrt(gradient_square(flow.astype(float)) + epsilon**2).ravel()
    smooth = sum(weight * (psi[i] + psi[j]) / 2 for i, j, weight in neighbors(p))
    return total + alpha * smooth


SHAPES = [(5, 6), (6, 5), (1, 7), (8, 1), (2, 2), (9, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("schedule", [(1, 1, 1, 1.0), (1, 1, 4, 1.8), (1, 3, 2, 1.5), (2, 2, 3, 1)])
def test_equals_plain_numpy(shape: tuple[int, int], schedule: Any) -> None:
    rng = np.random.default_rng(sum(shape) + schedule[1])
    for first_group in (3, 0, 8):
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
    settings = VariationalConfig(**config)
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
    config = VariationalConfig(warps=20, sweeps=40)
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
        refine(maps, maps, start, weight, config=VariationalConfig(kappa=kappa))[:, 15, 0]
        - refine(maps, maps, start, weight, config=VariationalConfig(kappa=kappa))[:, 14, 0]
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
    config = VariationalConfig()
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


def test_threads() -> None:
    p = random_problem(np.random.default_rng(0), (43, 37), schedule=(2, 2, 5, 1.8))
    one = with_threads(1, lambda: run(p))
    for count in (2, 5):
        assert same_bytes(one, with_threads(count, lambda: run(p)))


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
        ({"right": np.zeros((4, 4), F)}, "right has the wrong shape"),
        ({"down": np.zeros((3, 5), F)}, "down has the wrong shape"),
        ({"flow": np.zeros((4, 5, 3), F)}, "flow has the wrong shape"),
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
        VariationalConfig(**{name: value})


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
