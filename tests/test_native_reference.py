"""The bindings at random against slow code: shapes, windows, strides, types and addresses.

Inputs of any layout give what C arrays give; outputs of another layout are refused untouched.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

import hamflow
from _native_calls import FUNCTIONS, good_arguments
from _native_fuzz import misaligned
from _native_references import CALLS, Call
from _problems import THREADS, at_level, with_threads
from hamflow import _native

Array = NDArray[Any]
REFUSED = (TypeError, ValueError)
WIDER = {"f4": "f8", "i2": "i4", "i4": "i8", "u1": "i2", "u8": ">u8", "f8": ">f8"}
LAYOUTS = {
    "every second": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "backward": lambda a: a[::-1].copy()[::-1],
    "other order": np.asfortranarray,
    "part of a larger one": lambda a: np.pad(a, [(1, 2)] * a.ndim)[(slice(1, -2),) * a.ndim],
    "odd address": misaligned,
    "other type": lambda a: a.astype(WIDER.get(a.dtype.str[1:], a.dtype)),
}
ROUNDED = {"float_message", "float_min_projection", "message32"}
"""Sums of floats in an order that depends on the width of vectors."""
KINDS = st.sampled_from(["plain", "plain", *LAYOUTS])


def is_plain(array: Array, like: Array) -> bool:
    flags = array.flags
    return bool(flags.c_contiguous and flags.aligned) and array.dtype == like.dtype


def laid_out(draw: st.DrawFn, value: Any) -> Any:
    """An argument whose arrays have the same values in another layout."""
    if isinstance(value, tuple):
        return tuple(laid_out(draw, item) for item in value)
    if not isinstance(value, np.ndarray):
        return value
    kind = draw(KINDS)
    array = value.copy() if kind == "plain" else LAYOUTS[kind](value)
    array.flags.writeable = False  # what is only read may be so
    return array


def check(call: Call, arguments: dict[str, Any]) -> None:
    result = getattr(_native, call.function)(**arguments)
    if call.result is not None:
        assert abs(result - call.result) <= call.tolerance
    for name, expected in call.expected.items():
        found, tolerance = arguments[name], call.loose.get(name, call.tolerance)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("function", CALLS)
@settings(max_examples=25)
@given(data=st.data())
def test_equals_the_reference(function: str, data: st.DataObject) -> None:
    call = data.draw(CALLS[function])
    level = data.draw(st.sampled_from(["reference", *hamflow.isa_levels()]))
    count = data.draw(st.sampled_from(THREADS))
    plain = {k: v.copy() if k in call.outputs else v for k, v in call.arguments.items()}
    at_level(level, lambda: with_threads(count, lambda: check(call, plain)))

    shuffled = {
        name: call.arguments[name].copy() if name in call.outputs else laid_out(data.draw, value)
        for name, value in call.arguments.items()
    }
    try:
        at_level(level, lambda: with_threads(count, lambda: check(call, shuffled)))
    except REFUSED:  # where arrays are never converted; but what is plain is accepted
        inputs = [name for name in call.arguments if name not in call.outputs]
        assert not all(
            is_plain(shuffled[name], call.arguments[name])
            for name in inputs
            if isinstance(call.arguments[name], np.ndarray)
        )


@pytest.mark.parametrize("function", [f for f in CALLS if f not in ("label_energy", "all_within")])
@settings(max_examples=8)
@given(data=st.data())
def test_outputs_are_written_in_place_or_refused(function: str, data: st.DataObject) -> None:
    call = data.draw(CALLS[function])
    arguments = {k: v.copy() if k in call.outputs else v for k, v in call.arguments.items()}
    name = data.draw(st.sampled_from(sorted(call.outputs)))
    out = LAYOUTS[data.draw(st.sampled_from(sorted(LAYOUTS)))](arguments[name])
    before = out.copy()
    if is_plain(out, arguments[name]):  # as that of one row is in any order
        check(call, arguments | {name: out})
        return
    with pytest.raises(REFUSED):
        getattr(_native, function)(**(arguments | {name: out}))
    np.testing.assert_array_equal(out, before)


def some_values(rng: np.random.Generator, value: Any) -> Any:
    """What most functions accept: small numbers, bits, and labels that every window has."""
    if isinstance(value, tuple):
        return tuple(some_values(rng, item) for item in value)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind == "f":
        return abs(rng.normal(0, 1, value.shape)).astype(value.dtype)
    most = 2**64 if value.dtype == np.uint64 else 2
    return rng.integers(0, most, value.shape, value.dtype)


def outcome(function: str, arguments: dict[str, Any], level: str, count: int) -> list[Any] | None:
    """The result and all arrays afterwards; None if the call is refused."""
    call = getattr(_native, function)
    try:
        result = at_level(level, lambda: with_threads(count, lambda: call(**arguments)))
    except REFUSED:
        return None
    arrays: list[Any] = [result if isinstance(result, float | int | bool) else None]
    for value in arguments.values():
        parts = value if isinstance(value, tuple) else (value,)
        arrays += [part for part in parts if isinstance(part, np.ndarray)]
    return arrays


@pytest.mark.parametrize("function", FUNCTIONS)
@settings(max_examples=12)
@given(data=st.data())
def test_levels_threads_and_layouts_leave_no_trace(function: str, data: st.DataObject) -> None:
    """For all functions, also those without a reference here; what is only read stays as it was."""
    seed = data.draw(st.integers(0, 2**32 - 1))

    def arguments() -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        return {k: some_values(rng, v) for k, v in good_arguments(function).items()}

    plain = outcome(function, arguments(), "portable", 1)
    level = data.draw(st.sampled_from(hamflow.isa_levels()))
    count = data.draw(st.sampled_from(THREADS))
    changed = arguments()
    names = [name for name, value in changed.items() if isinstance(value, np.ndarray)]
    name = data.draw(st.sampled_from(sorted(names)))
    kind = data.draw(KINDS)
    if kind != "plain":
        changed[name] = LAYOUTS[kind](changed[name])
    found = outcome(function, changed, level, count)
    if kind == "plain" or is_plain(changed[name], arguments()[name]):
        assert (found is None) == (plain is None)
    if found is None or plain is None:
        return
    tolerance = 1e-4 if function in ROUNDED else 0
    for one, other in zip(found, plain, strict=True):
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
