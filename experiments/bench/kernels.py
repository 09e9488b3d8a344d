"""``bench kernels``: compare the matching kernels with limits of the machine and libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.bench import peers
from experiments.bench._measure import (
    MIXES,
    StepProgress,
    copy_bandwidth,
    extra_memory,
    register_peak,
    seconds,
)
from hamflow import _native
from hamflow._runtime import machine
from hamflow.refinement import VariationalRefinement, features, refine
from hamflow.window import Window

CACHE_SIZES = {"L2 cache": 1 << 17, "L3 cache": 1 << 22, "memory": 1 << 28}
"""Bytes per thread whose copy fits each level of the memory system."""


class Problem:
    """Two random descriptor fields, a window, and outputs, which are allocated on first use."""

    def __init__(self, width: int, height: int, d: int, *, floats: bool) -> None:
        rng = np.random.default_rng(0)
        self.shape = (height, width)
        self.window = Window.of(d)
        self.bits = (self._random_bits(rng), self._random_bits(rng))
        field = (*self.shape, 64) if floats else (0, 0, 64)
        half = np.float32(0.5)
        self.phi = (rng.random(field, np.float32) - half, rng.random(field, np.float32) - half)
        self.grads = (np.ones(field, np.float32), np.ones(field, np.float32))

    def _random_bits(self, rng: np.random.Generator) -> NDArray[np.uint64]:
        return rng.integers(0, 2**64, self.shape, np.uint64)

    def _volumes(self, dtype: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        # Not zeros: they would be allocated only when a kernel writes to them.
        return (
            np.ones((*self.shape, self.window.du), dtype),
            np.ones((*self.shape, self.window.dv), dtype),
        )

    @cached_property
    def volumes8(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The outputs of QQ."""
        return self._volumes(np.uint8)

    @cached_property
    def labels(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The argmins; also used as the offsets of the int16 messages."""
        return self._volumes(np.int16)

    @cached_property
    def volumes16(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The int16 messages."""
        return self._volumes(np.int16)

    @cached_property
    def volumes32(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The float costs and messages."""
        return self._volumes(np.float32)

    @cached_property
    def lam32(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The offsets of the float messages, also used as gradients of the float costs."""
        volumes = self._volumes(np.float32)
        rng = np.random.default_rng(1)
        for volume in volumes:
            volume[:] = rng.random(volume.shape[2], np.float32) * 20 - 10
        return volumes

    @property
    def entries(self) -> int:
        """How many entries of the 4D cost are evaluated: their target row is inside the image."""
        height, width = self.shape
        return width * self.window.du * _inside(height, self.window.v0, self.window.dv)

    @property
    def matches(self) -> int:
        """How many descriptors FQ gathers."""
        return self.shape[0] * self.shape[1] * (self.window.du + self.window.dv)

    def qq(self) -> None:
        """Compute c^u and c^v."""
        _native.min_projection(*self.bits, self.window.as_tuple(), 32, *self.volumes8, None, None)

    def qq_argmins(self) -> None:
        """Compute c^u, c^v and the inner argmins."""
        _native.min_projection(*self.bits, self.window.as_tuple(), 32, *self.volumes8, *self.labels)

    def wta(self) -> None:
        """Compute c^u, c^v and the winner-takes-all flow."""
        self.qq()
        labels = np.empty(self.shape, np.int16)
        flow = np.empty((*self.shape, 2), np.float32)
        _native.best_labels(self.volumes8[1], self.window.v0, labels)
        _native.rescan_bits(*self.bits, self.window.as_tuple(), 32, labels, flow)

    def message16(self, to: str) -> None:
        """Compute an int16 message; the time does not depend on the values of lam."""
        sender, receiver = (1, 0) if to == "u" else (0, 1)
        _native.message16(
            *self.bits,
            self.window.as_tuple(),
            to,
            (64, -2048, 0),
            self.labels[sender],
            self.volumes16[receiver],
        )

    def message32(self, to: str) -> None:
        """Compute a float32 message."""
        sender, receiver = (1, 0) if to == "u" else (0, 1)
        _native.message32(
            *self.bits,
            self.window.as_tuple(),
            to,
            (2.0, -64.0, 0.0),
            self.lam32[sender],
            self.volumes32[receiver],
        )

    def ff(self) -> None:
        """Compute c^u and c^v from floats."""
        _native.float_min_projection(
            *self.phi, self.window.as_tuple(), 0.0, *self.volumes32, None, None
        )

    def gather(self) -> None:
        """Take the float costs at the inner argmins."""
        _native.gather(*self.phi, self.window.as_tuple(), 0.0, *self.labels, *self.volumes32)

    def fq_forward(self) -> None:
        """Compute FQ: inner argmins on the bits, then the gather."""
        self.qq_argmins()
        self.gather()

    def fq_backward(self) -> None:
        """Compute the gradient of FQ with respect to both descriptor fields."""
        _native.scatter(*self.phi, self.window.as_tuple(), *self.labels, *self.lam32, *self.grads)


def run(
    width: int, height: int, d: int, rounds: int, progress: StepProgress = lambda step: None
) -> dict[str, Any]:
    """Return all measurements, in the form that ``--json`` writes.

    Parameters
    ----------
    width, height, d : int
        Size of the images and side of the square window.
    rounds : int
        Repetitions of the quick kernels, in turns; the best time counts.
    progress : callable
        Called with the name of each step when it begins.
    """
    report: dict[str, Any] = {"machine": machine(), "width": width, "height": height, "d": d}

    problem = Problem(width, height, d, floats=True)
    # Limits are measured before and after the kernels, and the better result counts: a limit must
    # not look low because the machine was busy for a moment.
    before = dict(_limits(progress))
    times = dict(_time_kernels(problem, rounds, progress))
    after = dict(_limits(progress))
    rates = {name: max(rate, after[name]) for name, rate in before.items()}
    bandwidth = {name: rates.pop(f"copy {name}") for name in CACHE_SIZES}
    report["seconds"] = times
    report["per second"] = rates
    report["copy bytes per second"] = bandwidth
    report["entries inside"] = problem.entries
    report["ratios"] = _ratios(problem, times, rates)
    report["fq gathered bytes per second"] = {
        "gather": 256 * problem.matches / times["gather"],
        "backward": 3 * 256 * problem.matches / times["FQ backward"],
    }
    report["extra bytes"] = dict(_memory(problem, progress))
    report["growth"] = dict(_growth(width, height, d, progress))
    report["extra bytes by d"] = dict(_memory_by_d(width, height, d, progress))
    return report


def _limits(progress: StepProgress) -> Iterator[tuple[str, float]]:
    """Generate register peaks, copies and other libraries, as work or bytes per second."""
    for mix in MIXES:
        progress(f"register peak: {mix}")
        yield f"register peak {mix}", register_peak(mix)
    for name, size in CACHE_SIZES.items():
        progress(f"copy: {name}")
        yield f"copy {name}", copy_bandwidth(size)
    for name, peer in peers.available().items():
        progress(name)
        yield name, peer()


def _time_kernels(
    problem: Problem, rounds: int, progress: StepProgress
) -> Iterator[tuple[str, float]]:
    quick: dict[str, Callable[[], None]] = {
        "QQ": problem.qq,
        "QQ with WTA": problem.wta,
        "QQ with argmins": problem.qq_argmins,
        "message int16 to u": lambda: problem.message16("u"),
        "message int16 to v": lambda: problem.message16("v"),
        "message float32 to u": lambda: problem.message32("u"),
        "message float32 to v": lambda: problem.message32("v"),
        "gather": problem.gather,
    }
    # The int16 messages use the argmins as offsets, so the gather needs new argmins.
    best = dict.fromkeys(quick, float("inf"))
    for _ in range(rounds):
        for name, work in quick.items():
            progress(name)
            if name == "gather":
                problem.qq_argmins()
            best[name] = min(best[name], seconds(work))
    yield from best.items()
    for name, work in {
        "FQ forward": problem.fq_forward,
        "FQ backward": problem.fq_backward,
        "FF": problem.ff,
    }.items():
        progress(name)
        yield name, min(seconds(work) for _ in range(2 if name != "FF" else 1))
    progress("refinement")
    yield "refinement", min(seconds(refinement()) for _ in range(max(3, rounds)))
    once = refinement(warps=1)
    yield "refinement, one warp", min(seconds(once) for _ in range(max(3, rounds)))
    progress("QQ again")
    yield "QQ", min(best["QQ"], *(seconds(problem.qq) for _ in range(2)))


def refinement(warps: int = 5) -> Callable[[], object]:
    """Return a refinement of as many sweeps, and of the same images, as that of a peer."""
    images = peers.moved_images()
    inner = 2 if warps > 1 else 5  # a peer has one warp, and five updates of its weights
    sweeps = peers.SWEEPS // (warps * inner)
    config = VariationalRefinement(warps=warps, inner=inner, sweeps=sweeps)
    first, second = (features(image, config.blur) for image in images)
    shape = first.shape[:2]
    flow, weight = np.zeros((*shape, 2), np.float32), np.ones(shape, np.float32)
    return lambda: refine(first, second, flow, weight, config=config)


def _ratios(problem: Problem, times: dict[str, float], rates: dict[str, float]) -> dict[str, float]:
    """Return each kernel's rate or time relative to its limit, another kernel or a library."""
    qq_rate = problem.entries / times["QQ"]
    ratios = {
        "QQ / register peak": qq_rate / rates["register peak min_projection"],
        "WTA / QQ time": times["QQ with WTA"] / times["QQ"],
        "argmins / QQ time": times["QQ with argmins"] / times["QQ"],
        "FF / sgemm": problem.entries * 64 / times["FF"] / rates["numpy sgemm"],
        "FQ / QQ time": (times["FQ forward"] + times["FQ backward"]) / times["QQ"],
    }
    for kind in ("int16", "float32"):
        slower = max(times[f"message {kind} to u"], times[f"message {kind} to v"])
        ratios[f"message {kind} / QQ time"] = slower / times["QQ"]
    for peer in ("faiss hammings", "OpenCV BFMatcher", "numpy bitwise_count"):
        if peer in rates:
            ratios[f"QQ / {peer}"] = qq_rate / rates[peer]
    if (peer := "OpenCV VariationalRefinement") in rates:
        updates = 1024 * 436 * peers.SWEEPS
        for name in ("refinement", "refinement, one warp"):
            ratios[f"{name} / {peer} time"] = times[name] * rates[peer] / updates
    return ratios


def _memory(problem: Problem, progress: StepProgress) -> Iterator[tuple[str, int | None]]:
    progress("memory")
    for name, work in {
        "QQ": problem.qq,
        "QQ with argmins": problem.qq_argmins,
        "message int16": lambda: problem.message16("u"),
        "message float32": lambda: problem.message32("u"),
    }.items():
        yield name, extra_memory(work)
    problem.qq_argmins()
    yield "FQ gather", extra_memory(problem.gather)
    yield "FQ backward", extra_memory(problem.fq_backward)
    progress("memory of FF")
    small = Problem(problem.shape[1], min(64, problem.shape[0]), problem.window.du, floats=True)
    yield "FF (64 rows)", extra_memory(small.ff)


def _growth(width: int, height: int, d: int, progress: StepProgress) -> Iterator[tuple[str, float]]:
    for smaller in (d // 2, d):
        progress(f"growth from D = {smaller} to {2 * smaller}")
        times = []
        for side in (smaller, 2 * smaller):
            problem = Problem(width, height, side, floats=False)
            times.append(min(seconds(problem.qq) for _ in range(3)))
        yield f"QQ time, D = {2 * smaller} / {smaller}", times[1] / times[0]


def _memory_by_d(
    width: int, height: int, d: int, progress: StepProgress
) -> Iterator[tuple[str, int | None]]:
    for side in (d // 4, d // 2, d, 2 * d):
        progress(f"memory at D = {side}")
        yield f"QQ, D = {side}", extra_memory(Problem(width, height, side, floats=False).qq)


def _inside(size: int, first: int, count: int) -> int:
    """Return how many (position, label) pairs have their target in [0, size)."""
    labels = np.arange(first, first + count)
    return int(np.maximum(0, size - np.abs(labels)).sum())
