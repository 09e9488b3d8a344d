"""What a coarser scale found, as costs of labels of a finer one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hamflow import _native
from hamflow._room import empty
from hamflow._types import Field, Flow
from hamflow.window import Window


@dataclass(frozen=True, eq=False)
class Prior:
    """An expected flow: each component costs more the farther it is from what is expected.

    The cost of a component that is d pixels away is ``min(weight, slope · max(0, d - free))``,
    rounded down.

    Attributes
    ----------
    flow : (H, W, 2) array of float32
        What is expected, in pixels of the scale at which it is used.
    weight : (H, W) array of float32
        The largest cost, from 0 to 255: how much the descriptors must say against it.
    slope : float
        Costs per pixel.
    free : float
        Deviations up to this number of pixels cost nothing.
    """

    flow: Flow
    weight: Field
    slope: float = 2.0
    free: float = 1.5

    def unary(self, window: Window) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return the costs of the labels u and v of a window, as `hamflow.crf.solve` takes them."""
        u, v = self.costs(window)
        return u.rows(0, u.shape[0]), v.rows(0, v.shape[0])

    def costs(self, window: Window) -> tuple[ExpectedCosts, ExpectedCosts]:
        """Return the same, to be computed row by row when they are needed."""
        weight = np.ascontiguousarray(self.weight, np.float32)
        u, v = (np.ascontiguousarray(self.flow[..., k], np.float32) for k in (0, 1))
        return (
            ExpectedCosts(u, weight, self.slope, self.free, window.u0, window.du),
            ExpectedCosts(v, weight, self.slope, self.free, window.v0, window.dv),
        )


@dataclass(frozen=True, eq=False)
class ExpectedCosts:
    """The costs of the labels of one component, which are computed when they are needed.

    Attributes
    ----------
    expected, weight : (H, W) array of float32
        The component, and the largest cost.
    slope, free : float
        As for `Prior`.
    first, count : int
        The displacement of the first label, and how many labels there are.
    """

    expected: Field
    weight: Field
    slope: float
    free: float
    first: int
    count: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, labels."""
        height, width = self.expected.shape
        return height, width, self.count

    def rows(self, first: int, last: int) -> NDArray[np.uint8]:
        """Return the costs of the rows from `first` to before `last`."""
        expected, weight = self.expected[first:last], self.weight[first:last]
        costs = empty((*expected.shape, self.count), np.uint8)
        _native.expected_costs(expected, weight, self.slope, self.free, self.first, costs)
        return costs

    def turned(self) -> ExpectedCosts:
        """Return the same with rows and columns exchanged."""
        expected, weight = (np.ascontiguousarray(f.T) for f in (self.expected, self.weight))
        return replace(self, expected=expected, weight=weight)
