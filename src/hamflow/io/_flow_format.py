"""What a flow format consists of, and how formats of floating-point numbers mark unknown flow."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_flow
from hamflow.errors import InputError
from hamflow.io._reading import MAX_PIXELS

UNKNOWN = 1e10
"""How formats without NaN mark an unknown component."""
_UNKNOWN_ABOVE = 1e9
_STRIP = 2**20  # pixels that are checked at a time


class FlowFormat(NamedTuple):
    """The functions of a flow format.

    Attributes
    ----------
    read : callable
        Takes a path; returns the flow, (H, W, 2) float32, NaN where it is unknown.
    write : callable
        Takes a path and a flow.
    require : callable, optional
        Takes a path; raises a FileError if a package that the format needs is not installed.
    """

    read: Callable[[str | os.PathLike[str]], NDArray[np.float32]]
    write: Callable[[str | os.PathLike[str], ArrayLike], None]
    require: Callable[[str | os.PathLike[str]], object] | None = None


def known_vectors(raw: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Return the content of a file as float32, NaN where a component is NaN or beyond 1e9.

    `raw` is (H, W, 2) of any floating-point type and byte order, and may be changed in place.
    """
    # A float64 is compared before it is rounded. NaN of all kinds and huge numbers are expected.
    with np.errstate(over="ignore", invalid="ignore"):
        values = raw.astype(np.float64 if raw.dtype.itemsize == 8 else np.float32, copy=False)
        # Written so that NaN counts as unknown, too.
        known = (np.abs(values) <= _UNKNOWN_ABOVE).all(axis=2)
        flow = values.astype(np.float32, order="C", copy=False)
    flow[~known] = np.nan
    return flow


def vectors_to_write(flow: ArrayLike, suffix: str, unknown: float) -> NDArray[np.float32]:
    """Return a copy of a flow as little-endian float32, with `unknown` in place of NaN.

    Raises an InputError if the file (called by its suffix) could not be read back.
    """
    data = as_flow(flow)
    if data.shape[0] * data.shape[1] > MAX_PIXELS:
        raise InputError(f"flow has more than the {MAX_PIXELS} pixels that Hamflow reads.")
    found = np.empty(data.shape, "<f4")
    step = max(1, _STRIP // max(1, data.shape[1]))
    for top in range(0, data.shape[0], step):  # a copy of the whole is enough in memory
        part = data[top : top + step]
        missing = np.isnan(part).any(axis=2)
        if (np.abs(part[~missing]) > _UNKNOWN_ABOVE).any():
            raise InputError(
                f"flow has infinite values or values beyond 1e9, which a {suffix} file cannot "
                "hold; mark unknown pixels with NaN."
            )
        found[top : top + step] = part
        found[top : top + step][missing] = unknown
    return found
