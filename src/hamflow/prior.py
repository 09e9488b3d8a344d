"""What a coarser scale found, as costs of labels of a finer one."""

from __future__ import annotations

from dataclasses import dataclass

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
        return (
            self._costs(self.flow[..., 0], window.u0, window.du),
            self._costs(self.flow[..., 1], window.v0, window.dv),
        )

    def _costs(self, expected: Field, first: int, count: int) -> NDArray[np.uint8]:
        costs = empty((*expected.shape, count), np.uint8)
        weight = np.ascontiguousarray(self.weight, np.float32)
        _native.expected_costs(
            np.ascontiguousarray(expected, np.float32), weight, self.slope, self.free, first, costs
        )
        return costs
