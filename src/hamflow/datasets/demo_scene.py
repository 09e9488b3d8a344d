"""A scene that is drawn by formulas, with exact flow: for demonstrations and tests.

Every layer is a shape and a texture, both defined at every real-numbered place of the first frame,
and a rigid motion to the second. Each frame is rendered by asking every layer what it shows at the
places that its pixels come from; nothing is ever resampled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets._texture import Texture, make_texture
from hamflow.errors import InputError

_Floats = NDArray[np.float64]
_Shape = Callable[[_Floats, _Floats], _Floats]

_SMALLEST = 32


@dataclass(frozen=True, eq=False)
class Scene:
    """Two frames and the truth about them.

    Attributes
    ----------
    image0, image1 : (H, W, 3) uint8
        The frames, RGB.
    flow : (H, W, 2) float32
        Where each pixel of `image0` goes, also where it gets hidden or leaves the frame.
    occluded : (H, W) bool
        Whether the pixel of `image0` is hidden or outside in `image1`.
    """

    image0: NDArray[np.uint8]
    image1: NDArray[np.uint8]
    flow: NDArray[np.float32]
    occluded: NDArray[np.bool_]


@dataclass(frozen=True)
class _Motion:
    """Rotation by `angle` about (`x`, `y`), then translation by (`u`, `v`)."""

    x: float
    y: float
    u: float
    v: float
    angle: float = 0.0

    def forward(self, x: _Floats, y: _Floats) -> tuple[_Floats, _Floats]:
        cos, sin = np.cos(self.angle), np.sin(self.angle)
        dx, dy = x - self.x, y - self.y
        return self.x + self.u + cos * dx - sin * dy, self.y + self.v + sin * dx + cos * dy

    def backward(self, x: _Floats, y: _Floats) -> tuple[_Floats, _Floats]:
        cos, sin = np.cos(self.angle), np.sin(self.angle)
        dx, dy = x - self.x - self.u, y - self.y - self.v
        return self.x + cos * dx + sin * dy, self.y - sin * dx + cos * dy


@dataclass(frozen=True)
class _Layer:
    """What is seen of one object.

    `shape` returns the signed distance to the outline in pixels, negative inside; `relief` is how
    far from the outline, in pixels, the object appears to curve away (0 for a flat one).
    """

    shape: _Shape
    texture: Texture
    motion: _Motion
    relief: float = 0.0

    def paint(self, frame: _Floats, x: _Floats, y: _Floats) -> None:
        """Put the layer over the H×W×3 `frame`, whose pixels come from the places (x, y)."""
        distance = self.shape(x, y)
        # The outline is one pixel soft, which is what an ideal sensor would see.
        cover = np.clip(0.5 - distance, 0, 1)
        seen = cover > 0
        color = self.texture(x[seen], y[seen])
        if self.relief:
            depth = np.clip(-distance[seen] / self.relief, 0, 1)
            color *= (0.45 + 0.55 * np.sqrt(1 - (1 - depth) ** 2))[:, None]
        frame[seen] += cover[seen][:, None] * (np.clip(color, 0, 1) - frame[seen])


def demo_scene(height: int = 256, width: int = 384, seed: int = 0) -> Scene:
    """Render a pair of frames with several moving objects, and their exact flow.

    A textured background pans and turns slowly; before it move a large ellipse, a turning hexagon,
    a blossom, a thin ring and a small, fast ball, by whole and by fractional pixels. At the
    default size the ball moves by about 38 pixels; sizes and motions scale with the frame.

    Parameters
    ----------
    height, width : int
        Size of the frames, at least 32 each.
    seed : int
        Another seed gives other textures, and slightly other places and motions.

    Returns
    -------
    scene : Scene
        The frames, the flow and the occlusions.

    Raises
    ------
    InputError
        If the frame is too small or the seed negative.

    Examples
    --------
    >>> from hamflow.datasets import demo_scene
    >>> scene = demo_scene(64, 96)
    >>> scene.image0.shape, scene.flow.shape
    ((64, 96, 3), (64, 96, 2))
    """
    if min(height, width) < _SMALLEST:
        raise InputError(
            f"height and width must be at least {_SMALLEST}, but are {height} and {width}."
        )
    if seed < 0:
        raise InputError(f"seed must not be negative, but is {seed}.")
    layers = _layers(height, width, np.random.default_rng(seed))

    y, x = np.mgrid[:height, :width].astype(np.float64)
    image0, image1 = np.zeros((height, width, 3)), np.zeros((height, width, 3))
    target_x, target_y = x, y
    owner = np.zeros((height, width), np.intp)
    for number, layer in enumerate(layers):
        layer.paint(image0, x, y)
        layer.paint(image1, *layer.motion.backward(x, y))
        mine = layer.shape(x, y) < 0
        owner[mine] = number
        there_x, there_y = layer.motion.forward(x, y)
        target_x, target_y = np.where(mine, there_x, target_x), np.where(mine, there_y, target_y)

    occluded = (target_x < 0) | (target_x > width - 1) | (target_y < 0) | (target_y > height - 1)
    for number, layer in enumerate(layers):
        above = layer.shape(*layer.motion.backward(target_x, target_y)) < 0
        occluded |= above & (owner < number)
    flow = np.stack([target_x - x, target_y - y], axis=2).astype(np.float32)
    return Scene(_to_bytes(image0), _to_bytes(image1), flow, occluded)


def _to_bytes(image: _Floats) -> NDArray[np.uint8]:
    return np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)


def _layers(height: int, width: int, rng: np.random.Generator) -> list[_Layer]:
    """Compose the scene, from back to front. Lengths are those of the default size times `s`."""
    s = min(height / 256, width / 384)

    def place(x: float, y: float) -> tuple[float, float]:
        jitter = 6 * s * rng.uniform(-1, 1, 2)
        return x * width + jitter[0], y * height + jitter[1]

    def speed(value: float) -> float:
        return s * (value + rng.uniform(-1, 1))

    def texture(palette: str, cell: float) -> Texture:
        return make_texture(rng, palette.split(), cell * s)

    layers = [
        _Layer(
            lambda x, y: np.full(x.shape, -np.inf),
            texture("0b1d3a 124e66 2e8b8b 8fd0b5 f3e3b3 e8a15b 7a2f3d", 90),
            _Motion(width / 2, height / 2, speed(-4.6), speed(2.3), 0.012),
        )
    ]

    def add(shape: _Shape, colors: Texture, motion: _Motion, relief: float = 0) -> None:
        layers.append(_Layer(shape, colors, motion, relief * s))

    x, y = place(0.27, 0.42)
    colors = texture("3b0f2e a8324a f08a4b ffe0a3 fff7e0", 40)
    whole_pixels = _Motion(x, y, np.rint(13 * s), np.rint(-7 * s))
    add(_ellipse(x, y, 66 * s, 50 * s), colors, whole_pixels, 24)

    x, y = place(0.76, 0.64)
    colors = texture("10243f 2f5fa8 6fb1e6 e6f4ff f7d774", 30)
    add(_polygon(x, y, 6, 50 * s, 5 * s), colors, _Motion(x, y, speed(-15.5), speed(5), 0.16), 16)

    x, y = place(0.80, 0.24)
    colors = texture("4a1033 c2337a ff8fb8 ffe3ec", 26)
    add(_blossom(x, y, 5, 32 * s), colors, _Motion(x, y, speed(6.5), speed(20), -0.1), 12)

    x, y = place(0.40, 0.72)
    colors = texture("1c3b1a 5fa83d d6f08a fffbe0", 14)
    add(_ring(x, y, 36 * s, max(1.5, 3.2 * s)), colors, _Motion(x, y, speed(10), speed(-17)))

    x, y = place(0.49, 0.24)
    colors = texture("2b1a00 b36b00 ffd24d fff6cc", 16)
    add(_ellipse(x, y, 20 * s, 20 * s), colors, _Motion(x, y, speed(35), speed(14), 0.2), 14)
    return layers


def _ellipse(x0: float, y0: float, a: float, b: float) -> _Shape:
    def distance(x: _Floats, y: _Floats) -> _Floats:
        # Exact to first order at the outline, where it matters.
        radius = np.hypot((x - x0) / a, (y - y0) / b)
        slope = np.hypot((x - x0) / a**2, (y - y0) / b**2)
        return np.asarray(radius * (radius - 1) / np.maximum(slope, 1e-9))

    return distance


def _ring(x0: float, y0: float, radius: float, thickness: float) -> _Shape:
    def distance(x: _Floats, y: _Floats) -> _Floats:
        return np.asarray(np.abs(np.hypot(x - x0, y - y0) - radius) - thickness / 2)

    return distance


def _polygon(x0: float, y0: float, sides: int, radius: float, rounding: float) -> _Shape:
    def distance(x: _Floats, y: _Floats) -> _Floats:
        # A soft maximum over the distances to the sides rounds the corners.
        total = np.zeros(x.shape)
        for angle in 2 * np.pi * np.arange(sides) / sides:
            total += np.exp(((x - x0) * np.cos(angle) + (y - y0) * np.sin(angle)) / rounding)
        return np.asarray(rounding * np.log(total) - radius)

    return distance


def _blossom(x0: float, y0: float, petals: int, radius: float) -> _Shape:
    def distance(x: _Floats, y: _Floats) -> _Floats:
        angle = petals * np.arctan2(y - y0, x - x0)
        outline = radius * (1 + 0.22 * np.cos(angle))
        slope = radius * 0.22 * petals * np.sin(angle) / outline
        return np.asarray((np.hypot(x - x0, y - y0) - outline) / np.hypot(1, slope))

    return distance
