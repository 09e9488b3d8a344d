"""Frames and true flow from layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets.synthetic.geometry import Box, Floats
from hamflow.datasets.synthetic.layer import FULL, HALF, Texels

_OPEN = 1 / 512  # layers behind a pixel with less light left than this are skipped
_WHOLE = 1 - 1e-5  # full coverage, up to rounding


class Haze(NamedTuple):
    """Fog, which hides more of what is farther away."""

    density: float
    near: float  # share of the density that is before the nearest things
    color: NDArray[np.float32]  # in 0..255

    def share(self, depth: Any) -> Any:
        """Return the share of fog before something at a depth from 0 to 1."""
        return np.minimum(0.95, self.density * (self.near + (1 - self.near) * depth))


class Surface(Protocol):
    """What scenes are made of: a flat `Layer`, or a `Patch` in space."""

    @property
    def texels(self) -> Texels:
        """Color and coverage."""

    @property
    def depth(self) -> float:
        """1 for the farthest, 0 for the nearest."""

    @property
    def solid(self) -> bool:
        """Whether it covers all of the frame."""

    def box(self, frame: int, time: float = 0.0) -> Box:
        """Return where in a frame it may be seen."""

    def coordinates(
        self, frame: int, x: Floats, y: Floats, time: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Return which texels some places of a frame show."""

    def depths(self, frame: int, x: Floats, y: Floats) -> Floats | float:
        """Return the depth from 0 to 1 at some places of a frame, or one number for all."""

    def follow(self, frame: int, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return where places of one frame are in the other."""

    def hidden(self, frame: int) -> bool:
        """Say whether it is turned away from the camera in a frame."""

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
        self.index = np.arange(height * width).reshape(height, width)
        y, x = np.indices((height, width), np.float32)
        self.x, self.y = x.ravel(), y.ravel()

    def window(self, box: Box) -> tuple[slice, slice]:
        """Return the rows and columns of the pixels in a box."""
        left, right = np.clip([np.ceil(box[0]), np.floor(box[2]) + 1], 0, self.width).astype(int)
        top, bottom = np.clip([np.ceil(box[1]), np.floor(box[3]) + 1], 0, self.height).astype(int)
        return slice(top, max(top, bottom)), slice(left, max(left, right))


def composite(
    canvas: Canvas,
    layers: Sequence[Surface],
    frame: int,
    haze: Haze | None = None,
    time: float = 0.0,
) -> Floats:
    """Render frame 0 or 1: (H, W, 3) float32 from 0 to 255.

    `layers` are sorted from back to front, `haze` is the fog, and `time` is that of
    `Layer.coordinates`. Layers are drawn from front to back, and pixels that are fully covered
    already are skipped.
    """
    light = np.ones(canvas.height * canvas.width, np.float32)
    total = np.zeros((canvas.height * canvas.width, 4), np.float32)
    for number in range(len(layers) - 1, -1, -1):
        layer = layers[number]
        index, lanes = _looked_up(canvas, layer, frame, light > _OPEN, time)
        if not layer.solid:
            covered = np.flatnonzero(lanes[:, 3])
            index, lanes = index.take(covered), lanes.take(covered, 0)
        colors = lanes.astype(np.float32)
        weight = light.take(index)
        weight *= colors[:, 3]
        weight *= np.float32(1 / FULL)
        if haze is not None:
            depth = layer.depths(frame, canvas.x.take(index), canvas.y.take(index))
            share = haze.share(depth if isinstance(depth, float) else depth[:, None])
            colors *= np.float32(1 - share)
            colors[:, :3] += np.float32(share * 256) * haze.color
        light[index] -= weight
        # Most pixels are covered by one layer alone.
        mixed = np.flatnonzero(weight < _WHOLE)
        colors[mixed] *= weight[mixed, None]
        colors += total.take(index, 0)
        total[index] = colors
    image = total[:, :3] * np.float32(1 / 256)
    return image.reshape(canvas.height, canvas.width, 3)


_ALL = (slice(None), slice(None))


def _looked_up(
    canvas: Canvas, layer: Surface, frame: int, wanted: NDArray[np.bool_], time: float = 0.0
) -> tuple[NDArray[np.intp], NDArray[np.uint16]]:
    """Return the wanted pixels that may show a layer, and its color and coverage there."""
    window = _ALL if layer.solid else canvas.window(layer.box(frame, time))
    index = canvas.index[window][wanted.reshape(canvas.index.shape)[window]]
    at = layer.coordinates(frame, canvas.x.take(index), canvas.y.take(index), time)
    return index, layer.texels.look_up(*at)


def owners(canvas: Canvas, layers: Sequence[Surface], frame: int) -> NDArray[np.int16]:
    """Return which layer each pixel of a frame belongs to: the nearest that covers half of it."""
    owner = np.zeros(canvas.height * canvas.width, np.int16)
    for number in range(len(layers) - 1, 0, -1):
        index, lanes = _looked_up(canvas, layers[number], frame, owner == 0)
        owner[index[lanes[:, 3] > HALF]] = number
    return owner.reshape(canvas.height, canvas.width)


def truth(
    canvas: Canvas, layers: Sequence[Surface], frame: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the exact flow from a frame to the other one, and which pixels are occluded there.

    The flow is known also for occluded pixels, which are outside of the other frame or covered.
    """
    height, width = canvas.height, canvas.width
    owner = owners(canvas, layers, frame).ravel()
    target_x = np.empty(height * width, np.float32)
    target_y = np.empty(height * width, np.float32)
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(len(layers) + 1))
    for number, layer in enumerate(layers):
        mine = order[ends[number] : ends[number + 1]]
        if mine.size:
            moved = layer.follow(frame, canvas.x.take(mine), canvas.y.take(mine))
            target_x[mine], target_y[mine] = moved

    occluded = (target_x < 0) | (target_x > width - 1) | (target_y < 0) | (target_y > height - 1)
    turned_away = np.array([layer.hidden(1 - frame) for layer in layers])
    occluded |= turned_away[owner]
    for number in range(1, len(layers)):
        layer = layers[number]
        left, top, right, bottom = layer.box(1 - frame)
        near = (target_x >= left) & (target_x <= right) & (owner < number) & ~occluded
        asked = np.flatnonzero(near & (target_y >= top) & (target_y <= bottom))
        at = layer.coordinates(1 - frame, target_x[asked], target_y[asked])
        occluded[asked[layer.texels.look_up(*at)[:, 3] > HALF]] = True
    flow = np.empty((height, width, 2), np.float32)
    flow[:, :, 0] = (target_x - canvas.x).reshape(height, width)
    flow[:, :, 1] = (target_y - canvas.y).reshape(height, width)
    return flow, occluded.reshape(height, width)
