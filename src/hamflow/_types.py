"""The array types and callbacks that several packages speak of: one meaning per word."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

ImageLike = ArrayLike | str | os.PathLike[str]
"""What users hand in as an image: an array, a PIL image or the path of a file."""
Image = NDArray[np.float32]
"""(H, W, C) from 0 to 1."""
Pixels = NDArray[Any]
"""(H, W) or (H, W, 3): a frame as it was read, uint8 or uint16, or float from 0 to 1."""
Flow = NDArray[np.float32]
"""(H, W, 2): u to the right, v down, in pixels."""
AnyFlow = NDArray[np.floating[Any]]
"""A flow that users hand in, which may be float64."""
Field = NDArray[np.float32]
"""(H, W): one number per pixel."""
Mask = NDArray[np.bool_]
"""(H, W)."""
Bits = NDArray[np.uint64]
"""(H, W): the 64 bits of each pixel's descriptor; or (H, W, 2), two words of 64 bits."""
Phi = NDArray[np.float32]
"""(H, W, m): the components of each pixel's descriptor."""
Labels = NDArray[np.int16]
"""(H, W): label k of u stands for the displacement k + u0 of the window, that of v for k + v0."""
Volume = NDArray[Any]
"""(H, W, D): a number for each label of each pixel, int16 or float32."""

Costs = NDArray[np.float64]
"""(H, W): unrounded costs of a labeling."""

StageProgress = Callable[[str, float], object]
"""Told the name of the stage that begins, and which share of the work (0 to 1) is done.

At the end it is told "done" and 1.
"""
CountProgress = Callable[[str, int, int], object]
"""Told the name of a piece of work, how many pieces are done, and how many there are."""


class FrameLike(Protocol):
    """What the stages behind the search see of a frame; `hamflow.Frame` is one."""

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""

    def at(self, scale: int) -> Image:
        """Return the image reduced by a whole factor."""

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returned when it was first called for this key."""
