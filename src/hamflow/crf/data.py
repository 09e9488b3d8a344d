"""The data term c(i; u, v) of eqs. 1 and 3, from bits (Q) or floats (F of Table 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow import _native
from hamflow._room import empty
from hamflow._types import Bits, Costs, Labels, Phi, Volume
from hamflow.crf.arithmetic import Arithmetic
from hamflow.crf.backend import NATIVE, Backend, Blocks, Fields, LabelCosts, Plane, Unary
from hamflow.matching._arrays import words_of
from hamflow.matching.strips import strips
from hamflow.window import Window


@dataclass(frozen=True, eq=False)
class GivenCosts:
    """Costs of the labels of a plane, in an array (H, W, D) of uint8."""

    array: NDArray[np.uint8]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, labels."""
        height, width, labels = self.array.shape
        return height, width, labels

    def rows(self, first: int, last: int) -> NDArray[np.uint8]:
        """Return the costs of some rows."""
        return self.array[first:last]

    def turned(self) -> GivenCosts:
        """Return the same with rows and columns exchanged."""
        return GivenCosts(_turned(self.array))


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


class DataTerm:
    """Costs that are computed when they are needed; the 4D cost (eq. 1) is never stored.

    Parameters
    ----------
    fields : two arrays
        The descriptors of both images.
    window : Window
        The displacements.
    c_outside : float
        The cost of a target outside of the image.
    most : float
        No cost of a target inside is larger in absolute value.
    backend : Backend
        Where to compute.
    """

    _send_cost: Any  # of messages and moves, as the backend takes it
    _move_cost: Any

    def __init__(
        self, fields: Fields, window: Window, c_outside: float, most: float, backend: Backend
    ) -> None:
        self._backend = backend
        self._fields = self._sent = fields
        self._c_outside = c_outside
        self._unary: dict[Plane, LabelCosts] = {}
        self._margin = 0.0  # by which messages are lowered, beside being rounded down
        self.window = window
        self.shape: tuple[int, int] = fields[0].shape[:2]
        self.largest = max(most, abs(c_outside))

    def add_unary(self, unary: dict[Plane, LabelCosts]) -> None:
        """Add costs of the labels of each plane: c(u, v) + a(u) + b(v), in whole units of cost."""
        self._unary = unary
        self.largest += sum(_largest(costs) for costs in unary.values())

    def use(self, arithmetic: Arithmetic) -> None:
        """Compute messages and moves in this arithmetic from now on."""
        self._unit = arithmetic.scale  # a power of two, and 8 at least for unary costs: exact

    def message(self, to: Plane, lam: Volume, out: Volume) -> None:
        """Send ``min [c - lam]`` over the sender's labels, rounded down, to the other plane."""
        sender: Plane = "v" if to == "u" else "u"
        unary: Unary | None = None
        if self._unary:
            unary = self._unary[sender], self._unary[to], self._unit
        self._backend.message(
            self._sent,
            self.window,
            self._send_cost,
            to=to,
            lam=lam,
            out=out,
            margin=self._margin,
            unary=unary,
        )

    def costs(self, u: Labels, v: Labels) -> Costs:
        """Return the unrounded costs of a labeling, H×W."""
        found = self._backend.costs(self._fields, self.window, self._c_outside, u, v)
        for plane, costs in self._unary.items():
            labels = u if plane == "u" else v
            for first, last in _strips(costs):
                _native.add_label_costs(
                    costs.rows(first, last), labels[first:last], found[first:last]
                )
        return found

    def relabel(self, plane: Plane, blocks: Blocks, u: Labels, v: Labels, edges: Edges) -> None:
        """Give every other row, column or pixel of one plane its best labels, then the others."""
        move = partial(self._backend.relabel, cost=self._move_cost, unit=self._unit)
        if plane == "u":
            move(
                self._fields,
                self.window,
                edges=edges.as_tuple(),
                blocks=blocks,
                u=u,
                v=v,
                unary=_whole(self._unary.get("u")),
            )
            return
        # v is moved as u is, with rows and columns of everything exchanged.
        window, new = self.window, _turned(v)
        move(
            self._turned_fields,
            Window(window.v0, window.dv, window.u0, window.du),
            edges=edges.turned.as_tuple(),
            blocks=_TURNED_BLOCKS[blocks],
            u=new,
            v=_turned(u),
            unary=_whole(self._turned_unary),
        )
        _turn(new, v)

    @cached_property
    def _turned_fields(self) -> Fields:
        """The descriptors with rows and columns exchanged, made when the first move needs them."""
        return _turned(self._fields[0]), _turned(self._fields[1])

    @cached_property
    def _turned_unary(self) -> LabelCosts | None:
        """``b`` with rows and columns exchanged, if there is one."""
        return self._unary["v"].turned() if self._unary else None


class BitsData(DataTerm):
    """``c = 2 · Hamming distance - m`` of descriptors of m bits, one word of 64 or two."""

    def __init__(
        self, bits0: Bits, bits1: Bits, window: Window, c_outside: float, backend: Backend = NATIVE
    ) -> None:
        self._m = 64 * words_of(bits0)
        super().__init__((bits0, bits1), window, c_outside, float(self._m), backend)

    def use(self, arithmetic: Arithmetic) -> None:
        """Compute messages and moves in this arithmetic from now on."""
        super().use(arithmetic)
        costs = (2 * self._unit, -self._m * self._unit, arithmetic.down(self._c_outside))
        # Whole numbers in float32, too: the types only tell the two kernels apart.
        number: Any = int if arithmetic.dtype is np.int16 else float
        self._send_cost = self._move_cost = tuple(map(number, costs))


class PhiData(DataTerm):
    """``c = -<phi0, phi1>``."""

    def __init__(
        self, phi0: Phi, phi1: Phi, window: Window, c_outside: float, backend: Backend = NATIVE
    ) -> None:
        norms = [float(np.sqrt(np.einsum("yxm,yxm->yx", p, p).max())) for p in (phi0, phi1)]
        # A little more, for the rounding of the norms and of the scalar products themselves.
        self._product = 1.001 * norms[0] * norms[1]
        super().__init__((phi0, phi1), window, c_outside, self._product, backend)

    def use(self, arithmetic: Arithmetic) -> None:
        """Compute messages and moves in this arithmetic from now on."""
        super().use(arithmetic)
        phi0, phi1 = self._fields
        self._sent = (phi0 * np.float32(self._unit), phi1)  # exact: a power of two
        self._send_cost = float(arithmetic.down(self._c_outside))
        self._move_cost = (self._unit, self._send_cost)
        # A float32 scalar product of m terms is off by less than (m + 2) 2^-24 times the product
        # of the norms, and subtracting lam rounds by less than a unit.
        terms = phi0.shape[2] + 2
        self._margin = float(np.ceil(terms * 2.0**-24 * self._product * self._unit) + 1)


_AT_ONCE = 2**24  # costs of labels that are looked at, at a time


def _strips(costs: LabelCosts) -> Iterator[tuple[int, int]]:
    """Return first and last row of strips: costs may be made only when they are asked for."""
    height, width, labels = costs.shape
    return strips(height, _AT_ONCE // (width * labels))


def _largest(costs: LabelCosts) -> float:
    return max(float(costs.rows(first, last).max()) for first, last in _strips(costs))


def _whole(costs: LabelCosts | None) -> NDArray[np.uint8] | None:
    return None if costs is None else costs.rows(0, costs.shape[0])


_TURNED_BLOCKS: dict[Blocks, Blocks] = {"rows": "columns", "columns": "rows", "pixels": "pixels"}


def _turned(array: NDArray[Any]) -> NDArray[Any]:
    """Exchange rows and columns, as a copy that is contiguous."""
    result = empty((array.shape[1], array.shape[0], *array.shape[2:]), array.dtype.type)
    _turn(array, result)
    return result


def _turn(array: NDArray[Any], out: NDArray[Any]) -> None:
    """Exchange rows and columns."""
    _native.turn(*(a.reshape(*a.shape[:2], -1).view(np.uint8) for a in (array, out)))
