"""Threads, processes, the GIL, Ctrl-C: what surrounds a call."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hamflow
from _problems import (
    check_interrupt,
    fork_without_warning,
    random_bits,
    run_python,
    same_bytes,
    with_threads,
)
from hamflow import InputError
from hamflow.matching import local_flow, min_projection

NEEDS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
PATIENCE = 30
"""Seconds after which something that takes far less counts as hanging."""


def images() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    first = np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)
    return first, np.roll(first, 3, axis=1)


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 1024, np.int64(3)])
def test_set_num_threads(count: int) -> None:
    hamflow.set_num_threads(count)
    assert hamflow.get_num_threads() == count


@pytest.mark.parametrize("count", [0, -1, 1025, 2.0, "2", None, True])
def test_bad_num_threads(count: Any) -> None:
    before = hamflow.get_num_threads()
    with pytest.raises(InputError, match="number of threads must be a whole number from 1 to 1024"):
        hamflow.set_num_threads(count)
    assert hamflow.get_num_threads() == before


def test_levels() -> None:
    levels = hamflow.isa_levels()
    assert levels
    assert "reference" not in levels
    for level in (*levels, "reference"):
        hamflow.set_isa(level)
        assert hamflow.get_isa() == level
    hamflow.set_isa(None)
    assert hamflow.get_isa() == levels[-1]


@pytest.mark.parametrize("level", ["AVX2", "sse9", "avx2 ", 3, b"avx2"])
def test_bad_level(level: Any) -> None:
    before = hamflow.get_isa()
    with pytest.raises(InputError, match=r"no instruction-set level .*; choose one of"):
        hamflow.set_isa(level)
    assert hamflow.get_isa() == before


SHOW = "import hamflow; print(hamflow.get_num_threads(), hamflow.get_isa())"


@pytest.mark.parametrize("level", ["portable", "reference"])
def test_environment(level: str) -> None:
    if level not in (*hamflow.isa_levels(), "reference"):
        pytest.skip("this machine does not have it")
    run = run_python("-c", SHOW, HAMFLOW_NUM_THREADS=" 3 ", HAMFLOW_ISA=level)
    assert run.stdout.split() == ["3", level]


def test_empty_environment() -> None:
    run = run_python("-c", SHOW, HAMFLOW_NUM_THREADS="", HAMFLOW_ISA="")
    assert run.stdout.split()[1] == hamflow.isa_levels()[-1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HAMFLOW_NUM_THREADS", "0"),
        ("HAMFLOW_NUM_THREADS", "two"),
        ("HAMFLOW_NUM_THREADS", "-1"),
        ("HAMFLOW_NUM_THREADS", "9999999999999999999999"),
        ("HAMFLOW_ISA", "sse9"),
    ],
)
def test_bad_environment(name: str, value: str) -> None:
    run = run_python("-c", SHOW, **{name: value})
    assert run.returncode != 0
    last = run.stderr.strip().splitlines()[-1]
    assert f"InputError: The environment variable {name} is '{value}'" in last
    assert "set it to" in last


# --- processes -----------------------------------------------------------------------------------


def fork_and_wait(work: Callable[[], int]) -> int:
    """Fork, let the child return `work()` as its exit code, and return that."""
    with fork_without_warning():
        child = os.fork()
    if child == 0:
        # Without pytest's clean-up, and killed by the alarm where it hangs.
        code = 99
        try:
            signal.alarm(PATIENCE)
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@NEEDS_FORK
def test_right_after_fork() -> None:
    rng = np.random.default_rng(0)
    bits0, bits1 = random_bits(rng, 80, 90), random_bits(rng, 80, 90)
    hamflow.set_num_threads(4)

    def work() -> NDArray[np.float32]:
        return min_projection(bits0, bits1, 16).wta()

    expected = work()  # the parent's pool now has threads that the child will not have

    def in_child() -> int:
        if not same_bytes(work(), expected):
            return 1
        # And once more one generation on.
        return fork_and_wait(lambda: 0 if same_bytes(work(), expected) else 2)

    assert fork_and_wait(in_child) == 0
    assert same_bytes(work(), expected)


@NEEDS_FORK
def test_fork_during_a_call() -> None:
    """The child may find the parent's locks taken; it must not wait for them."""
    rng = np.random.default_rng(0)
    large = random_bits(rng, 150, 200), random_bits(rng, 150, 200)
    small = random_bits(rng, 20, 30), random_bits(rng, 20, 30)
    hamflow.set_num_threads(2)
    expected = min_projection(*small, 8).wta()
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            min_projection(*large, 32)

    def in_child() -> int:
        return 0 if same_bytes(min_projection(*small, 8).wta(), expected) else 1

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:
        for _ in range(5):
            assert fork_and_wait(in_child) == 0
    finally:
        stop.set()
        busy.join()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("the system does not have it")
    hamflow.set_num_threads(3)
    first, second = images()
    estimate = partial(local_flow, describe=hamflow.pair_bits)
    expected = estimate(first, second, 16)
    with fork_without_warning(), multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.starmap_async(estimate, [(first, second, 16)] * 4)
        for flow in results.get(PATIENCE):
            assert same_bytes(flow, expected)


# --- Python's threads ----------------------------------------------------------------------------


def test_concurrent_calls() -> None:
    rng = np.random.default_rng(0)
    problems = [
        (random_bits(rng, 30 + k, 50), random_bits(rng, 30 + k, 50), 8 + 2 * k) for k in range(6)
    ]
    expected = [min_projection(*problem).wta() for problem in problems]
    hamflow.set_num_threads(3)
    with ThreadPoolExecutor(6) as pool:
        for _ in range(10):
            flows = pool.map(lambda problem: min_projection(*problem).wta(), problems)
            for flow, right in zip(flows, expected, strict=True):
                assert same_bytes(flow, right)


@pytest.mark.parametrize("count", [1, 2])
def test_the_gil_is_released(count: int) -> None:
    rng = np.random.default_rng(0)
    bits0, bits1 = random_bits(rng, 250, 300), random_bits(rng, 250, 300)
    call = threading.Thread(target=lambda: min_projection(bits0, bits1, 128))
    ticks = 0

    def run() -> None:
        nonlocal ticks
        call.start()
        while call.is_alive():
            time.sleep(0.001)
            ticks += 1

    with_threads(count, run)
    # With the GIL held throughout, this thread would get in a word before or after only.
    assert ticks > 5


INTERRUPTED = """
from hamflow.matching import min_projection
bits = np.random.default_rng(0).integers(0, 2**64, (800, 800), np.uint64)
print("started", flush=True)
try:
    min_projection(bits, bits, 512)
    print("finished")
except KeyboardInterrupt:
    print("interrupted", flush=True)
small = bits[:40, :50].copy()
print((min_projection(small, small, 16).wta() == 0).all())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c(threads: str) -> None:
    check_interrupt(INTERRUPTED, threads, wait=1, limit=3)
