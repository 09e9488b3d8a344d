"""The data term c(i; u, v) of eqs. 1 and 3, from bits (Q) or floats (F of Table 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hamflow import _native
from hamflow._room import empty
from hamflow._types import Bits, Costs, Labels, Phi, Volume
from hamflow.crf.arithmetic import Arithmetic
from hamflow.crf.backend import NATIVE, Backend, Blocks, Plane
from hamflow.matching._arrays import words_of
from hamflow.window import Window

Unary = tuple[NDArray[np.uint8], float]
"""Costs of the labels of a plane (turned as the plane is), and the solver's units in each."""


@dataclass(frozen=True, eq=False)
class Edges:
    """The rounded costs of all edges, as `hamflow.crf.arithmetic` gives them.

    Attributes
    ----------
    right, down : (H, W, 3) array
        Of the edges from each pixel to the right and down.
    reach : int
        The distance up to which labels count one by one.
    """

    right: Volume
    down: Volume
    reach: int

    @cached_property
    def turned(self) -> Edges:
        """Those of the image with rows and columns exchanged."""
        return Edges(_turned(self.down), _turned(self.right), self.reach)

    def as_tuple(self) -> tuple[Volume, Volume, int]:
        """Return what a backend takes."""
        return self.right, self.down, self.reach


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
        self,
        plane: Plane,
        blocks: Blocks,
        u: Labels,
        v: Labels,
        edges: Edges,
        *,
        unary: Unary | None = None,
    ) -> None:
        """Give every other row, column or pixel of one plane its best labels, then the others."""


class BitsData:
    """``c = 2 · Hamming distance - m`` of descriptors of m bits, one word of 64 or two."""

    def __init__(
        self, bits0: Bits, bits1: Bits, window: Window, c_outside: float, backend: Backend = NATIVE
    ) -> None:
        self._backend = backend
        self._bits = (bits0, bits1)
        self._turned = (_turned(bits0), _turned(bits1))
        self._c_outside = c_outside
        self.window = window
        self.shape = (bits0.shape[0], bits0.shape[1])
        self._m = 64 * words_of(bits0)
        self.largest = max(float(self._m), abs(c_outside))

    def use(self, arithmetic: Arithmetic) -> None:
        """Compute messages and moves in this arithmetic from now on."""
        scale, outside = arithmetic.scale, arithmetic.down(self._c_outside)
        # Whole numbers in float32, too: the types only tell the two kernels apart.
        unit: Any = int if arithmetic.dtype is np.int16 else float
        self._cost: Any = (unit(2 * scale), unit(-self._m * scale), unit(outside))

    def message(self, to: Plane, lam: Volume, out: Volume) -> None:
        """Send ``min [c - lam]`` over the sender's labels to the other plane."""
        self._backend.message(self._bits, self.window, self._cost, to=to, lam=lam, out=out)

    def costs(self, u: Labels, v: Labels) -> Costs:
        """Return the unrounded costs of a labeling, H×W."""
        return self._backend.costs(self._bits, self.window, self._c_outside, u, v)

    def relabel(
        self,
        plane: Plane,
        blocks: Blocks,
        u: Labels,
        v: Labels,
        edges: Edges,
        *,
        unary: Unary | None = None,
    ) -> None:
        """Give every other row, column or pixel of one plane its best labels, then the others."""
        fields = self._bits if plane == "u" else self._turned
        move = partial(self._backend.relabel, fields, cost=self._cost)
        _relabel(move, self.window, plane, blocks, labels=(u, v), edges=edges, unary=unary)


class PhiData:
    """``c = -<phi0, phi1>``."""

    def __init__(
        self, phi0: Phi, phi1: Phi, window: Window, c_outside: float, backend: Backend = NATIVE
    ) -> None:
        self._backend = backend
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
        self._margin = float(np.ceil(terms * 2.0**-24 * self._product * self._scale) + 1)

    def message(self, to: Plane, lam: Volume, out: Volume) -> None:
        """Send ``min [c - lam]`` over the sender's labels, rounded down, to the other plane."""
        self._backend.message(self._scaled, self.window, self._outside, to=to, lam=lam, out=out)
        self._backend.lower(out, self._margin)

    def costs(self, u: Labels, v: Labels) -> Costs:
        """Return the unrounded costs of a labeling, H×W."""
        return self._backend.costs(self._phi, self.window, self._c_outside, u, v)

    def relabel(
        self,
        plane: Plane,
        blocks: Blocks,
        u: Labels,
        v: Labels,
        edges: Edges,
        *,
        unary: Unary | None = None,
    ) -> None:
        """Give every other row, column or pixel of one plane its best labels, then the others."""
        fields = self._phi if plane == "u" else self._turned
        cost = (self._scale, self._outside)
        move = partial(self._backend.relabel, fields, cost=cost)
        _relabel(move, self.window, plane, blocks, labels=(u, v), edges=edges, unary=unary)


class WithUnary:
    """A data term with costs of the labels of each plane besides: ``c(u, v) + a(u) + b(v)``.

    Parameters
    ----------
    data : DataTerm
        ``c``.
    unary : dict of (H, W, D) array of uint8
        ``a`` for the plane u and ``b`` for the plane v, in whole units of cost.
    """

    def __init__(
        self, data: DataTerm, unary: dict[Plane, Volume], backend: Backend = NATIVE
    ) -> None:
        self._backend = backend
        self._data = data
        self._unary = unary
        self.window = data.window
        self.shape = data.shape
        self.largest = data.largest + sum(float(a.max()) for a in unary.values())

    def use(self, arithmetic: Arithmetic) -> None:
        """Compute messages and moves in this arithmetic from now on."""
        self._data.use(arithmetic)
        self._unit = arithmetic.scale  # a power of two, 8 at least: exact

    def message(self, to: Plane, lam: Volume, out: Volume) -> None:
        """Send ``min [c + a + b - lam]`` over the sender's labels to the other plane."""
        sender: Plane = "v" if to == "u" else "u"
        # In place, and exactly undone: a copy of lam would be one more volume.
        self._backend.add(lam, self._unary[sender], -self._unit)
        self._data.message(to, lam, out)
        self._backend.add(lam, self._unary[sender], self._unit)
        self._backend.add(out, self._unary[to], self._unit)

    def costs(self, u: Labels, v: Labels) -> Costs:
        """Return the unrounded costs of a labeling, H×W."""
        found = self._data.costs(u, v)
        for values, labels in ((self._unary["u"], u), (self._unary["v"], v)):
            _native.add_label_costs(values, labels, found)
        return found

    def relabel(
        self,
        plane: Plane,
        blocks: Blocks,
        u: Labels,
        v: Labels,
        edges: Edges,
        *,
        unary: Unary | None = None,
    ) -> None:
        """Give every other row, column or pixel of one plane its best labels, then the others."""
        assert unary is None
        values = self._unary[plane] if plane == "u" else self._turned_unary
        self._data.relabel(plane, blocks, u, v, edges, unary=(values, self._unit))

    @cached_property
    def _turned_unary(self) -> NDArray[np.uint8]:
        """``b`` with rows and columns exchanged, made when the first move needs it."""
        return _turned(self._unary["v"])


_TURNED_BLOCKS: dict[Blocks, Blocks] = {"rows": "columns", "columns": "rows", "pixels": "pixels"}


def _turned(array: NDArray[Any]) -> NDArray[Any]:
    """Exchange rows and columns, as a copy that is contiguous."""
    result = empty((array.shape[1], array.shape[0], *array.shape[2:]), array.dtype.type)
    _turn(array, result)
    return result


def _turn(array: NDArray[Any], out: NDArray[Any]) -> None:
    """Exchange rows and columns."""
    _native.turn(*(a.reshape(*a.shape[:2], -1).view(np.uint8) for a in (array, out)))


def _relabel(
    move: Callable[..., None],
    window: Window,
    plane: Plane,
    blocks: Blocks,
    *,
    labels: tuple[Labels, Labels],
    edges: Edges,
    unary: Unary | None,
) -> None:
    """Move u; or v, by exchanging rows and columns of everything."""
    u, v = labels
    values, unit = (None, 0.0) if unary is None else unary
    if plane == "u":
        move(window, edges=edges.as_tuple(), blocks=blocks, u=u, v=v, unary=values, unit=unit)
        return
    exchanged = Window(window.v0, window.dv, window.u0, window.du)
    new = _turned(v)
    move(
        exchanged,
        edges=edges.turned.as_tuple(),
        blocks=_TURNED_BLOCKS[blocks],
        u=new,
        v=_turned(u),
        unary=values,
        unit=unit,
    )
    _turn(new, v)
