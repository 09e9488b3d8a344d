"""Messages between the planes of the CRF (eqs. 8 and 9 of the paper).

A message is a min-projection with cost offsets, ``lam_v(v) := min_u [c(u, v) - lam_u(u)]`` (eq. 8)
and ``lam_u(u) := min_v [c(u, v) - lam_v(v)]`` (eq. 9). The cost c is evaluated on the fly, from
bits (column Q of Table 1) or floats (column F).

Erratum: the paper prints both updates as ``lam += min [...]``. That is right only while the
receiving lam is 0, as in the first iteration. Used literally, it makes the lower bound fall from
the second outer iteration on. The update has to be an assignment, as it is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_ISA and HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._types import Bits, Phi
from hamflow.errors import InputError
from hamflow.matching._arrays import (
    FLOAT_MAX,
    check_bits,
    check_cost,
    check_finite,
    check_phi,
    check_volume,
    words_of,
)
from hamflow.window import Window, WindowLike, kernel_window

Receiver = Literal["u", "v"]


@dataclass(frozen=True)
class HammingCost:
    """The cost of a Hamming distance h (eq. 1, quantized): step · h + base.

    The defaults are the paper's units, c = 2 h - m with m = 64; descriptors of two words have
    m = 128. A target outside of the image costs `outside`, by default as much as a match by chance.
    For fixed point, all three are whole numbers in units of 1/scale: see `HammingCost.fixed`.
    """

    step: float = 2.0
    base: float = -64.0
    outside: float = 0.0

    @classmethod
    def fixed(cls, scale: int, outside: float = 0.0, *, words: int = 1) -> HammingCost:
        """Return the cost 2 h - m in units of 1/scale, for int16 messages (scale 1 to 64)."""
        return cls(2 * scale, -64 * words * scale, round(outside * scale))


def message(
    bits0: Bits,
    bits1: Bits,
    window: WindowLike,
    lam: NDArray[Any],
    *,
    to: Receiver,
    cost: HammingCost | None = None,
) -> NDArray[Any]:
    """Send a message between the planes (eqs. 8 and 9), from packed bits.

    Parameters
    ----------
    bits0, bits1 : (H, W) or (H, W, 2) array of uint64
        Packed descriptors of the two images, of one word or two.
    window : Window or int or tuple
        Displacements.
    lam : (H, W, du) array for `to` = "v", (H, W, dv) array for "u"
        Offsets of the sender's labels: float32, or int16 for fixed point. Sums of int16 saturate;
        choose a scale at which no sum gets that large.
    to : "u" or "v"
        The plane that receives the message.
    cost : HammingCost, optional
        What a distance costs, by default 2 h - m; whole numbers for int16, with a step of 1 to
        128.

    Returns
    -------
    (H, W, dv) array for `to` = "v", (H, W, du) array for "u"
        min [c - lam] over the sender's labels, of the type of `lam`. A float32 message is right to
        about 1e-5 · step, and to float32's precision of `lam`.
    """
    first, second = check_bits(bits0, bits1)
    win = kernel_window(window)
    bits = 64 * words_of(first)
    costs = HammingCost(base=-float(bits)) if cost is None else cost
    dtype = np.int16 if getattr(lam, "dtype", None) == np.int16 else np.float32
    offsets, out = _volumes(first.shape, win, lam, to, dtype)
    step = check_cost(costs.step, "the cost's step")
    base = check_cost(costs.base, "the cost's base")
    outside = check_cost(costs.outside, "the cost's outside")
    if dtype is np.int16:
        whole = (int(step), int(base), int(outside))
        exact = whole == (step, base, outside)
        lowest, highest = min(base, outside), max(base + bits * step, outside)
        if not exact or not 1 <= step <= 128 or lowest < -32768 or highest > 32767:
            raise InputError(
                "cost: int16 messages need whole numbers within int16 and a step from 1 to 128, "
                f"not {costs}."
            )
        _native.message16(first, second, win.as_tuple(), to, whole, offsets, out)
    else:
        if step <= 0:
            raise InputError(f"cost: the step must be positive, not {step}.")
        check_finite(offsets, "lam")
        # The kernel works in units of the step, where lam must not overflow.
        if not _native.all_within(offsets, FLOAT_MAX * min(1.0, step)):
            raise InputError(
                f"lam is too large for a step of {step:g}; divide lam and the cost by the "
                "same number."
            )
        _native.message32(first, second, win.as_tuple(), to, (step, base, outside), offsets, out)
    return out


def float_message(
    phi0: Phi,
    phi1: Phi,
    window: WindowLike,
    lam: NDArray[np.float32],
    *,
    to: Receiver,
    outside: float = 0.0,
) -> NDArray[np.float32]:
    """Send a message between the planes (eqs. 8 and 9), with the float cost -<phi0, phi1>.

    Parameters
    ----------
    phi0, phi1 : (H, W, m) array of float32
        Descriptors of the two images.
    window : Window or int or tuple
        Displacements.
    lam : (H, W, du) array of float32 for `to` = "v", (H, W, dv) for "u"
        Offsets of the sender's labels.
    to : "u" or "v"
        The plane that receives the message.
    outside : float
        Cost of a target outside of the image.
    """
    first, second = check_phi(phi0, phi1)
    win = kernel_window(window)
    offsets, out = _volumes(first.shape, win, lam, to, np.float32)
    check_finite(offsets, "lam")
    _native.float_message(first, second, win.as_tuple(), to, check_cost(outside), offsets, out)
    return out


def _volumes(
    shape: tuple[int, ...], win: Window, lam: object, to: str, dtype: type[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sender's offsets, checked, and room for the receiver's message."""
    if to not in ("u", "v"):
        raise InputError(f"to must be the plane 'u' or 'v', not {to!r}.")
    h, w = shape[:2]
    sender, receiver = (win.dv, win.du) if to == "u" else (win.du, win.dv)
    return check_volume(lam, "lam", dtype, (h, w, sender)), np.empty((h, w, receiver), dtype)
