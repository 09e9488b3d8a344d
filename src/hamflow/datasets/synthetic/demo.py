"""The scene of the demonstration: a landscape with a windmill and a balloon, and a moving camera.

Unlike a random scene, it is composed by hand; the seed changes textures, outlines and details of
the motion. It is rendered like the random scenes, so flow and occlusions are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

from hamflow.datasets.synthetic.compose import Canvas
from hamflow.datasets.synthetic.config import SMALLEST
from hamflow.datasets.synthetic.geometry import Box, about, common, compose, grown
from hamflow.datasets.synthetic.layer import Layer
from hamflow.datasets.synthetic.motion import Camera, Motion, similarity
from hamflow.datasets.synthetic.procedural import painted_picture
from hamflow.datasets.synthetic.scene import SyntheticScene, render_layers
from hamflow.datasets.synthetic.shapes import Part, Shape
from hamflow.datasets.synthetic.skin import rim
from hamflow.datasets.synthetic.stage import LEAST, MARGIN, make_layer, plane_at, shown
from hamflow.errors import InputError

_HEIGHT, _WIDTH = 288, 512  # all lengths below are for frames of this size
_SIDES = 64, 512  # pixels of a texture before it is resized


@dataclass(frozen=True)
class _Thing:
    """One object of the scene."""

    shape: Shape | None  # around `place`; None for the background
    place: tuple[float, float]  # x and y as shares of the frame
    paint: tuple[str, str]  # kind and colors of the texture, as in `painted_picture`
    parallax: float  # share of the camera's motion
    shift: tuple[float, float] = (0.0, 0.0)  # its own motion
    turn: float = 0.0  # rotation in radians, around `pivot`
    zoom: float = 1.0
    pivot: tuple[float, float] = (0.0, 0.0)  # relative to `place`
    rounded: bool = False  # whether it looks round


def demo_scene(height: int = 256, width: int = 456, seed: int = 0) -> SyntheticScene:
    """Render a landscape in which everything moves, and its exact flow.

    The camera pans, rotates and zooms, so near objects move more than far ones; a windmill turns
    its sails, a balloon rises, a kite and a ball fly past. At the default size, the fastest motion
    is about 40 pixels. Sizes and motions scale with the frame.

    Parameters
    ----------
    height, width : int
        Size of the frames, at least 32 each.
    seed : int
        Another seed gives other textures and outlines, and slightly other places and motions.

    Returns
    -------
    scene : SyntheticScene
        The frames, the flow and the occlusions.

    Examples
    --------
    >>> from hamflow.datasets import demo_scene
    >>> scene = demo_scene(64, 96)
    >>> scene.image0.shape, scene.flow.shape
    ((64, 96, 3), (64, 96, 2))
    """
    if min(height, width) < SMALLEST:
        raise InputError(
            f"height and width must be at least {SMALLEST}, but are {height} and {width}."
        )
    if seed < 0:
        raise InputError(f"seed must not be negative, but is {seed}.")
    painter = _Painter(np.random.default_rng(seed), height, width)
    layers = [painter.layer(thing) for thing in _things(painter.rng)]
    return render_layers(Canvas(height, width), [layer for layer in layers if layer is not None])


class _Painter:
    """Makes layers from objects, in the size of the frames."""

    def __init__(self, rng: np.random.Generator, height: int, width: int) -> None:
        self.rng = rng
        self._size = np.array([width, height])
        self._frame: Box = (0.0, 0.0, width - 1.0, height - 1.0)
        self._scale = min(height / _HEIGHT, width / _WIDTH)
        shift = self._scale * np.array([-11.0, 2.5])
        center = (0.45 * width, 0.6 * height)
        self._camera = Camera(0.0, center, shift, angle=0.015, zoom=0.025)

    def layer(self, thing: _Thing) -> Layer | None:
        """Return the layer, or None if hardly anything of it is in the frames."""
        x, y = (self._size * thing.place).tolist()
        pivot = (x + self._scale * thing.pivot[0], y + self._scale * thing.pivot[1])
        own = about(pivot, similarity(thing.turn, thing.zoom))
        own[:, 2] += self._scale * np.asarray(thing.shift)
        motion = Motion(compose(self._camera.motion(thing.parallax), own), None)
        to_local = plane_at((x, y), 0.0)
        domain = shown(self._frame, to_local, motion)
        shape = None
        if thing.shape is not None:
            shape = Shape([self._scaled(part) for part in thing.shape.parts])
            domain = common(domain, grown(shape.box, MARGIN))
            if domain[2] - domain[0] < LEAST or domain[3] - domain[1] < LEAST:
                return None
        depth, dress = 1 / (1 + thing.parallax), partial(self._dress, thing)
        return make_layer(shape, domain, to_local, motion, depth=depth, dress=dress)

    def _dress(
        self,
        thing: _Thing,
        extent: tuple[float, float],
        size: tuple[int, int],
        mask: Image.Image | None,
    ) -> Image.Image:
        side = int(np.clip(max(extent), *_SIDES))
        picture = Image.fromarray(painted_picture(self.rng, *thing.paint, side))
        square = (max(size), max(size))
        picture = picture.resize(square, Image.Resampling.BICUBIC).crop((0, 0, *size))
        if mask is not None and thing.rounded:
            light = rim(mask, size)
            picture = ImageChops.multiply(picture, Image.merge("RGB", (light, light, light)))
        picture.putalpha(255 if mask is None else mask)
        return picture

    def _scaled(self, part: Part) -> Part:
        return replace(part, points=part.points * self._scale, width=part.width * self._scale)


def _things(rng: np.random.Generator) -> list[_Thing]:
    """Compose the scene, from back to front."""

    def near(value: float, by: float) -> float:
        return float(value + rng.uniform(-by, by))

    balloon = _Thing(
        Shape([Part(_balloon())]),
        place=(near(0.25, 0.02), near(0.36, 0.02)),
        paint=("stripes", "8f1d2c e8503a ffc857 fff3d6 2a6f97 8f1d2c"),
        parallax=0.6,
        shift=(near(13, 2), near(-23, 2)),
        turn=near(0.06, 0.03),
        zoom=1.06,
        rounded=True,
    )
    ropes = [Part(_corners(6 * k, 73, 15 * k, 44), width=1.6) for k in (-1, 0, 1)]
    basket = replace(
        balloon,
        shape=Shape([Part(_rectangle(-9, 74, 9, 87)), *ropes]),
        paint=("wood", "2d1a10 6b4226 c49a6c"),
    )
    mill = _Thing(
        Shape([Part(_corners(-15, -52, 15, -52, 27, 95, -27, 95))]),
        place=(0.73, near(0.60, 0.02)),
        paint=("bricks", "4b2e2a 9c5b43 d59a6e f4dcb8"),
        parallax=1.0,
        rounded=True,
    )
    roof = replace(
        mill,
        shape=Shape([Part(_corners(-19, -50, 0, -76, 19, -50))]),
        paint=("bricks", "3a1420 7a2a38"),
    )
    hub, angle = (0.0, -60.0), near(0.35, 0.1)
    sails = replace(
        mill,
        shape=Shape([part for k in range(4) for part in _sail(hub, angle + k * np.pi / 2)]),
        paint=("checks", "5a3a22 e7d3ad fffaf0"),
        turn=near(0.34, 0.03),
        pivot=hub,
        rounded=False,
    )
    kite = _Thing(
        Shape([Part(_corners(0, -30, 21, -4, 0, 36, -21, -4))]),
        place=(near(0.50, 0.02), 0.24),
        paint=("checks", "0b5563 16a69a ffe45e ff6b6b"),
        parallax=0.9,
        shift=(near(-24, 2), near(20, 2)),
        turn=near(-0.22, 0.04),
    )
    wave = np.linspace(0, 1, 40)
    ribbon = np.column_stack([9 * np.sin(11 * wave) * wave, 36 + 62 * wave])
    tail = replace(
        kite, shape=Shape([Part(ribbon, width=4.0)]), paint=("checks", "7a1f3d ff6b6b ffe45e")
    )
    ball = _Thing(
        Shape([Part(_circle(25))]),
        place=(near(0.40, 0.02), near(0.78, 0.02)),
        paint=("clouds", "0a2540 1b6ca8 f5f5f0 f7b32b d7263d"),
        parallax=1.3,
        shift=(near(45, 1), near(-18, 1)),
        turn=near(0.25, 0.05),
        rounded=True,
    )
    sky = ("sky", "2b4a9b 3f6fc4 7fa9e2 c9d3ea f6c9a8 ffa96b ff8450")
    moon = Shape([Part(_circle(23))])
    rock = ("clouds", "3b3f7c 5d66a6 8d9acb e4e6f6")
    grass = ("grain", "1d4a2c 2f7b3a 74b04a c8da6f")
    stones = ("pebbles", "352b27 7f6b55 bfa982 efe3c4")
    return [
        _Thing(None, (0.5, 0.5), sky, 0.2),
        _Thing(moon, (0.87, 0.17), ("contours", "ffdf8e fff8d8 ffe9ad"), 0.2),
        _Thing(_land(rng, 34, 40), (0.5, 0.50), rock, 0.45),
        _Thing(_land(rng, 9, 70), (0.5, 0.70), grass, 0.75),
        *(basket, balloon, mill, roof, sails),
        _Thing(_land(rng, 4, 30), (0.5, 0.92), stones, 1.25),
        *(tail, kite, ball),
        _Thing(_fence(), (0.12, 0.9), ("wood", "5b4a3f b9a890 fbf5ea"), 1.7),
    ]


_Points = NDArray[np.float64]


def _corners(*numbers: float) -> _Points:
    return np.array(numbers, np.float64).reshape(-1, 2)


def _rectangle(left: float, top: float, right: float, bottom: float) -> _Points:
    return _corners(left, top, right, top, right, bottom, left, bottom)


def _circle(radius: float) -> _Points:
    angles = np.linspace(0, 2 * np.pi, 90, endpoint=False)
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def _balloon() -> _Points:
    """Return a circle that is stretched downwards."""
    points = _circle(46)
    below = np.maximum(points[:, 1], 0) / 46
    return points * np.column_stack([1 - 0.55 * below**2, 1 + 0.25 * below])


def _sail(hub: tuple[float, float], angle: float) -> list[Part]:
    """Return one of the arms of a windmill: a spar with a sail beside it."""
    turned = similarity(angle, 1.0).T
    parts = [Part(_rectangle(-3, -4, 3, 88)), Part(_rectangle(2, 20, 20, 86))]
    return [replace(part, points=part.points @ turned + hub) for part in parts]


def _land(rng: np.random.Generator, rough: float, step: float) -> Shape:
    """Return everything below a rugged line with a corner about every `step` pixels."""
    reach = 1500.0
    corners = np.arange(-reach, reach + step, step)
    x = np.linspace(-reach, reach, 1001)
    heights = np.interp(x, corners, rng.uniform(-rough, rough, len(corners)))
    heights += rng.normal(0, 0.04 * rough, len(x))
    line = np.column_stack([x, heights])
    return Shape([Part(np.vstack([line, [[reach, reach], [-reach, reach]]]))])


def _fence() -> Shape:
    posts = [
        Part(_corners(x, -26, x + 4, -32, x + 8, -26, x + 8, 60, x, 60)) for x in range(-70, 80, 36)
    ]
    rails = [Part(_rectangle(-80, y, 90, y + 6)) for y in (-14, 10)]
    return Shape(posts + rails)
