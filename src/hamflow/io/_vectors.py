"""What the flow files of floating-point numbers share: which vectors are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_flow
from hamflow.errors import InputError
from hamflow.io._reading import MAX_PIXELS

UNKNOWN = 1e10
"""How formats without NaN mark an unknown component."""
_UNKNOWN_ABOVE = 1e9


def known_vectors(raw: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Return what a file holds as float32, with NaN where the flow is unknown.

    Parameters
    ----------
    raw : (H, W, 2) float16, float32 or float64
        In any byte order; may be changed in place.

    Returns
    -------
    flow : (H, W, 2) float32
        Both components are NaN where either is NaN or beyond 1e9.
    """
    # A float64 is judged before it is rounded. NaN of all kinds and huge numbers are expected.
    with np.errstate(over="ignore", invalid="ignore"):
        values = raw.astype(np.float64 if raw.dtype.itemsize == 8 else np.float32, copy=False)
        # Written so that NaN counts as unknown, too.
        known = (np.abs(values) <= _UNKNOWN_ABOVE).all(axis=2)
        flow = values.astype(np.float32, order="C", copy=False)
    flow[~known] = np.nan
    return flow


def vectors_to_write(flow: ArrayLike, suffix: str, unknown: float) -> NDArray[np.float32]:
    """Return a copy of a flow as little-endian float32, ready to be written.

    Parameters
    ----------
    flow : (H, W, 2) array_like
        NaN in either component marks an unknown pixel.
    suffix : str
        How the error message calls the kind of file.
    unknown : float
        What to put into both components of unknown pixels.

    Raises
    ------
    InputError
        If the flow has another shape, too many pixels to be read back, or values that would be
        read back as unknown.
    """
    data = as_flow(flow)
    if data.shape[0] * data.shape[1] > MAX_PIXELS:
        raise InputError(f"flow has more than the {MAX_PIXELS} pixels that Hamflow reads.")
    missing = np.isnan(data).any(axis=2)
    if (np.abs(data[~missing]) > _UNKNOWN_ABOVE).any():
        raise InputError(
            f"flow has infinite values or values beyond 1e9, which a {suffix} file cannot hold; "
            "mark unknown pixels with NaN."
        )
    data = data.astype("<f4", order="C")
    data[missing] = unknown
    return data
