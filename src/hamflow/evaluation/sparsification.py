"""Sparsification: how well a confidence predicts the errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import InputError

_POINTS = 101


@dataclass(frozen=True, eq=False)
class Sparsification:
    """Mean errors of the remaining pixels when the least confident ones are removed.

    Attributes
    ----------
    removed : (N,) array
        The shares of removed pixels, starting at 0.
    error : (N,) array
        Mean error of the remaining pixels, relative to that of all pixels.
    oracle : (N,) array
        The same if the pixels with the largest errors are removed first.
    ause : float
        Area between the two curves: 0 for an ideal confidence, about the mean of 1 - `oracle` for a
        random one.
    """

    removed: NDArray[np.float64]
    error: NDArray[np.float64]
    oracle: NDArray[np.float64]
    ause: float


def sparsification(error: ArrayLike, confidence: ArrayLike) -> Sparsification:
    """Return the sparsification curve of a confidence, and the area under its error (AUSE).

    Parameters
    ----------
    error : array_like
        Endpoint errors; NaN is ignored.
    confidence : array_like
        Values of the same shape; higher means that a smaller error is expected.

    References
    ----------
    E. Ilg, O. Cicek, S. Galesso, A. Klein, O. Makansi, F. Hutter, T. Brox: Uncertainty estimates
    and multi-hypotheses networks for optical flow. ECCV 2018.
    """
    errors = np.asarray(error, np.float64).ravel()
    certain = np.asarray(confidence, np.float64).ravel()
    if errors.shape != certain.shape:
        raise InputError("error and confidence must have the same shape.")
    known = ~np.isnan(errors)
    errors, certain = errors[known], certain[known]
    if not errors.size:
        raise InputError("error is NaN everywhere; give at least one known error.")
    removed = np.linspace(0, 1, _POINTS)[:-1]
    mean = errors.mean()
    if mean == 0:
        flat = np.zeros(len(removed))
        return Sparsification(removed, flat, flat, 0.0)
    by_confidence = _remaining(errors[np.argsort(-certain, kind="stable")], removed) / mean
    oracle = _remaining(np.sort(errors), removed) / mean
    return Sparsification(removed, by_confidence, oracle, float((by_confidence - oracle).mean()))


def _remaining(errors: NDArray[Any], removed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean errors of what remains when errors are removed from the end."""
    count = np.maximum(1, np.rint((1 - removed) * len(errors))).astype(np.intp)
    means: NDArray[np.float64] = np.cumsum(errors)[count - 1] / count
    return means
