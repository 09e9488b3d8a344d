"""The compiled functions and memory: any arrays, and arrays that change while they run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from _native_calls import FUNCTIONS, good_arguments
from _native_fuzz import misaligned, random_content
from _paths import ROOT
from _problems import run_python
from hamflow import _native


def outputs_of(function: str) -> set[str]:
    """The arrays that a function refuses if they cannot be written."""
    found = set()
    for name, value in good_arguments(function).items():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
            try:
                getattr(_native, function)(**(good_arguments(function) | {name: value}))
            except TypeError:
                found.add(name)
    return found


@pytest.mark.parametrize("function", FUNCTIONS)
def test_arrays_at_odd_addresses(function: str) -> None:
    """As inputs they give the same as others; as outputs they are refused."""
    rng = np.random.default_rng(0)
    outputs = outputs_of(function)
    inputs = good_arguments(function)
    for name, value in inputs.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            inputs[name] = np.nan_to_num(abs(random_content(rng, value))).clip(0.01, 3)

    def call(change: str | None) -> list[Any]:
        copies = {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in inputs.items()}
        if change is not None:
            copies[change] = misaligned(copies[change])
        answer = getattr(_native, function)(**copies)
        return [answer, *(copies[name] for name in sorted(outputs))]

    expected = call(None)
    for name, value in inputs.items():
        if not isinstance(value, np.ndarray):
            continue
        if value.dtype.itemsize > 1 and name in outputs:
            with pytest.raises(TypeError, match="incompatible function arguments"):
                call(name)
        elif value.dtype.itemsize > 1 and not refuses_to_convert(function, name):
            for got, wanted in zip(call(name), expected, strict=True):
                assert np.array_equal(got, wanted, equal_nan=True), name


def refuses_to_convert(function: str, name: str) -> bool:
    """Whether an array must be as it is, because its type chooses the function."""
    value = good_arguments(function)[name]
    try:
        getattr(_native, function)(**(good_arguments(function) | {name: value.astype(">f8")}))
    except TypeError:
        return True
    return False


def test_random_calls() -> None:
    run = run_python(str(ROOT / "tests" / "_native_fuzz.py"), "0", "60", timeout=300)
    assert run.returncode == 0, run.stderr
    assert "accepted" in run.stdout


# What the functions have checked must not change while they use it. Each of these calls crashed
# within a second.
CHANGING = """
import sys, threading
sys.path.insert(0, {tests!r})
import numpy as np
from _native_calls import good_arguments
from hamflow import _native

stop = False
def change():
    while not stop:
        checked[:] = {bad}

rng = np.random.default_rng(0)
h, w = 60, 80
{prepare}
thread = threading.Thread(target=change)
thread.start()
good = 0
for _ in range(400):
    try:
        checked[:] = 0
        {call}
        good += 1
    except ValueError:
        pass
stop = True
thread.join()
print(good)
"""
SEEDS = """
checked = np.zeros(2000, np.int32)
steps = np.ones((h, w), np.float32)
matches = np.zeros((2000, 2), np.float32)
flow, distance = np.zeros((h, w, 2), np.float32), np.zeros((h, w), np.float32)
"""
CASES = {
    "interpolate": (
        SEEDS,
        "_native.interpolate(steps, steps, checked, matches, matches, np.ones(2000, 'f'), "
        "(4, 0.5, 1.0, 1), flow, distance)",
    ),
    "paint": (
        "checked = np.zeros(100000, np.int64)\nlanes = np.full((100000, 4), 9, np.uint16)\n"
        "light, total = np.zeros((h, w), 'f'), np.zeros((h, w, 3), 'f')",
        "_native.paint(checked, lanes, None, light, total)",
    ),
    "choose_candidates": (
        SEEDS + "motion = np.zeros((2, h, w, 2), np.float32)\n"
        "unary, label = np.zeros((2000, 2), np.float32), np.zeros((h, w), np.int32)",
        "_native.choose_candidates(checked, unary, motion, steps, steps, (1.0, 2), label)",
    ),
    "trace": (
        "checked = np.zeros(20000, np.float32)\npoints = np.ones((30, 30, 3))\n"
        "met = np.zeros((3, 20000), np.float32)",
        "_native.trace(points, (1.0, 0.0, 0.0), 0.1, checked, checked, met)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_arrays_that_change_meanwhile(case: str) -> None:
    prepare, call = CASES[case]
    code = CHANGING.format(
        tests=str(ROOT / "tests"),
        bad=-(2**30) if case != "trace" else 1e30,
        prepare=prepare,
        call=call,
    )
    run = run_python("-c", code, timeout=120)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 0, "no call met good values"


def test_runs_far_away() -> None:
    """Whose distance cannot be made positive."""
    for run in ((-(2**31), 0, False), (0, -(2**31), False), (4097, 0, False)):
        with pytest.raises(ValueError, match="near the pixel"):
            _native.run_chain(**(good_arguments("run_chain") | {"input": [run]}))


def test_layers_that_are_none() -> None:
    arguments = good_arguments("run_chain")
    for layers in ([None, None], [*arguments["layers"][:1], None], [3, 4], 7, []):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            _native.run_chain(**(arguments | {"layers": layers}))


LAYERS = """
import sys, threading
sys.path.insert(0, {tests!r})
import numpy as np
from _native_calls import good_arguments
from hamflow import _native

arguments = good_arguments("run_chain")
arguments["image"] = np.zeros((200, 300, 3), np.float32)
arguments["out"] = np.zeros((200, 300, 1), np.uint32)
for _ in range(30):
    layers = good_arguments("run_chain")["layers"]
    thread = threading.Thread(target=_native.run_chain, kwargs=arguments | {{"layers": layers}})
    thread.start()
    del layers[:]  # while the kernels use them
    garbage = [np.full(4096, 255, np.uint8) for _ in range(100)]
    thread.join()
"""


def test_layers_that_are_removed_meanwhile() -> None:
    """The list may have been emptied before the call, which is then refused."""
    run = run_python("-c", LAYERS.format(tests=str(ROOT / "tests")), timeout=60)
    assert run.returncode == 0, run.stderr


def test_every_function_is_called() -> None:
    for function in FUNCTIONS:
        getattr(_native, function)(**good_arguments(function))
