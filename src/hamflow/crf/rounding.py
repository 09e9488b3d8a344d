"""From the slacks of the dual to labels: argmin as in the paper, then moves that lower eq. 3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hamflow._types import Costs, Labels
from hamflow.crf.backend import NATIVE, Backend, Blocks, Plane
from hamflow.crf.config import Rounding
from hamflow.crf.data import DataTerm, Edges
from hamflow.crf.model import Weights


@dataclass
class Labeling:
    """Labels of both planes, what each pixel's data cost is, and the energy of the whole."""

    u: Labels
    v: Labels
    data: Costs
    energy: float


class Primal:
    """The best labeling so far, improved by every candidate that the dual comes up with.

    Energies are those of the unrounded model, in double precision.
    """

    def __init__(
        self,
        data: DataTerm,
        weights: tuple[Weights, Weights],
        rho: Costs,
        edges: dict[Plane, Edges],
        rounding: Rounding,
        *,
        backend: Backend = NATIVE,
    ) -> None:
        self._backend = backend
        self._data = data
        self._weights = weights
        self._rho = rho
        self._edges = edges
        self._rounding = rounding
        self.best: Labeling | None = None

    def offer(self, u: Labels, v: Labels) -> float:
        """Take labels as a candidate; return the energy of the best labeling."""
        candidate = self.labeling(u, v)
        if self._rounding == "icm":
            candidate = self._moved(candidate, ("pixels",))
        elif self._rounding in ("rows", "chains"):
            lines: tuple[Blocks, ...] = ("rows", "columns")
            candidate = self._moved(candidate, lines[: 1 + (self._rounding == "chains")])
            if self.best is not None:
                best = self.best
                candidate = self._fused(candidate, (best.u, best.v, best.data))
        if self.best is None or candidate.energy < self.best.energy:
            self.best = candidate
        return self.best.energy

    def labeling(self, u: Labels, v: Labels) -> Labeling:
        """Evaluate labels."""
        return self._evaluated(u, v, self._data.costs(u, v))

    def _evaluated(self, u: Labels, v: Labels, data: Costs) -> Labeling:
        energy = self._backend.energy(self._weights, self._rho, (u, v, data))
        return Labeling(u, v, data, energy)

    def _moved(self, before: Labeling, blocks: tuple[Blocks, ...]) -> Labeling:
        """Give rows and columns (or single pixels) the labels that are best for them in turn."""
        u, v = before.u.copy(), before.v.copy()
        window = self._data.window
        labels: dict[Plane, int] = {"u": window.du, "v": window.dv}
        for lines in blocks:
            for plane in (plane for plane, count in labels.items() if count > 1):
                self._data.relabel(plane, lines, u, v, self._edges[plane])
        after = self.labeling(u, v)
        # The moves know the edges only as rounded to the solver's units.
        return after if after.energy < before.energy else before

    def _fused(self, first: Labeling, other: tuple[Labels, Labels, Costs]) -> Labeling:
        """Take along each row, then along each column, the best of both."""
        u, v, data = first.u.copy(), first.v.copy(), first.data.copy()
        lines: Blocks
        for lines in ("rows", "columns"):
            self._backend.fuse(self._weights, self._rho, lines, (u, v, data), other)
        return min(self._evaluated(u, v, data), first, key=lambda labeling: labeling.energy)

    def spread(self) -> float:
        """Fuse the best labeling with itself moved by a pixel to each side; return its energy.

        Good labels thus take hold of their neighbors in both planes at once, which moves of one
        plane cannot do.
        """
        assert self.best is not None
        for shift, axis in ((1, 1), (-1, 1), (1, 0), (-1, 0)):
            u, v = (_moved_by(labels, shift, axis) for labels in (self.best.u, self.best.v))
            self.best = self._fused(self.best, (u, v, self._data.costs(u, v)))
        return self.best.energy


def _moved_by(labels: Labels, shift: int, axis: int) -> Labels:
    """Return the labels of the neighbors on one side; at the border its own."""
    moved = np.roll(labels, shift, axis)
    border = (slice(None),) * axis + (0 if shift > 0 else -1,)
    moved[border] = labels[border]
    return np.ascontiguousarray(moved)
