"""Timing and memory, and the machine that they were taken on."""

from __future__ import annotations

import ctypes
import platform
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hamflow
from hamflow import _native
from hamflow._memory import memory_status, reset_peak_memory
from hamflow._runtime import get_isa, get_num_threads, isa_levels


def seconds(work: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def extra_memory(work: Callable[[], object]) -> int | None:
    """Return by how many bytes a call raises the process's memory above what it has before.

    It is called once before, so that room which it makes and keeps does not count. None where the
    system does not tell (only Linux does).
    """
    work()
    try:
        # Memory that was freed but kept would hide what the call takes.
        ctypes.CDLL(None).malloc_trim(0)
        before = memory_status("VmRSS")
        reset_peak_memory()
        work()
        return max(0, memory_status("VmHWM") - before)
    except (OSError, KeyError, AttributeError, TypeError):
        return None


def copy_bandwidth(size: int) -> float:
    """Return the bytes per second that a plain copy of `size` bytes per thread reads and writes."""
    threads = get_num_threads()
    source, target = _aligned(size * threads), _aligned(size * threads)
    rounds = max(1, (1 << 28) // size)
    best = min(seconds(lambda: _native.copy_bytes(source, target, rounds)) for _ in range(3))
    return 2 * size * threads * rounds / best


def register_peak(mix: str) -> float:
    """Return the work per second of a micro-kernel on registers alone, on all threads."""
    rounds = 1 << 16
    while seconds(partial(_native.peak, mix, rounds)) < 0.05:
        rounds *= 2
    rate = 0.0
    for _ in range(3):
        start = time.perf_counter()
        work = _native.peak(mix, rounds)
        rate = max(rate, work / (time.perf_counter() - start))
    return rate


def machine() -> dict[str, Any]:
    """Return what a figure means nothing without."""
    return {
        "hamflow": hamflow.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "levels": isa_levels(),
        "level": get_isa(),
        "threads": get_num_threads(),
    }


def _aligned(size: int) -> NDArray[np.uint8]:
    """Return memory that begins with a page, in use: copies at other offsets can be far slower."""
    page = 4096
    memory = np.ones(size + page, np.uint8)
    start = -memory.ctypes.data % page
    return memory[start : start + size]
