"""Wrong arguments: one sentence that names the argument, never a crash."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from _problems import run_python
from hamflow import InputError, pair_bits
from hamflow.matching import (
    HammingCost,
    float_message,
    float_min_projection,
    hybrid_min_projection,
    local_flow,
    message,
    min_projection,
)

Array = NDArray[Any]

BITS = np.zeros((4, 5), np.uint64)
PHI = np.zeros((4, 5, 64), np.float32)
LAM = np.zeros((4, 5, 2), np.float32)


def bad_bits() -> dict[str, Any]:
    return {
        "type int64": BITS.astype(np.int64),
        "type float": BITS.astype(float),
        "type >u8": BITS.astype(">u8"),
        "4 axes": BITS[..., None, None],
        "1 axis": BITS[0],
        "no rows": BITS[:0],
        "no columns": BITS[:, :0],
        "every other": np.zeros((4, 10), np.uint64)[:, ::2],
        "transposed": np.zeros((5, 4), np.uint64).T,
        "a list": BITS.tolist(),
        "None": None,
        "a number": 3,
    }


def bad_phi() -> dict[str, Any]:
    with_nan, with_inf = PHI.copy(), PHI.copy()
    with_nan[3, 4, 63] = np.nan
    with_inf[0, 0, 0] = -np.inf
    return {
        "type float64": PHI.astype(np.float64),
        "type float16": PHI.astype(np.float16),
        "2 axes": PHI[0],
        "4 axes": PHI[None],
        "no channel": PHI[..., :0],
        "every other": np.zeros((4, 5, 128), np.float32)[..., ::2],
        "NaN": with_nan,
        "infinite": with_inf,
        "a list": PHI.tolist(),
    }


def refuses(name: str) -> AbstractContextManager[object]:
    return pytest.raises(InputError, match=rf"^{name} (must|is not|has) ")


def other_shapes(array: Array) -> list[Array]:
    return [np.zeros((*array.shape[:k], 9, *array.shape[k + 1 :]), array.dtype) for k in (0, 1)]


ON_BITS: dict[str, Callable[[Any, Any], object]] = {
    "min_projection": lambda a, b: min_projection(a, b, 2),
    "message": lambda a, b: message(a, b, 2, LAM, to="u"),
}
ON_PHI: dict[str, Callable[[Any, Any], object]] = {
    "float_min_projection": lambda a, b: float_min_projection(a, b, 2),
    "hybrid_min_projection": lambda a, b: hybrid_min_projection(a, b, 2),
    "float_message": lambda a, b: float_message(a, b, 2, LAM, to="u"),
}


@pytest.mark.parametrize("kind", bad_bits())
@pytest.mark.parametrize("function", ON_BITS)
def test_bits(function: str, kind: str) -> None:
    call, bad = ON_BITS[function], bad_bits()[kind]
    with refuses("bits0"):
        call(bad, BITS)
    with refuses("bits1"):
        call(BITS, bad)


@pytest.mark.parametrize("kind", bad_phi())
@pytest.mark.parametrize("function", ON_PHI)
def test_phi(function: str, kind: str) -> None:
    call, bad = ON_PHI[function], bad_phi()[kind]
    with refuses("phi0"):
        call(bad, PHI)
    with refuses("phi1"):
        call(PHI, bad)


@pytest.mark.parametrize("function", [*ON_BITS, *ON_PHI])
def test_two_fields_of_different_size(function: str) -> None:
    call = (ON_BITS | ON_PHI)[function]
    good = BITS if function in ON_BITS else PHI
    for other in other_shapes(good):
        with pytest.raises(InputError, match=r"(bits|phi)0 and (bits|phi)1 must have one shape"):
            call(good, other)


def test_hybrid_needs_64_channels() -> None:
    with pytest.raises(InputError, match="must have 64 components for FQ, not 7"):
        hybrid_min_projection(PHI[..., :7].copy(), PHI[..., :7].copy(), 2)


def test_remedies_are_named() -> None:
    with pytest.raises(InputError, match=re.escape(".astype(numpy.float32)")):
        float_min_projection(PHI.astype(float), PHI, 2)
    with pytest.raises(InputError, match=re.escape("numpy.ascontiguousarray(bits1)")):
        min_projection(BITS, np.zeros((5, 4), np.uint64).T, 2)


@pytest.mark.parametrize("window", [0, -2, 3, 4098, 2.0, "4", None, (1, 2, 3), (0, 0, 0, 1)])
def test_windows(window: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: min_projection(BITS, BITS, window),
        lambda: float_min_projection(PHI, PHI, window),
        lambda: hybrid_min_projection(PHI, PHI, window),
        lambda: message(BITS, BITS, window, LAM, to="u"),
        lambda: float_message(PHI, PHI, window, LAM, to="u"),
        lambda: local_flow(np.zeros((4, 5)), np.zeros((4, 5)), window, describe=pair_bits),
    ]
    for call in calls:
        with pytest.raises(InputError, match="window"):
            call()


@pytest.mark.parametrize("outside", [-1, 65, 1000, 1.5, 32.0, True, "32"])
def test_distance_outside(outside: Any) -> None:
    with pytest.raises(InputError, match="outside must be"):
        min_projection(BITS, BITS, 2, outside=outside)


NO_COST = [np.nan, np.inf, -np.inf, 1e39, np.float64(1e300), 10**400, True, "0", None, 1j]


@pytest.mark.parametrize("outside", NO_COST)
def test_cost_outside(outside: Any) -> None:
    for call in (float_min_projection, hybrid_min_projection):
        with pytest.raises(InputError, match="outside must be"):
            call(PHI, PHI, 2, outside=outside)
    with pytest.raises(InputError, match="outside must be"):
        float_message(PHI, PHI, 2, LAM, to="u", outside=outside)


# --- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", NO_COST)
@pytest.mark.parametrize("name", ["step", "base", "outside"])
@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_costs_that_are_no_numbers(dtype: Any, name: str, value: Any) -> None:
    cost = HammingCost(**{name: value})
    with pytest.raises(InputError, match=f"the cost's {name} must be"):
        message(BITS, BITS, 2, LAM.astype(dtype), to="u", cost=cost)


@pytest.mark.parametrize(
    "cost",
    [
        HammingCost(0, 0, 0),
        HammingCost(-1, 0, 0),
        HammingCost(129, -8192, 0),
        HammingCost(1.5, 0, 0),
        HammingCost(2, 0.5, 0),
        HammingCost(2, 0, 0.25),
        HammingCost(1, -32769, 0),
        HammingCost(1, 32767 - 63, 0),
        HammingCost(1, 0, 32768),
        HammingCost(1, 0, -32769),
    ],
)
def test_costs_beyond_int16(cost: HammingCost) -> None:
    with pytest.raises(InputError, match="cost: int16 messages need"):
        message(BITS, BITS, 2, LAM.astype(np.int16), to="u", cost=cost)


@pytest.mark.parametrize("step", [0, -2.5])
def test_costs_that_fall(step: float) -> None:
    with pytest.raises(InputError, match="step must be positive"):
        message(BITS, BITS, 2, LAM, to="u", cost=HammingCost(step=step))


def send_all(lam: Any, to: Any) -> list[Callable[[], object]]:
    window = (0, 3, 0, 2)  # two senders to u, three to v
    return [
        lambda: message(BITS, BITS, window, lam, to=to),
        lambda: float_message(PHI, PHI, window, lam, to=to),
    ]


@pytest.mark.parametrize(
    "lam",
    [
        LAM.astype(np.float64),
        LAM.astype(np.int32),
        LAM[..., :1],
        LAM[0],
        LAM[:3],
        LAM[:, :, :0],
        np.zeros((4, 5, 4), np.float32)[..., ::2],
        LAM.tolist(),
        None,
        np.full_like(LAM, np.nan),
        np.full_like(LAM, np.inf),
    ],
)
def test_lam(lam: Any) -> None:
    for call in send_all(lam, "u"):
        with refuses("lam"):
            call()


def test_lam_of_the_other_plane() -> None:
    for call in send_all(LAM, "v"):
        with pytest.raises(InputError, match=r"lam must have the shape \(4, 5, 3\)"):
            call()


@pytest.mark.parametrize("to", ["w", "U", "", None, 0])
def test_receiver(to: Any) -> None:
    for call in send_all(LAM, to):
        with pytest.raises(InputError, match="plane 'u' or 'v'"):
            call()


# --- gradients, images ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "grad",
    [
        LAM.astype(np.float64),
        LAM[..., :1],
        LAM[0],
        LAM.tolist(),
        None,
        np.full_like(LAM, np.nan),
        np.full_like(LAM, -np.inf),
    ],
)
def test_gradients(grad: Any) -> None:
    result = hybrid_min_projection(PHI, PHI, 2)
    with refuses("grad_cu"):
        result.backward(grad, LAM)
    with refuses("grad_cv"):
        result.backward(LAM, grad)


def test_images() -> None:
    image = np.zeros((4, 5, 3), np.uint8)
    with pytest.raises(InputError, match=r"images must have one size, but are 5×4 and 4×5"):
        local_flow(image, image.transpose(1, 0, 2), describe=pair_bits)
    for bad in (image[0, 0], image[..., :2], image[:0], 3, "image"):
        with pytest.raises(InputError, match="image"):
            local_flow(bad, bad, describe=pair_bits)


def test_lists_are_images_too() -> None:
    image = [[0, 0.5], [1, 0]]
    assert local_flow(image, image, 2, describe=pair_bits).shape == (2, 2, 2)


# --- floats so large that their products overflow ------------------------------------------------

HUGE = """
import numpy as np
from hamflow.matching import {project} as project
phi0, phi1 = (np.full((4, 5, 64), 1e30, np.float32) for _ in range(2))
phi0[..., ::2] *= -1
try:
    result = project(phi0, phi1, 4)
    flow = result.wta()
    assert np.isfinite(flow).all() and (abs(flow) <= 2).all()
except ValueError:
    pass
"""


@pytest.mark.parametrize("project", ["float_min_projection", "hybrid_min_projection"])
def test_products_that_overflow(project: str) -> None:
    # In a process of its own, since it once did not come back.
    run = run_python("-c", HUGE.format(project=project), timeout=10)
    assert run.returncode == 0, run.stderr
