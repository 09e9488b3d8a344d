"""The compiled module, called past the checks of Python: it must raise, never crash or hang."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from _native_calls import H, W, good_arguments, volume
from _problems import run_python
from hamflow import _native

FUNCTIONS = [
    "min_projection",
    "message16",
    "message32",
    "float_min_projection",
    "float_message",
    "gather",
    "scatter",
    "best_labels",
    "rescan_bits",
    "rescan_phi",
]
ARRAYS = [
    (function, name)
    for function in FUNCTIONS
    for name, value in good_arguments(function).items()
    if isinstance(value, np.ndarray)
]
OUTPUTS = [
    (function, name)
    for function, name in ARRAYS
    if name in {"cu", "cv", "out", "flow", "labels", "grad_phi0", "grad_phi1"}
    or (name in {"v_hat", "u_hat"} and "min_projection" in function)
]
REFUSED = (ValueError, TypeError)


def call(function: str, **changed: Any) -> None:
    kernel: Callable[..., None] = getattr(_native, function)
    kernel(**(good_arguments(function) | changed))


ANY_SIZE = {
    ("best_labels", "costs", 2),  # any number of labels is right
    # A strip of an image is matched with some rows of the other one.
    *((name, "bits1", 0) for name in ("min_projection", "message16", "message32")),
    ("float_message", "phi1", 0),
}


@pytest.mark.parametrize(("function", "name"), ARRAYS)
def test_wrong_shapes(function: str, name: str) -> None:
    array = good_arguments(function)[name]
    for axis in range(array.ndim):
        # The first of the arrays decides the size; then the others have the wrong one.
        for size in (array.shape[axis] - 1, array.shape[axis] + 1):
            shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
            if (function, name, axis) in ANY_SIZE:
                continue
            with pytest.raises(REFUSED, match="shape"):
                call(function, **{name: np.zeros(shape, array.dtype)})
    for other in (array[0].copy(), array[None].copy(), None, 3, array.tolist()):
        if other is None and name in {"v_hat", "u_hat"}:
            continue  # may be left out, together: see below
        with pytest.raises(REFUSED):
            call(function, **{name: other})


@pytest.mark.parametrize("function", ["min_projection", "float_min_projection"])
def test_argmins_come_together(function: str) -> None:
    call(function, v_hat=None, u_hat=None)
    for name in ("v_hat", "u_hat"):
        with pytest.raises(ValueError, match="v_hat and u_hat come together"):
            call(function, **{name: None})


def test_empty_arrays() -> None:
    for function in FUNCTIONS:
        empty = {
            name: value[:0].copy()
            for name, value in good_arguments(function).items()
            if isinstance(value, np.ndarray)
        }
        if function == "best_labels":
            call(function, **empty)  # nothing to do
            continue
        with pytest.raises(ValueError, match="side must be 1 to"):
            call(function, **empty)
    with pytest.raises(ValueError, match="side must be 1 to"):
        call("best_labels", costs=np.zeros((H, W, 0), np.float32))


@pytest.mark.parametrize(("function", "name"), OUTPUTS)
def test_outputs_that_cannot_be_written(function: str, name: str) -> None:
    array = good_arguments(function)[name]
    array.flags.writeable = False
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call(function, **{name: array})


@pytest.mark.parametrize("kind", ["type", "strides"])
def test_outputs_are_never_copies(kind: str) -> None:
    # A converted copy would take the results with it.
    for function, name in OUTPUTS:
        array = good_arguments(function)[name]
        apart = np.repeat(array, 2, axis=-1)[..., ::2]
        bad = array.astype(np.float64) if kind == "type" else apart
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call(function, **{name: bad})


WINDOWS = [
    (0, 0, 0, 1),
    (0, 1, 0, -1),
    (0, 4097, 0, 1),
    (1 << 25, 3, -1, 2),
    (-1, 3, -(1 << 25), 2),
    (2**31 - 1, 3, -1, 2),
    (2**40, 3, -1, 2),
    (0, 3, 0),
    (0.5, 3, 0, 2),
    None,
    3,
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f != "best_labels"])
def test_windows(function: str, window: Any) -> None:
    with pytest.raises(REFUSED, match="window"):
        call(function, window=window)


@pytest.mark.parametrize("label", [-1, -32768, 2, 32767])
@pytest.mark.parametrize("function", ["gather", "scatter"])
def test_labels_beyond_the_window(function: str, label: int) -> None:
    v_hat, u_hat = volume(np.int16, 3), volume(np.int16, 2)
    v_hat[3, 4, 2] = label
    u_hat[0, 0, 0] = label + 1 if label == 2 else label
    with pytest.raises(ValueError, match="v_hat has labels outside"):
        call(function, v_hat=v_hat)
    with pytest.raises(ValueError, match="u_hat has labels outside"):
        call(function, u_hat=u_hat)


@pytest.mark.parametrize("label", [-1, 2, 32767])
@pytest.mark.parametrize("function", ["rescan_bits", "rescan_phi"])
def test_rows_beyond_the_window(function: str, label: int) -> None:
    with pytest.raises(ValueError, match="v_labels has labels outside"):
        call(function, v_labels=np.full((H, W), label, np.int16))


@pytest.mark.parametrize("outside", [-1, 65, 256, 1.5, None])
def test_distance_outside(outside: Any) -> None:
    with pytest.raises(REFUSED, match="outside"):
        call("min_projection", outside=outside)


@pytest.mark.parametrize("function", ["message16", "message32", "float_message"])
def test_receiver(function: str) -> None:
    for to in ("w", "", None):
        with pytest.raises(REFUSED, match=r"'u' or 'v'|incompatible"):
            call(function, to=to)


def test_costs() -> None:
    for bad in ((0, 0, 0), (129, 0, 0), (1, 32767, 0), (1, 0, 40000), (2**31 - 1, 2**31 - 1, 0)):
        with pytest.raises(ValueError, match="cost"):
            call("message16", cost=bad)
    for step, base in ((0.0, 0.0), (np.nan, 0.0), (1.0, np.inf)):
        with pytest.raises(ValueError, match="cost"):
            call("message32", cost=(step, base, 0.0))


def test_settings() -> None:
    with pytest.raises(TypeError):
        _native.set_num_threads("2")  # type: ignore[arg-type]
    assert not _native.force_level("sse9")
    assert not _native.force_convolutions("mmx")


# --- what comes after matching --------------------------------------------------------------------


# Without an element: no memory is needed to say that an image has so many pixels.
HUGE = 2**15, 2**15 + 1
TOO_LARGE = {
    function: {name: np.zeros(shape, dtype)}
    for functions, name, shape, dtype in (
        ("reduce smooth contrasts features", "image", (*HUGE, 0), "f"),
        ("choose_seeds there_and_back assess look_at_targets", "flow", (*HUGE, 0), "f"),
        ("count_arrivals interpolate guards", "flow", (*HUGE, 0), "f"),
        ("plane_motions score_candidates color_differences", "motion", (1, *HUGE, 0), "f"),
        ("choose_candidates", "motion", (1, *HUGE, 0), "f"),
        ("find_planes", "place", (2**30 + 1, 0), "f"),
        ("geodesic_distances", "source", (0, *HUGE), np.uint8),
        ("score_in_context", "features", (1, 0, *HUGE), "f"),
        ("variational choose_motions", "f0", (*HUGE, 0), "f"),
        ("upsample", "field", (*HUGE, 0), "f"),
    )
    for function in functions.split()
}


@pytest.mark.parametrize("function", TOO_LARGE)
def test_too_many_pixels(function: str) -> None:
    call(function)
    with pytest.raises(ValueError, match="at most 2\\^30"):
        call(function, **TOO_LARGE[function])


@pytest.mark.parametrize("count", [-1, 10001, 2**31 - 1])
def test_too_many_rounds(count: int) -> None:
    for function, name, value in (
        ("interpolate", "how", (1, 0.5, 1.0, count)),
        ("geodesic_distances", "rounds", count),
        ("choose_candidates", "how", (1.0, count)),
    ):
        with pytest.raises(ValueError, match="rounds: from 0 to 1000"):
            call(function, **{name: value})
    for schedule in ((count, 0, 0, 1.0), (0, count, 0, 1.0), (0, 0, count, 1.0)):
        with pytest.raises(ValueError, match="schedule: counts in"):
            call("variational", schedule=schedule)


def test_too_many_sets() -> None:
    many = np.zeros((257, H, W), np.uint8)
    with pytest.raises(ValueError, match="at most 256 sets"):
        call("geodesic_distances", source=many, distance=many.astype(np.float32))


NUMBERS = [
    (function, name, place)
    for function in TOO_LARGE
    for name, value in good_arguments(function).items()
    if isinstance(value, tuple)
    for place, number in enumerate(value)
    if isinstance(number, float)
]


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("function", "name", "place"), NUMBERS)
def test_numbers_are_finite(function: str, name: str, place: int, number: float) -> None:
    value = list(good_arguments(function)[name])
    value[place] = number
    with pytest.raises(ValueError, match=f"{name}: "):
        call(function, **{name: tuple(value)})


# --- what could run for ever, in processes of their own -------------------------------------------

HANGING = {
    "costs of NaN": "best_labels(np.full((2, 3, 4), np.nan, np.float32), 0, labels)",
    "one NaN": "best_labels(np.array([np.nan, 1, 2, 0] * 6, 'f').reshape(2, 3, 4), 0, labels)",
    "far right": "best_labels(np.zeros((2, 3, 4), np.float32), 2**31 - 1, labels)",
    "far left": "best_labels(np.zeros((2, 3, 4), np.uint8), -2**31, labels)",
    "phi of NaN": "rescan_phi(nan, nan, (-1, 4, -1, 4), 0.0, labels, flow)",
    "bits": "rescan_bits(bits, bits, (-1, 4, -1, 4), 255, labels, flow)",
}
PREPARE = """
import numpy as np
from hamflow import _native
labels, flow = np.zeros((2, 3), np.int16), np.zeros((2, 3, 2), np.float32)
nan, bits = np.full((2, 3, 4), np.nan, np.float32), np.zeros((2, 3), np.uint64)
try:
    _native.{call}
    assert ((labels >= 0) & (labels < 4)).all()
    assert (abs(flow) <= 4).all()
except ValueError:
    pass
"""


@pytest.mark.parametrize("kind", HANGING)
def test_comes_back(kind: str) -> None:
    run = run_python("-c", PREPARE.format(call=HANGING[kind]), timeout=10)
    assert run.returncode == 0, run.stderr
