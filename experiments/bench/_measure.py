"""Measure time and memory, and the limits of this machine."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from hamflow import _native
from hamflow._memory import memory_status, reset_peak_memory
from hamflow._runtime import get_isa, get_num_threads
from hamflow.errors import InputError

ROOT = Path(__file__).parents[2]
MIXES = ("min_projection", "fused_multiply_add")
"""Instructions whose peak rate can be measured: those of QQ, and those of scalar products."""

StepProgress = Callable[[str], object]
"""Called with the name of each step when it begins."""

_T = TypeVar("_T")


def seconds(work: Callable[[], object]) -> float:
    """Return how long one call takes."""
    return timed(work)[1]


def timed(work: Callable[[], _T]) -> tuple[_T, float]:
    """Return what a call returns, and how long it takes."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def extra_memory(work: Callable[[], object]) -> int | None:
    """Return the bytes that a call needs at its peak, beyond what the process has before it.

    `work` is called once before the measurement, so that memory which it allocates and keeps does
    not count. None if the system does not report memory (only Linux does).
    """
    work()
    try:
        # Freed memory that is still held would hide what the call needs.
        _native.release_kept()
        ctypes.CDLL(None).malloc_trim(0)
        before = memory_status("VmRSS")
        reset_peak_memory()
        work()
        return max(0, memory_status("VmHWM") - before)
    except (OSError, KeyError, AttributeError, TypeError):
        return None


def copy_bandwidth(size: int) -> float:
    """Return the bytes per second that are read and written by copying `size` bytes per thread."""
    return _peak("copy", str(size))


def register_peak(mix: str) -> float:
    """Return the peak rate of one of the `MIXES` on registers alone, on all threads."""
    return _peak(mix)


def _peak(*words: str) -> float:
    """Run the program ``peaks`` at the level and with the threads that Hamflow uses."""
    command = [str(_program()), get_isa(), str(get_num_threads()), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return float(done.stdout)


@cache
def _program() -> Path:
    """Build the program ``peaks`` of experiments/native, unless it is up to date."""
    source, build = ROOT / "experiments" / "native", ROOT / "build" / "peaks"
    for command in (["-S", source, "-B", build], ["--build", build]):
        try:
            done = subprocess.run(
                ["cmake", *command],
                capture_output=True,
                text=True,
                check=False,
                env=os.environ | {"LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise InputError(
                "This measurement builds a program with cmake; install cmake (pip install cmake)."
            ) from None
        if done.returncode:
            output = " ".join((done.stderr or done.stdout).split())[-300:]
            raise InputError(f"{source}: cannot be built by cmake ({output}).")
    return build / "peaks"
