"""Algorithm 1 of the paper: block-coordinate ascent on the decomposed dual (eqs. 6 to 9).

Erratum: the messages between the planes are printed as ``λ += min [...]`` (eqs. 8 and 9). They have
to be assignments, ``λ := min [...]``; with ``+=`` the bound falls from the second iteration on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from hamflow._types import Labels, Volume
from hamflow.crf.arithmetic import Arithmetic, reach
from hamflow.crf.backend import NATIVE, Backend, Plane
from hamflow.crf.config import CrfConfig
from hamflow.crf.data import DataTerm
from hamflow.crf.model import Weights

Axis = Literal["horizontal", "vertical"]
BoundProgress = Callable[[float], object]


class PlaneDual:
    """The dual variables of one plane and its in-plane solver (DMM, eqs. 6b, 6c and 7).

    After every pass the chains of both directions have the minimum 0, but for what `slack` holds:
    the bound is the sum of its minima. The plane that `sends` the first message begins
    with a λ of 0.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        count: int,
        config: CrfConfig,
        arithmetic: Arithmetic,
        edges: dict[Axis, Volume],
        *,
        sends: bool = False,
        backend: Backend = NATIVE,
    ) -> None:
        volume = (*shape, count)
        self._backend = backend
        # A plane of a single label may never be solved; all others are filled by what comes first.
        new = backend.zeros if count == 1 else backend.empty
        self.lam = (backend.zeros if sends else new)(volume, arithmetic.dtype)
        self.slack = new(volume, arithmetic.dtype)
        # Of the axis of the last pass: see native/chains.inl for why one is enough.
        self._hold = backend.empty(volume, arithmetic.dtype)
        self._arithmetic = arithmetic
        self.reach = reach(config, count)
        self.edges = edges
        self._shares = {
            "horizontal": arithmetic.shares(config, shape[1]),
            "vertical": arithmetic.shares(config, shape[0]),
        }
        self._passes = 0

    def solve(self, start: Axis, inner: int, told: BoundProgress | None = None) -> float:
        """Run 2 · `inner` - 1 passes (eq. 7a), then ``lam -= slack`` (eq. 7b); return the bound."""
        axis = start
        bound = 0.0
        for step in range(2 * inner - 1):
            bound = self.run_pass(axis, final=step == 2 * inner - 2)
            if told is not None:
                told(bound)
            axis = other(axis)
        return bound

    def run_pass(self, axis: Axis, *, final: bool) -> float:
        """Run one pass along all rows or columns; return the bound."""
        # The sweep turns round after every pair of passes.
        units = self._backend.chain_pass(
            self.lam,
            self._hold,
            self.slack if final else None,
            self.edges[axis],
            self._shares[axis],
            vertical=axis == "vertical",
            reverse=self._passes // 2 % 2 == 1,
            reach=self.reach,
            fresh=self._passes == 0,
        )
        self._passes += 1
        return float(units / self._arithmetic.scale)

    def labels(self, first: int) -> Labels:
        """Return the labels of least slack; ties go to the smallest displacement."""
        return self._backend.best_labels(self.slack, first)


def other(axis: Axis) -> Axis:
    """Return the other one of the two directions."""
    return "vertical" if axis == "horizontal" else "horizontal"


class Dual:
    """Both planes, or one where the window has only one row or column of displacements."""

    def __init__(
        self,
        data: DataTerm,
        config: CrfConfig,
        arithmetic: Arithmetic,
        weights: tuple[Weights, Weights],
        initial_lam: Volume | None = None,
        *,
        backend: Backend = NATIVE,
    ) -> None:
        window = data.window
        self._data = data
        self._config = config
        right, down = (arithmetic.edges(w, config) for w in weights)
        edges: dict[Axis, Volume] = {"horizontal": right, "vertical": down}
        new = partial(PlaneDual, data.shape, backend=backend)
        self.planes: dict[Plane, PlaneDual] = {
            "u": new(window.du, config, arithmetic, edges),
            "v": new(window.dv, config, arithmetic, edges, sends=True),
        }
        self._start: Axis = "horizontal"
        # A plane that is never solved has to keep its zeros: nothing would account for others.
        if initial_lam is not None and min(window.du, window.dv) > 1:
            backend.copy_from(self.planes["v"].lam, initial_lam)

    def iterate(self, told: BoundProgress | None = None) -> float:
        """Run one outer iteration of Algorithm 1; return the bound Ψ (eq. 6a).

        `told` gets to know the bound after each pass along all rows or columns.
        """
        window = self._data.window
        inner, start = self._config.inner, self._start
        self._start = other(start)
        bound = 0.0
        # The plane of a single label has nothing to solve and nothing to say.
        if window.du > 1 or window.dv == 1:
            self._data.message("u", self.planes["v"].lam, self.planes["u"].lam)
            bound = self.planes["u"].solve(start, inner, told)
        if window.dv > 1:
            self._data.message("v", self.planes["u"].lam, self.planes["v"].lam)
            bound = self.planes["v"].solve(other(start), inner, told)
        return bound
