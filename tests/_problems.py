"""Matching problems for the tests, and their brute-force solutions in plain numpy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import hypothesis.strategies as st
import numpy as np
from hypothesis import settings
from numpy.typing import NDArray

import hamflow
from hamflow import Window

Array = NDArray[Any]
T = TypeVar("T")

THREADS = (1, 2, 3, 8)
ENTRIES = 200_000
"""Most entries of a random problem's 4D cost: the reference is slow."""
FLOAT_TOLERANCE = 1e-4
"""Most that a float result may be off, for costs up to about a hundred."""


@dataclass(frozen=True)
class BitsProblem:
    bits0: NDArray[np.uint64]
    bits1: NDArray[np.uint64]
    window: Window
    outside: int = 32

    @property
    def shape(self) -> tuple[int, int]:
        return self.bits0.shape[0], self.bits0.shape[1]

    @property
    def words(self) -> int:
        return 1 if self.bits0.ndim == 2 else self.bits0.shape[2]

    def __repr__(self) -> str:  # what hypothesis prints; the bits follow from the strategy's seed
        return f"BitsProblem({self.bits0.shape}, {self.window}, outside={self.outside})"


def examples(number: int) -> settings:
    """Ask for so many examples, or fewer under sanitizers, where each takes much longer."""
    return settings(max_examples=min(number, int(os.environ.get("HAMFLOW_TEST_EXAMPLES", number))))


# --- random problems -----------------------------------------------------------------------------


@st.composite
def shapes_and_windows(draw: st.DrawFn, entries: int = ENTRIES) -> tuple[int, int, Window]:
    """Sizes around those of vectors and tiles, windows of every kind, both also transposed."""
    long = draw(st.sampled_from([1, 2, 3, 8, 9, 16, 17, 31, 32, 33, 47, 63, 64, 65, 70, 97]))
    short = draw(st.integers(1, 9))
    wide = draw(st.sampled_from([1, 2, 5, 16, 31, 32, 33, 40, 63, 64, 65, 96, 129, 160, 200]))
    narrow = draw(st.integers(1, max(1, min(40, entries // (long * short * wide)))))
    first_wide = draw(_first(wide, long))
    first_narrow = draw(_first(narrow, short))
    height, width = short, long
    window = Window(first_wide, wide, first_narrow, narrow)
    if draw(st.booleans()):
        height, width = width, height
    if draw(st.booleans()):
        window = Window(window.v0, window.dv, window.u0, window.du)
    return height, width, window


def _first(count: int, size: int) -> st.SearchStrategy[int]:
    centered = st.just(-(count // 2))
    anywhere = st.integers(-size - count - 2, size + 2)
    far = st.sampled_from([-(1 << 24), 1 << 24])
    # Mostly what is used; at times wholly outside of the image.
    return st.one_of(centered, centered, anywhere, anywhere, anywhere, far)


@st.composite
def bits_problems(draw: st.DrawFn, entries: int = ENTRIES) -> BitsProblem:
    height, width, window = draw(shapes_and_windows(entries))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["dense", "tied", "flat", "moved", "opposite"]))
    words = draw(st.sampled_from([1, 1, 2]))
    outside = draw(st.one_of(st.just(32 * words), st.integers(0, 64 * words)))
    bits0, bits1 = (random_bits(rng, height, width, words) for _ in range(2))
    if kind == "tied":  # few distances, so nearly every minimum is attained more than once
        bits0, bits1 = bits0 & np.uint64(3), bits1 & np.uint64(3)
    elif kind == "flat":
        bits0, bits1 = bits0 * np.uint64(0), bits1 * np.uint64(0)
    elif kind == "moved":
        bits1 = np.roll(bits0, rng.integers(-3, 4, 2).tolist(), axis=(0, 1))
    elif kind == "opposite":  # all bits or none: the largest distances
        bits0, bits1 = (-(bits >> np.uint64(63)).astype(np.int64) for bits in (bits0, bits1))
        bits0, bits1 = bits0.view(np.uint64), bits1.view(np.uint64)
    return BitsProblem(bits0, bits1, window, outside)


def random_bits(
    rng: np.random.Generator, height: int, width: int, words: int = 1
) -> NDArray[np.uint64]:
    shape = (height, width) if words == 1 else (height, width, words)
    return rng.integers(0, 2**64, shape, np.uint64)


def random_phi(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.uniform(-1, 1, shape).astype(np.float32)


WIDE = [
    ((shape, words), window)
    for shape in ((3, 64), (4, 70), (1, 131))
    for words in (1, 2)
    for window in (
        (-3, 7, -2, 5),
        (-1, 2, 0, 9),
        (-40, 9, -3, 4),
        (-140, 99, -2, 3),
        (60, 30, 1, 12),
    )
]
"""Images as wide as a vector has bytes, so that each of its lanes can be a pixel; and windows."""


def wide_problem(
    size: tuple[tuple[int, int], int], window: tuple[int, int, int, int]
) -> BitsProblem:
    rng = np.random.default_rng(size[0][1])
    bits0, bits1 = (random_bits(rng, *size[0], size[1]) for _ in range(2))
    return BitsProblem(bits0, bits1, Window.of(window))


# --- brute force ---------------------------------------------------------------------------------


def _targets(shape: tuple[int, ...], window: Window) -> tuple[Array, Array, Array]:
    """Rows and columns of every target, H×W×du×dv, and whether it is inside."""
    height, width = shape[:2]
    y, x, ku, kv = np.ogrid[:height, :width, : window.du, : window.dv]
    rows, columns = np.broadcast_arrays(y + window.v0 + kv, x + window.u0 + ku)
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1), inside


BITS_OF_BYTE = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


def popcount(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Bits that are set (numpy has this itself only from version 2 on)."""
    as_bytes = np.ascontiguousarray(words)[..., None].view(np.uint8)
    return BITS_OF_BYTE[as_bytes].sum(axis=-1, dtype=np.uint8)


def all_distances(bits0: Array, bits1: Array, window: Window, outside: float) -> Array:
    """The 4D distances, H×W×du×dv; `outside` may be -1 as a mark."""
    rows, columns, inside = _targets(bits0.shape, window)
    first, second = (bits.reshape(*bits.shape[:2], -1) for bits in (bits0, bits1))
    different = popcount(first[:, :, None, None] ^ second[rows, columns])
    return np.where(inside, different.sum(axis=-1, dtype=np.int16), outside)


def all_costs(phi0: Array, phi1: Array, window: Window, outside: float) -> Array:
    """The 4D cost -<phi0, phi1> in float64, H×W×du×dv."""
    rows, columns, inside = _targets(phi0.shape, window)
    first, second = phi0.astype(np.float64), phi1.astype(np.float64)[rows, columns]
    return np.where(inside, -np.einsum("yxm,yxuvm->yxuv", first, second), outside)


def nearest_argmin(costs: Array, first: int) -> Array:
    """Displacement of the minimum over the last axis; ties to the smallest, then the negative."""
    displacements = np.arange(first, first + costs.shape[-1])
    order = np.lexsort((displacements, np.abs(displacements)))
    return displacements[order][costs[..., order].argmin(axis=-1)]


def brute_wta(costs: Array, window: Window) -> Array:
    """The flow of a 4D cost by the project's rule: v from c^v, then u from the row at that v."""
    v = nearest_argmin(costs.min(axis=2), window.v0)
    row = np.take_along_axis(costs, (v - window.v0)[:, :, None, None], axis=3)[..., 0]
    return np.stack([nearest_argmin(row, window.u0), v], axis=2).astype(np.float32)


# --- levels, threads, processes ------------------------------------------------------------------


def at_level(level: str, work: Callable[[], T]) -> T:
    """Return what `work` gives at an instruction-set level."""
    before = hamflow.get_isa()
    hamflow.set_isa(level)
    try:
        return work()
    finally:
        hamflow.set_isa(before)


def with_threads(count: int, work: Callable[[], T]) -> T:
    """Return what `work` gives with this many threads."""
    before = hamflow.get_num_threads()
    hamflow.set_num_threads(count)
    try:
        return work()
    finally:
        hamflow.set_num_threads(before)


def everywhere(work: Callable[[], T]) -> Iterator[T]:
    """Yield what `work` gives at every level with every number of threads."""
    for level in hamflow.isa_levels():
        for count in THREADS:
            yield at_level(level, lambda count=count: with_threads(count, work))


def same_everywhere(work: Callable[[], Array | Iterable[Array]]) -> bool:
    """Say whether the arrays of `work` depend neither on the level nor on the threads."""

    def arrays() -> list[Array]:
        result = work()
        return [result] if isinstance(result, np.ndarray) else list(result)

    first, *others = everywhere(arrays)
    return all(same_bytes(a, b) for other in others for a, b in zip(first, other, strict=True))


def same_bytes(a: Array | None, b: Array | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def run_python(
    *args: str, timeout: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own."""
    return subprocess.run(
        [sys.executable, *args],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@contextmanager
def fork_without_warning() -> Iterator[None]:
    """Python 3.12 and later warn of fork with threads, which some tests want."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@contextmanager
def started_python(
    *args: str, stderr: int = subprocess.PIPE, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Run Python in a process and a session of its own, which ends here at the latest."""
    process = subprocess.Popen(
        [sys.executable, *args],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def check_interrupt(code: str, threads: str, *, wait: float = 0, limit: float = 5) -> None:
    """Send Ctrl-C to a process that says that it has started; it must stop within some seconds.

    It works with `threads` threads, says that it was interrupted, and then whether it still works.
    """
    # What starts the tests may have told them to ignore Ctrl-C, which children inherit.
    code = f"""import signal, sys, numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)
import hamflow
hamflow.set_num_threads({threads})
{code}"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "started\n"
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            sent = time.monotonic()
            assert process.stdout.readline() == "interrupted\n"
            assert time.monotonic() - sent < limit
            assert process.stdout.readline() == "True\n"
            assert process.wait(30) == 0
        finally:
            process.kill()
