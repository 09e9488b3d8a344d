"""The local model: min-projection of the 4D cost, and winner takes all (eqs. 1, 2 and 4).

``c^u(i, u) = min_v c(i; u, v)`` and ``c^v(i, v) = min_u c(i; u, v)`` (eqs. 4a and 4b of the paper),
where c is the local matching cost (eq. 1). It is computed on the fly: the 4D cost is never stored.
The three variants of the paper's section 3.1 differ in where they use quantized descriptors: QQ in
both minimizations, FF in none, FQ in the inner one only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_ISA and HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._room import empty
from hamflow._types import Bits, Labels, Phi
from hamflow.errors import InputError
from hamflow.matching._arrays import (
    check_bits,
    check_cost,
    check_distance,
    check_finite,
    check_phi,
    check_volume,
    words_of,
)
from hamflow.matching.strips import cut_strip, strips
from hamflow.window import Window, WindowLike, kernel_window

CHANCE_LEVEL = 32
"""Hamming distance that two unrelated 64-bit words have on average.

For each word, it is the default for a target outside of the image: the paper gives no value for its
c_outside.
"""

LABELS_AT_ONCE = 2**25
"""Labels of both components of all pixels of a strip that `winner_takes_all` has in memory."""


@dataclass(frozen=True)
class MinProjection:
    """Result of :func:`min_projection` (QQ).

    Attributes
    ----------
    cu, cv : (H, W, du) and (H, W, dv) array of uint8
        Hamming distances minimized over v and over u.
    v_hat, u_hat : arrays of int16 of the same shapes, or None
        The labels at which these minima are attained, the smallest where several are.
    bits0, bits1, window, outside
        What it was computed from.
    """

    cu: NDArray[np.uint8]
    cv: NDArray[np.uint8]
    v_hat: Labels | None
    u_hat: Labels | None
    bits0: Bits
    bits1: Bits
    window: Window
    outside: int

    def wta(self) -> NDArray[np.float32]:
        """Return the winner-takes-all flow (eqs. 2 and 4), H×W×2, in whole pixels.

        v minimizes c^v, and u minimizes the row of costs at that v, so that both belong to the same
        minimum where several are equally good. Ties go to the smallest displacement, then to the
        negative one: identical and flat frames give exactly 0.
        """
        labels = _best_labels(self.cv, self.window.v0)
        return _rescan_bits(self.bits0, self.bits1, self.window, self.outside, labels)


@dataclass(frozen=True)
class FloatMinProjection:
    """Result of :func:`float_min_projection` (FF) and :func:`hybrid_min_projection` (FQ).

    Attributes
    ----------
    cu, cv : (H, W, du) and (H, W, dv) array of float32
        Costs -<phi0, phi1> at the inner minimizers.
    v_hat, u_hat : arrays of int16 of the same shapes, or None
        The labels of the inner minimizers.
    bits0, bits1 : (H, W) array of uint64, or None
        The bits that chose them (FQ only).
    phi0, phi1, window, outside
        What it was computed from.
    """

    cu: NDArray[np.float32]
    cv: NDArray[np.float32]
    v_hat: Labels | None
    u_hat: Labels | None
    phi0: Phi
    phi1: Phi
    bits0: Bits | None
    bits1: Bits | None
    window: Window
    outside: float

    def wta(self) -> NDArray[np.float32]:
        """Return the winner-takes-all flow, H×W×2; ties as in :meth:`MinProjection.wta`.

        v minimizes c^v. u minimizes the row at that v: of the float cost (FF) or of the quantized
        one (FQ), as the inner minimization did.
        """
        labels = _best_labels(self.cv, self.window.v0)
        if self.bits0 is not None and self.bits1 is not None:
            return _rescan_bits(self.bits0, self.bits1, self.window, CHANCE_LEVEL, labels)
        flow = np.empty((*self.cu.shape[:2], 2), np.float32)
        _native.rescan_phi(self.phi0, self.phi1, self.window.as_tuple(), self.outside, labels, flow)
        return flow

    def backward(
        self, grad_cu: NDArray[np.float32], grad_cv: NDArray[np.float32]
    ) -> tuple[Phi, Phi]:
        """Return the gradients with respect to phi0 and phi1.

        The derivative is the indicator of the chosen pairs of labels (section 3.1 of the paper, FF
        and FQ), and exact where the inner minimizer is unique. It takes a gather and a scatter-add,
        O(H W (du + dv) m). Targets outside of the image have a constant cost and no gradient. The
        result is the same to the last bit for any number of threads.

        Parameters
        ----------
        grad_cu, grad_cv : arrays of float32
            Derivatives of a loss with respect to `cu` and `cv`.
        """
        if self.v_hat is None or self.u_hat is None:
            raise InputError("The backward pass needs the inner argmins: pass argmins=True.")
        gu = check_volume(grad_cu, "grad_cu", np.float32, self.cu.shape)
        gv = check_volume(grad_cv, "grad_cv", np.float32, self.cv.shape)
        check_finite(gu, "grad_cu")
        check_finite(gv, "grad_cv")
        grad_phi0, grad_phi1 = np.empty_like(self.phi0), np.empty_like(self.phi1)
        _native.scatter(
            self.phi0,
            self.phi1,
            self.window.as_tuple(),
            self.v_hat,
            self.u_hat,
            gu,
            gv,
            grad_phi0,
            grad_phi1,
        )
        return grad_phi0, grad_phi1


def min_projection(
    bits0: Bits,
    bits1: Bits,
    window: WindowLike,
    *,
    outside: int | None = None,
    argmins: bool = False,
) -> MinProjection:
    """Min-projection (eq. 4) of the Hamming distances of packed descriptors (model QQ).

    Parameters
    ----------
    bits0, bits1 : (H, W) or (H, W, 2) array of uint64
        Packed descriptors of the two images, of one word or two.
    window : Window or int or tuple
        Displacements to search; an int D stands for the paper's square window.
    outside : int, optional
        Distance of a target outside of the image, the paper's c_outside (eq. 1): by default as
        much as a match by chance, `CHANCE_LEVEL` for each word.
    argmins : bool
        Also return the inner argmins, the labels v̂(u) and û(v).

    Examples
    --------
    >>> import numpy as np
    >>> bits = np.random.default_rng(0).integers(0, 2**64, (20, 30), np.uint64)
    >>> shifted = np.roll(bits, (2, -3), axis=(0, 1))
    >>> min_projection(bits, shifted, 16).wta()[10, 15]
    array([-3.,  2.], dtype=float32)
    """
    first, second = check_bits(bits0, bits1)
    win = kernel_window(window)
    words = words_of(first)
    distance = CHANCE_LEVEL * words if outside is None else check_distance(outside, words)
    cu, cv = _volumes(first.shape, win, np.uint8)
    v_hat, u_hat = _volumes(first.shape, win, np.int16) if argmins else (None, None)
    _native.min_projection(first, second, win.as_tuple(), distance, cu, cv, v_hat, u_hat)
    return MinProjection(cu, cv, v_hat, u_hat, first, second, win, distance)


def winner_takes_all(
    bits0: Bits, bits1: Bits, window: WindowLike, *, outside: int | None = None
) -> NDArray[np.float32]:
    """Return the flow that `min_projection` leads to, without its volumes, strip by strip.

    Parameters
    ----------
    bits0, bits1, window, outside
        As for `min_projection`.
    """
    first, second = check_bits(bits0, bits1)
    win = kernel_window(window)
    words = words_of(first)
    distance = CHANCE_LEVEL * words if outside is None else check_distance(outside, words)
    height, width = first.shape[:2]
    labels = np.empty((height, width), np.int16)
    for top, bottom in strips(height, LABELS_AT_ONCE // (width * (win.du + win.dv))):
        fields, moved = cut_strip((first, second), win, top, bottom)
        volumes = _volumes(fields[0].shape, win, np.uint8)
        _native.min_projection(*fields, moved.as_tuple(), distance, *volumes, None, None)
        labels[top:bottom] = _best_labels(volumes[1], win.v0)
    return _rescan_bits(first, second, win, distance, labels)


def float_min_projection(
    phi0: Phi,
    phi1: Phi,
    window: WindowLike,
    *,
    outside: float = 0.0,
    argmins: bool = False,
) -> FloatMinProjection:
    """Min-projection (eq. 4) of the float cost -<phi0, phi1> (model FF).

    Parameters
    ----------
    phi0, phi1 : (H, W, m) array of float32
        Descriptors of the two images; any m, fastest for m = 64.
    window : Window or int or tuple
        Displacements to search.
    outside : float
        Cost of a target outside of the image.
    argmins : bool
        Also return the inner argmins, which the backward pass needs.
    """
    first, second = check_phi(phi0, phi1)
    win = kernel_window(window)
    cost = check_cost(outside)
    cu, cv = _volumes(first.shape, win, np.float32)
    v_hat, u_hat = _volumes(first.shape, win, np.int16) if argmins else (None, None)
    _native.float_min_projection(first, second, win.as_tuple(), cost, cu, cv, v_hat, u_hat)
    return FloatMinProjection(cu, cv, v_hat, u_hat, first, second, None, None, win, cost)


def hybrid_min_projection(
    phi0: Phi,
    phi1: Phi,
    window: WindowLike,
    *,
    outside: float = 0.0,
    inner: NDArray[np.float32] | None = None,
) -> FloatMinProjection:
    """Min-projection of the hybrid model FQ: inner argmins from bits, the float cost at them.

    Parameters
    ----------
    phi0, phi1 : (H, W, 64) array of float32
        Descriptors of the two images; their signs are the bits.
    window : Window or int or tuple
        Displacements to search.
    outside : float
        Cost of a target outside of the image; in the inner argmin it has the chance level.
    inner : (H, W, 2) array of float32, optional
        Flow that replaces the inner argmins where it is finite and, rounded, inside the window: all
        u are evaluated at the given v, and all v at the given u. Training may begin with the true
        flow here.
    """
    first, second = check_phi(phi0, phi1)
    win = kernel_window(window)
    cost = check_cost(outside)
    bits0, bits1 = _signs(first), _signs(second)
    v_hat, u_hat = _volumes(first.shape, win, np.int16)
    distances = _volumes(first.shape, win, np.uint8)
    _native.min_projection(bits0, bits1, win.as_tuple(), CHANCE_LEVEL, *distances, v_hat, u_hat)
    del distances
    if inner is not None:
        _replace_inner(inner, win, v_hat, u_hat)
    cu, cv = _volumes(first.shape, win, np.float32)
    _native.gather(first, second, win.as_tuple(), cost, v_hat, u_hat, cu, cv)
    return FloatMinProjection(cu, cv, v_hat, u_hat, first, second, bits0, bits1, win, cost)


def _replace_inner(
    inner: NDArray[np.float32], win: Window, v_hat: NDArray[Any], u_hat: NDArray[Any]
) -> None:
    flow = check_volume(inner, "inner", np.float32, (*v_hat.shape[:2], 2))
    labels = np.rint(flow) - (win.u0, win.v0)
    with np.errstate(invalid="ignore"):  # comparisons with NaN
        inside = ((labels >= 0) & (labels < (win.du, win.dv))).all(axis=2)
    chosen = labels[inside].astype(np.int16)
    u_hat[inside] = chosen[:, :1]
    v_hat[inside] = chosen[:, 1:]


def _signs(phi: Phi) -> Bits:
    """Return the bits of descriptors, as `hamflow.descriptors.pack_bits` does."""
    if phi.shape[2] != 64:
        raise InputError(f"phi0 and phi1 must have 64 components for FQ, not {phi.shape[2]}.")
    return np.packbits(phi > 0, axis=2, bitorder="little").view("<u8")[..., 0].astype(np.uint64)


def _volumes(
    shape: tuple[int, ...], win: Window, dtype: type[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    h, w = shape[:2]
    return empty((h, w, win.du), dtype), empty((h, w, win.dv), dtype)


def _best_labels(costs: NDArray[Any], first: int) -> Labels:
    labels = np.empty(costs.shape[:2], np.int16)
    _native.best_labels(costs, first, labels)
    return labels


def _rescan_bits(
    bits0: Bits, bits1: Bits, win: Window, outside: int, v_labels: Labels
) -> NDArray[np.float32]:
    flow = np.empty((*bits0.shape[:2], 2), np.float32)
    _native.rescan_bits(bits0, bits1, win.as_tuple(), outside, v_labels, flow)
    return flow
