"""The units in which the solver computes: int16 fixed point, or whole numbers held in float32.

Both are exact: with bits, the bound never falls, not even by one unit. It is also a bound of the
unrounded energy (eq. 3), because everything is rounded down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._types import Volume
from hamflow.crf.config import CrfConfig
from hamflow.crf.model import Weights
from hamflow.errors import InputError

_RANGES: dict[type[np.generic], float] = {np.int16: 32767.0, np.float32: 2.0**22}
_FINEST: dict[type[np.generic], int] = {np.int16: 6, np.float32: 14}
# Coarser than an eighth of a bit, int16 is no longer a good approximation of the costs.
_COARSEST_INT16 = 3


@dataclass(frozen=True)
class Arithmetic:
    """A type, and how many of its units make a unit of cost (a power of two)."""

    dtype: type[Any]
    scale: float

    @classmethod
    def choose(cls, config: CrfConfig, largest: float, *, floats: bool) -> Arithmetic:
        """Return the finest scale in which nothing can overflow.

        Parameters
        ----------
        config : CrfConfig
            Gives τ2 and the arithmetic that the user wants.
        largest : float
            No cost is larger than this in absolute value.
        floats : bool
            Whether the descriptors are floats, which rules out int16.

        Notes
        -----
        With costs within ±C no intermediate value leaves ±(2 C + 6 τ2): native/chains.inl has the
        derivation. Beyond 2^22 a float32 message could round.
        """
        extent = 2 * largest + 6 * config.tau2
        wanted = config.arithmetic
        if wanted == "int16" and floats:
            raise InputError("arithmetic 'int16' needs bits; float descriptors need 'float32'.")
        if wanted != "float32" and not floats:
            exponent = _finest_exponent(np.int16, extent)
            if exponent >= _COARSEST_INT16:
                return cls(np.int16, 2.0**exponent)
            if wanted == "int16":
                raise InputError(
                    f"arithmetic 'int16' cannot hold costs up to {largest:g} with tau2 = "
                    f"{config.tau2:g}; use 'auto' or 'float32', or smaller values."
                )
        return cls(np.float32, 2.0 ** _finest_exponent(np.float32, extent))

    def down(self, cost: float) -> int:
        """Return a cost in units, rounded down."""
        return math.floor(cost * self.scale)

    def edges(self, weights: Weights, config: CrfConfig) -> Volume:
        """Return ``w ρ`` (eq. 3) for each edge, H×W×3: its first step, its slope, and its cap."""
        slope = (config.tau2 - config.tau1) / (config.delta - 1)
        edges = np.empty((*weights.shape, 3), self.dtype)
        for k, factor in enumerate((config.tau1, slope, config.tau2)):
            # In double precision; one component at a time, because numpy is slow at short axes.
            scaled = np.multiply(weights, factor * self.scale, dtype=np.float64)
            edges[..., k] = np.floor(scaled, out=scaled)
        return edges

    def shares(self, config: CrfConfig, length: int) -> NDArray[Any] | None:
        """Return the share that each node of a chain keeps; None for the hierarchical minorant."""
        if config.minorant == "hierarchical":
            return None
        shares: NDArray[np.float64] = np.maximum(config.kappa, 1.0 / np.arange(length, 1, -1))
        if self.dtype is np.int16:
            return np.minimum(shares * 65536, 65535).astype(np.uint16)
        return shares.astype(np.float32)


def reach(config: CrfConfig, labels: int) -> int:
    """Return the distance, a power of two, up to which ρ is evaluated label by label."""
    furthest = min(math.ceil(config.delta) - 1, labels)
    return int(2 ** math.ceil(math.log2(max(1, furthest))))


def _finest_exponent(dtype: type[np.generic], extent: float) -> int:
    if extent == 0:
        return _FINEST[dtype]
    return min(_FINEST[dtype], math.floor(math.log2(_RANGES[dtype] / extent)))
