"""Strips of rows: kernels match some rows of an image with those of the other that they reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from hamflow.window import Window

Fields = tuple[NDArray[Any], NDArray[Any]]


def strips(height: int, rows: int) -> Iterator[tuple[int, int]]:
    """Return the first row of strips of so many rows, or one at least, and the one after the last.

    Their number of rows is even if there are several, because kernels take pairs of rows.
    """
    rows = max(1, rows // 2 * 2)
    for first in range(0, height, rows):
        yield first, min(first + rows, height)


def cut_strip(fields: Fields, window: Window, first: int, last: int) -> tuple[Fields, Window]:
    """Return rows of the first field, those of the second that a window reaches, and that window.

    What is outside of the part of the second field is outside of the whole one as well.
    """
    height = fields[1].shape[0]
    top = min(max(first + window.v0, 0), height - 1)
    bottom = min(max(last + window.v0 + window.dv - 1, top + 1), height)
    moved = Window(window.u0, window.du, window.v0 + first - top, window.dv)
    return (fields[0][first:last], fields[1][top:bottom]), moved
