"""Rectangles of pixels: parts of an image, and how to cover it with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Box(NamedTuple):
    """A rectangle of pixels."""

    x: int
    y: int
    width: int
    height: int

    @classmethod
    def of_shape(cls, shape: Sequence[int]) -> Box:
        """Return the rectangle of a whole image, given its height and width."""
        return cls(0, 0, shape[1], shape[0])

    @property
    def slices(self) -> tuple[slice, slice]:
        """Rows and columns."""
        return slice(self.y, self.y + self.height), slice(self.x, self.x + self.width)

    @property
    def pixels(self) -> int:
        """How many there are."""
        return self.width * self.height

    def contains(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which of some points (N, 2) lie on its pixels."""
        low = np.array([self.x, self.y]) - 0.5
        high = low + np.array([self.width, self.height])
        inside: NDArray[np.bool_] = ((points >= low) & (points <= high)).all(axis=1)
        return inside

    def inside(self, outer: Box) -> Box:
        """Return the same rectangle relative to another one."""
        return self._replace(x=self.x - outer.x, y=self.y - outer.y)

    def grown(
        self, low: Sequence[int], high: Sequence[int], grid: int, shape: Sequence[int]
    ) -> Box:
        """Return the rectangle with more around it.

        Parameters
        ----------
        low, high : (int, int)
            By how much it begins earlier, and ends later, in x and y.
        grid : int
            It begins and ends at multiples of this number, or at the end of the image.
        shape : (int, int)
            Height and width of the image, which it does not leave.
        """
        sides: list[tuple[int, int]] = []
        for first, size, before, after, end in zip(
            self[:2], self[2:], low, high, (shape[1], shape[0]), strict=True
        ):
            start = max(0, (first - before) // grid * grid)
            stop = min(end, -(-(first + size + after) // grid) * grid)
            sides.append((start, stop - start))
        return Box(sides[0][0], sides[1][0], sides[0][1], sides[1][1])

    def reduced(self, factor: int) -> Box:
        """Return the pixels of a reduced image that it covers; it begins at one of them."""
        right, bottom = -(-(self.x + self.width) // factor), -(-(self.y + self.height) // factor)
        x, y = self.x // factor, self.y // factor
        return Box(x, y, right - x, bottom - y)

    def enlarged(self, factor: int, shape: Sequence[int]) -> Box:
        """Return the pixels of a larger image that it stands for, inside of its shape."""
        x, y = factor * self.x, factor * self.y
        return Box(
            x,
            y,
            min(factor * self.width, shape[1] - x),
            min(factor * self.height, shape[0] - y),
        )

    def halves(self, grid: int) -> tuple[Box, ...]:
        """Return two rectangles, cut at a multiple of `grid`; itself if it is too small."""
        if self.width >= self.height:
            cut = (self.x + self.width // 2) // grid * grid - self.x
            if 0 < cut < self.width:
                left = self._replace(width=cut)
                return left, self._replace(x=self.x + cut, width=self.width - cut)
        cut = (self.y + self.height // 2) // grid * grid - self.y
        if 0 < cut < self.height:
            upper = self._replace(height=cut)
            return upper, self._replace(y=self.y + cut, height=self.height - cut)
        return (self,)


def cover(shape: Sequence[int], most: int, margin: int, grid: int) -> Iterator[Box]:
    """Cover an image with rectangles that have at most so many pixels, with a margin around.

    They begin at multiples of `grid`. Of all ways to divide rows and columns evenly, the one with
    the least work is taken: fewest pixels in rectangles with their margins.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the image.
    most : int
        Pixels of a rectangle with its margin; one cell of the grid is covered in any case.
    margin : int
        Pixels around each rectangle, except beyond the image.
    grid : int
        Sides are multiples of it, but for the last rectangles.
    """
    cells = [-(-side // grid) for side in shape]
    best = (math.inf, cells[0], cells[1])
    for rows in range(1, cells[0] + 1):
        height = min(-(-cells[0] // rows) * grid + (2 * margin if rows > 1 else 0), shape[0])
        # As few columns as possible: more of them are more work.
        widest = most // height
        side = (widest - 2 * margin) // grid if widest < shape[1] else cells[1]
        if side < 1:
            continue
        columns = -(-cells[1] // side)
        width = min(-(-cells[1] // columns) * grid + (2 * margin if columns > 1 else 0), shape[1])
        best = min(best, (float(rows * height * columns * width), rows, columns))
        if columns == 1:
            break
    _, rows, columns = best
    down, across = (
        [round(k * n / parts) * grid for k in range(parts + 1)]
        for n, parts in zip(cells, (rows, columns), strict=True)
    )
    for y, below in pairwise(down):
        for x, right in pairwise(across):
            yield Box(x, y, min(right, shape[1]) - x, min(below, shape[0]) - y)
