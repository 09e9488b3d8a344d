"""Timing and memory, and what this machine can do at best."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from hamflow._memory import memory_status, reset_peak_memory
from hamflow._runtime import get_isa, get_num_threads
from hamflow.errors import InputError

ROOT = Path(__file__).parents[2]
MIXES = ("min_projection", "fused_multiply_add")
"""Whose register peak is measured: the instructions of QQ, and those of scalar products."""

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
    return _peak("copy", str(size))


def register_peak(mix: str) -> float:
    """Return the work per second of one of the `MIXES` on registers alone, on all threads."""
    return _peak(mix)


def _peak(*words: str) -> float:
    """Ask the program ``peaks`` at the level and with the threads that Hamflow uses."""
    command = [str(_program()), get_isa(), str(get_num_threads()), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return float(done.stdout)


@cache
def _program() -> Path:
    """Build the program ``peaks`` of experiments/native, unless it is there and up to date."""
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
            raise InputError("The benchmark of the kernels needs cmake; install it.") from None
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[-300:]
            raise InputError(f"{source}: cannot be built by cmake ({said}).")
    return build / "peaks"
