"""The data term c(i; u, v) of eqs. 1 and 3, from bits (Q) or floats (F of Table 1)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_ISA and HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._types import Bits, Labels, Phi, Volume
from hamflow.crf.arithmetic import Arithmetic
from hamflow.crf.model import Costs
from hamflow.window import Window

Plane = Literal["u", "v"]
Blocks = Literal["rows", "columns", "pixels"]


class DataTerm(Protocol):
    """Costs that are computed when they are needed; the 4D cost (eq. 1) is never stored."""

    window: Window
    shape: tuple[int, int]
    largest: float

    def use(self, arithmetic: Arithmetic) -> None:
        """Compute messages and moves in this arithmetic from now on."""

    def message(self, to: Plane, lam: Volume, out: Volume) -> None:
        """Send ``min [c - lam]`` over the sender's labels, rounded down, to the other plane."""

    def costs(self, u: Labels, v: Labels) -> Costs:
        """Return the unrounded costs of a labeling, H×W."""

    def relabel(
        self, plane: Plane, blocks: Blocks, u: Labels, v: Labels, edges: tuple[Volume, Volume, int]
    ) -> None:
        """Give every other row, column or pixel of one plane its best labels, then the others."""


class BitsData:
    """``c = 2 · Hamming distance - 64``."""

    def __init__(self, bits0: Bits, bits1: Bits, window: Window, c_outside: float) -> None:
        self._bits = (bits0, bits1)
        self._turned = (_turned(bits0), _turned(bits1))
        self._c_outside = c_outside
        self.window = window
        self.shape = (bits0.shape[0], bits0.shape[1])
        self.largest = max(64.0, abs(c_outside))

    def use(self, arithmetic: Arithmetic) -> None:
        """Compute messages and moves in this arithmetic from now on."""
        scale, outside = arithmetic.scale, arithmetic.down(self._c_outside)
        self._fixed = arithmetic.dtype is np.int16
        # Whole numbers in float32, too: the types only tell the two kernels apart.
        unit: Any = int if self._fixed else float
        self._cost: Any = (unit(2 * scale), unit(-64 * scale), unit(outside))

    def message(self, to: Plane, lam: Volume, out: Volume) -> None:
        """Send ``min [c - lam]`` over the sender's labels to the other plane."""
        message = _native.message16 if self._fixed else _native.message32
        message(*self._bits, self.window.as_tuple(), to, self._cost, lam, out)

    def costs(self, u: Labels, v: Labels) -> Costs:
        """Return the unrounded costs of a labeling, H×W."""
        distances = np.empty(self.shape, np.int16)
        _native.label_distances(*self._bits, self.window.as_tuple(), u, v, distances)
        return np.where(distances < 0, self._c_outside, 2.0 * distances - 64.0)

    def relabel(
        self, plane: Plane, blocks: Blocks, u: Labels, v: Labels, edges: tuple[Volume, Volume, int]
    ) -> None:
        """Give every other row, column or pixel of one plane its best labels, then the others."""
        fields = self._bits if plane == "u" else self._turned
        move = partial(_native.relabel, *fields)
        _relabel(
            move, self.window, self._cost, plane=plane, blocks=blocks, labels=(u, v), edges=edges
        )


class PhiData:
    """``c = -<phi0, phi1>``."""

    def __init__(self, phi0: Phi, phi1: Phi, window: Window, c_outside: float) -> None:
        self._phi = (phi0, phi1)
        self._c_outside = c_outside
        self.window = window
        self.shape = (phi0.shape[0], phi0.shape[1])
        norms = [float(np.sqrt(np.einsum("yxm,yxm->yx", p, p).max())) for p in (phi0, phi1)]
        # A little more, for the rounding of the norms and of the scalar products themselves.
        self._product = 1.001 * norms[0] * norms[1]
        self.largest = max(self._product, abs(c_outside))

    @cached_property
    def _turned(self) -> tuple[Phi, Phi]:
        """Both fields with rows and columns exchanged, made when the first move needs them."""
        return _turned(self._phi[0]), _turned(self._phi[1])

    def use(self, arithmetic: Arithmetic) -> None:
        """Compute messages and moves in this arithmetic from now on."""
        phi0, phi1 = self._phi
        self._scale = arithmetic.scale
        self._scaled = (phi0 * np.float32(arithmetic.scale), phi1)  # exact: a power of two
        self._outside = float(arithmetic.down(self._c_outside))
        # A float32 scalar product of m terms is off by less than (m + 2) 2^-24 times the product
        # of the norms, and subtracting lam rounds by less than a unit.
        terms = phi0.shape[2] + 2
        self._margin = np.float32(np.ceil(terms * 2.0**-24 * self._product * self._scale) + 1)

    def message(self, to: Plane, lam: Volume, out: Volume) -> None:
        """Send ``min [c - lam]`` over the sender's labels, rounded down, to the other plane."""
        window = self.window.as_tuple()
        _native.float_message(*self._scaled, window, to, self._outside, lam, out)
        np.floor(out, out=out)
        out -= self._margin

    def costs(self, u: Labels, v: Labels) -> Costs:
        """Return the unrounded costs of a labeling, H×W."""
        costs = np.empty(self.shape, np.float64)
        _native.label_costs(*self._phi, self.window.as_tuple(), u, v, costs)
        costs[np.isnan(costs)] = self._c_outside
        return costs

    def relabel(
        self, plane: Plane, blocks: Blocks, u: Labels, v: Labels, edges: tuple[Volume, Volume, int]
    ) -> None:
        """Give every other row, column or pixel of one plane its best labels, then the others."""
        fields = self._phi if plane == "u" else self._turned
        move = partial(_native.relabel_phi, *fields)
        cost = (self._scale, self._outside)
        _relabel(move, self.window, cost, plane=plane, blocks=blocks, labels=(u, v), edges=edges)


_TURNED_BLOCKS: dict[Blocks, Blocks] = {"rows": "columns", "columns": "rows", "pixels": "pixels"}


def _turned(array: NDArray[Any]) -> NDArray[Any]:
    """Exchange rows and columns, as a copy that is contiguous."""
    return np.ascontiguousarray(array.swapaxes(0, 1))


def _relabel(
    move: Callable[..., None],
    window: Window,
    cost: Any,
    *,
    plane: Plane,
    blocks: Blocks,
    labels: tuple[Labels, Labels],
    edges: tuple[Volume, Volume, int],
) -> None:
    """Move u; or v, by exchanging rows and columns of everything."""
    u, v = labels
    right, down, reach = edges
    if plane == "u":
        move(window.as_tuple(), cost, right, down, reach, blocks, v, u)
        return
    turned = (window.v0, window.dv, window.u0, window.du)
    new = _turned(v)
    lines = _TURNED_BLOCKS[blocks]
    move(turned, cost, _turned(down), _turned(right), reach, lines, _turned(u), new)
    v[:] = new.T
