"""The pairwise terms of eq. 3 in double precision: edge weights and ρ.

The shape of ρ is a reconstruction: see `rho`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import unit_intensities
from hamflow._types import Costs
from hamflow.crf.config import CrfConfig
from hamflow.errors import InputError

Weights = NDArray[np.float32]


def edge_weights(image: ArrayLike, alpha: float) -> tuple[Weights, Weights]:
    """Return the contrast-sensitive weights w_ij (eq. 3) of the edges right and down, each H×W.

    ``w_ij = exp(-alpha/3 Σ_c |I_ic - I_jc|)`` for RGB, and the same mean over channels for others.
    The last column (row) has no edge to the right (down); its weight is 0.

    Parameters
    ----------
    image : (H, W) or (H, W, 3) array
        uint8, uint16, or floating point from 0 to 1.
    alpha : float
        How fast the weight falls with the contrast.
    """
    if not alpha >= 0:
        raise InputError(f"alpha must not be negative, but is {alpha}.")
    pixels = unit_intensities(image)
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    right, down = (np.zeros(pixels.shape[:2], np.float32) for _ in range(2))
    for weights, axis in ((right[:, :-1], 1), (down[:-1], 0)):
        contrasts = np.abs(np.diff(pixels, axis=axis))
        # numpy is slow at a mean over a short axis.
        contrast = sum(np.moveaxis(contrasts, 2, 0)) / np.float32(pixels.shape[2])
        weights[:] = np.exp(-alpha * contrast.astype(np.float64))
    return right, down


def rho(config: CrfConfig, count: int) -> Costs:
    """Return ρ(0), ρ(1), ..., ρ(count - 1), the robust penalty of eq. 3.

    Notes
    -----
    The paper shows ρ only as a drawing (Figure 2a) and gives its two parameters, τ1 and τ2; the
    formula is a reconstruction. With the default δ = 2 it has two levels, ``ρ(0) = 0``,
    ``ρ(±1) = τ1`` and τ2 beyond, which is the form with these two parameters in solvers that the
    authors' group published. A larger δ puts a linear slope between τ1 and τ2. The other obvious
    reading, ``min(τ1 |t|, τ2)``, hardly regularizes costs of this range.
    """
    t = np.arange(count, dtype=np.float64)
    slope = (config.tau2 - config.tau1) / (config.delta - 1)
    values = np.minimum(config.tau1 + slope * (t - 1), config.tau2)
    values[:1] = 0
    return values
