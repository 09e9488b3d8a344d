"""Frames and true flow from layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hamflow import _native
from hamflow.datasets.synthetic.geometry import Box, Floats
from hamflow.datasets.synthetic.layer import Lanes

_OPEN = 1 / 512  # layers behind a pixel with less light left than this are skipped


class Haze(NamedTuple):
    """Fog, which hides more of what is farther away."""

    density: float
    near: float  # share of the density that is before the nearest things
    color: NDArray[np.float32]  # in 0..255

    def share(self, depth: Any) -> Any:
        """Return the share of fog before something at a depth from 0 to 1."""
        return np.minimum(0.95, self.density * (self.near + (1 - self.near) * depth))

    def before(self, depth: Floats | float) -> tuple[Floats, Floats, Floats]:
        """Return what `_native.paint` needs to know of the fog before things at some depths."""
        share = np.atleast_1d(self.share(depth))
        return (1 - share).astype(np.float32), (share * 256).astype(np.float32), self.color


class Visible(Protocol):
    """What can be drawn."""

    @property
    def depth(self) -> float:
        """1 for the farthest, 0 for the nearest."""

    @property
    def solid(self) -> bool:
        """Whether it covers all of the frame."""

    def box(self, frame: int, time: float = 0.0) -> Box:
        """Return where in a frame it may be seen."""

    def look(self, frame: int, x: Floats, y: Floats, time: float = 0.0) -> Lanes:
        """Return color and coverage at some places of a frame.

        For motion blur, the frame is rendered `time` later, in units of the time between frames.
        """

    def depths(self, frame: int, x: Floats, y: Floats) -> Floats | float:
        """Return the depth from 0 to 1 at some places of a frame, or one number for all."""


class Surface(Visible, Protocol):
    """What scenes are made of: a flat `Layer`, or a `Patch` or `Mesh` in space."""

    def covers(self, frame: int, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Return where it covers more than half of a place."""

    def follow(
        self, frame: int, other: int, x: Floats, y: Floats
    ) -> tuple[Floats, Floats, NDArray[np.bool_] | bool]:
        """Return where places of one frame are in another, and whether they are seen there.

        Not seen is what is turned away from the camera, or hidden by another part of the same
        surface.
        """

    def displacement(self, shape: tuple[int, int]) -> float:
        """Return how far a pixel of the first frame that shows it moves at most."""

    def softened(self, sigma: float) -> Surface:
        """Return it out of focus, by a standard deviation in pixels."""

    def shadow(self, offset: tuple[float, float], sigma: float, strength: float) -> Surface | None:
        """Return the soft shadow that it casts on what is behind it, if it casts one."""


class Canvas:
    """The pixel coordinates of frames of one size."""

    def __init__(self, height: int, width: int) -> None:
        self.height, self.width = height, width
        y, x = np.indices((height, width), np.float32)
        self.x, self.y = x.ravel(), y.ravel()

    def within(
        self, surface: Visible, frame: int, time: float, image: Floats, least: float
    ) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Return which pixels that may show a surface are above a limit in an (H, W) image.

        That is, their numbers and coordinates.
        """
        window = (0, 0, self.width, self.height)
        if not surface.solid:
            left, top, right, bottom = surface.box(frame, time)
            left, right = _span(left, right, self.width)
            top, bottom = _span(top, bottom, self.height)
            window = left, top, right, bottom
        size = (window[2] - window[0]) * (window[3] - window[1])
        index = np.empty(size, np.int64)
        x, y = np.empty(size, np.float32), np.empty(size, np.float32)
        found = _native.pixels_above(image, window, least, index, x, y)
        return index[:found], x[:found], y[:found]


def _span(first: float, last: float, size: int) -> tuple[int, int]:
    """Return the first pixel in an interval, and the first one behind it."""
    start = min(max(math.ceil(first), 0), size)
    return start, max(start, min(max(math.floor(last) + 1, 0), size))


def composite(
    canvas: Canvas,
    layers: Sequence[Visible],
    frame: int,
    haze: Haze | None = None,
    time: float = 0.0,
) -> Floats:
    """Render a frame: (H, W, 3) float32 from 0 to 255.

    `layers` are sorted from back to front, `haze` is the fog, and `time` is that of
    `Visible.look`. Layers are drawn from front to back, and pixels that are fully covered already
    are skipped.
    """
    light = np.ones((canvas.height, canvas.width), np.float32)
    total = np.zeros((canvas.height, canvas.width, 3), np.float32)
    for layer in reversed(layers):
        index, x, y = canvas.within(layer, frame, time, light, _OPEN)
        if index.size:
            fog = None if haze is None else haze.before(layer.depths(frame, x, y))
            _native.paint(index, layer.look(frame, x, y, time), fog, light, total)
    total *= np.float32(1 / 256)
    return total


def owners(canvas: Canvas, layers: Sequence[Surface], frame: int) -> NDArray[np.int16]:
    """Return which layer each pixel of a frame belongs to: the nearest that covers half of it."""
    owner = np.zeros(canvas.height * canvas.width, np.int16)
    free = np.ones((canvas.height, canvas.width), np.float32)
    for number in range(len(layers) - 1, 0, -1):
        index, x, y = canvas.within(layers[number], frame, 0.0, free, 0.5)
        mine = index[layers[number].covers(frame, x, y)]
        owner[mine] = number
        free.ravel()[mine] = 0
    return owner.reshape(canvas.height, canvas.width)


def truth(
    canvas: Canvas, layers: Sequence[Surface], frame: int, other: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the exact flow from a frame to another one, and which pixels are occluded there.

    The flow is known also for occluded pixels, which are outside of the other frame or covered.
    """
    height, width = canvas.height, canvas.width
    owner = owners(canvas, layers, frame).ravel()
    target_x = np.empty(height * width, np.float32)
    target_y = np.empty(height * width, np.float32)
    occluded = np.empty(height * width, np.bool_)
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(len(layers) + 1))
    for number, layer in enumerate(layers):
        mine = order[ends[number] : ends[number + 1]]
        if mine.size:
            x, y, seen = layer.follow(frame, other, canvas.x.take(mine), canvas.y.take(mine))
            target_x[mine], target_y[mine], occluded[mine] = x, y, np.logical_not(seen)

    occluded |= (target_x < 0) | (target_x > width - 1) | (target_y < 0) | (target_y > height - 1)
    for number in range(1, len(layers)):
        layer = layers[number]
        left, top, right, bottom = layer.box(other)
        near = (target_x >= left) & (target_x <= right) & (owner < number) & ~occluded
        asked = np.flatnonzero(near & (target_y >= top) & (target_y <= bottom))
        occluded[asked[layer.covers(other, target_x[asked], target_y[asked])]] = True
    flow = np.empty((height, width, 2), np.float32)
    flow[:, :, 0] = (target_x - canvas.x).reshape(height, width)
    flow[:, :, 1] = (target_y - canvas.y).reshape(height, width)
    return flow, occluded.reshape(height, width)
