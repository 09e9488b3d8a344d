"""The variational refinement in plain numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow import _native

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
    flow = np.empty_like(p.flow)
    alpha, zeta, epsilon = p.terms
    _native.variational(
        p.f0,
        p.f1,
        p.first_group,
        p.strength,
        p.weight,
        (p.right, p.down),
        (alpha, 0.0, zeta, epsilon),
        p.schedule,
        math.inf,
        p.flow,
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
    first, second = slice(0, p.first_group), slice(p.first_group, 7)  # the last one is not used
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
