"""Outlines of layers, from filled polygons and strokes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, features

from hamflow.datasets.synthetic.geometry import Box

_Points = NDArray[np.float64]
_TOUCHED = 0.6  # cells by which Pillow draws polygons too wide, on average
_LETTERS = "ABDEFGHKMNPRSTXYZabdeghkmnpqrstxy023456789&?#%@"


@dataclass(frozen=True, eq=False)
class Part:
    """A filled polygon, a stroke along a line, or letters."""

    points: _Points  # (N, 2): corners in pixels; the center of letters
    width: float = 0.0  # of a stroke, or 0 for a filled polygon; the height of letters
    solid: bool = True  # whether the part is added, or cut out
    text: str = ""  # letters


@dataclass(frozen=True, eq=False)
class Shape:
    """Parts around (0, 0), drawn one over the other."""

    parts: list[Part] = field(default_factory=list)
    thin: bool = False  # whether it consists of thin structures

    @property
    def box(self) -> Box:
        """The smallest box around the shape."""
        low, high = np.full(2, np.inf), np.full(2, -np.inf)
        for part in self.parts:
            reach = part.width * max(0.6, 0.45 * len(part.text))
            low = np.minimum(low, part.points.min(axis=0) - reach)
            high = np.maximum(high, part.points.max(axis=0) + reach)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    def coverage(self, box: Box, size: tuple[int, int]) -> Image.Image:
        """Return how much of each cell of a grid over `box` the shape covers: 0 to 255."""
        finer = 3 if size[0] * size[1] < 400_000 else 2
        mask = Image.new("L", (size[0] * finer, size[1] * finer))
        draw = ImageDraw.Draw(mask)
        scale = np.array([mask.width / (box[2] - box[0]), mask.height / (box[3] - box[1])])
        for part in self.parts:
            _draw(draw, part, (part.points - box[:2]) * scale, float(scale[0]))
        return mask.reduce(finer)


def _draw(draw: ImageDraw.ImageDraw, part: Part, points: _Points, scale: float) -> None:
    fill = 255 if part.solid else 0
    if part.text:
        font = ImageFont.load_default(max(4.0, part.width * scale))
        draw.text(tuple(points[0]), part.text, fill=fill, font=font, anchor="mm")
        return
    # Not Pillow's strokes, whose width is in whole cells and depends on the direction.
    corners = _stroke(points, part.width * scale) if part.width else points
    draw.polygon([(x, y) for x, y in corners.tolist()], fill=fill)


def _stroke(points: _Points, width: float) -> _Points:
    """Return the outline of a stroke along a line."""
    along = np.gradient(points, axis=0)
    along /= np.maximum(np.hypot(along[:, :1], along[:, 1:]), 1e-9)
    # Pillow fills every cell that the outline touches.
    aside = 0.5 * max(width - _TOUCHED, 0.5) * (along[:, ::-1] * [-1, 1])
    return np.vstack([points + aside, (points - aside)[::-1]])


def draw_shape(rng: np.random.Generator, radius: float, thin: bool) -> Shape:
    """Draw a random shape of about this radius, in pixels."""
    kinds = _THIN if thin else _SOLID
    return kinds[int(rng.integers(len(kinds)))](rng, radius)


def limb(length: float, start: float, end: float) -> Shape:
    """Return a limb along the x-axis, round at both joints, where it has these radii."""
    arc = np.linspace(-np.pi / 2, np.pi / 2, 25)
    first, last = _polar(arc + np.pi, np.full(25, start)), _polar(arc, np.full(25, end))
    last[:, 0] += length
    return Shape([Part(np.vstack([first, last]))])


def ground(rng: np.random.Generator, reach: float, edge: float) -> Shape:
    """Return everything below a rugged line: a hill, a wall, a table in the foreground.

    It extends `reach` pixels to the sides and down; `edge` is the roughness of the line in pixels.
    """
    heights = np.zeros(2)
    step = edge
    rough = rng.uniform(0.35, 0.65)
    for _ in range(int(rng.integers(3, 9))):
        between = (heights[1:] + heights[:-1]) / 2 + rng.normal(0, step, len(heights) - 1)
        merged = np.empty(2 * len(heights) - 1)
        merged[::2], merged[1::2] = heights, between
        heights, step = merged, step * rough
    x = np.linspace(-reach, reach, len(heights))
    line = np.column_stack([x, heights])
    return Shape([Part(np.vstack([line, [[reach, reach], [-reach, reach]]]))])


def _polar(angles: NDArray[np.float64], radii: NDArray[np.float64]) -> _Points:
    return np.asarray(np.column_stack([radii * np.cos(angles), radii * np.sin(angles)]), np.float64)


def _round(count: int) -> NDArray[np.float64]:
    return np.asarray(np.arange(count) * (2 * np.pi / count), np.float64)


def _ellipse(rng: np.random.Generator, r: float) -> Shape:
    return Shape([Part(_polar(_round(72), np.full(72, r)) * [1, rng.uniform(0.35, 1)])])


def _polygon(rng: np.random.Generator, r: float) -> Shape:
    count = int(rng.integers(3, 9))
    angles = _round(count) + rng.uniform(-0.35, 0.35, count) * (2 * np.pi / count)
    return Shape([Part(_polar(angles, r * rng.uniform(0.6, 1.1, count)))])


def _star(rng: np.random.Generator, r: float) -> Shape:
    count = int(rng.integers(4, 12))
    radii = np.tile([r, r * rng.uniform(0.35, 0.8)], count)
    return Shape([Part(_polar(_round(2 * count), radii))])


def _blossom(rng: np.random.Generator, r: float) -> Shape:
    angles = _round(180)
    petals = int(rng.integers(3, 9))
    return Shape(
        [Part(_polar(angles, r * (0.75 + rng.uniform(0.1, 0.3) * np.cos(petals * angles))))]
    )


def _blob(rng: np.random.Generator, r: float) -> Shape:
    """Return a disk with random bumps; finer ones are smaller."""
    angles = _round(240)
    radii = np.ones(240)
    rough = rng.uniform(0.8, 1.6)
    for k in range(1, int(rng.integers(5, 24))):
        radii += rng.normal(0, 0.22) / k**rough * np.cos(k * angles + rng.uniform(0, 2 * np.pi))
    shape = Shape([Part(_polar(angles, r * np.clip(radii, 0.15, 1.9) * 0.85))])
    if rng.uniform() < 0.25:
        hole = _blob(rng, r * rng.uniform(0.2, 0.45)).parts[0].points
        shape.parts.append(Part(hole + rng.uniform(-0.3, 0.3, 2) * r, solid=False))
    return shape


def _ring(rng: np.random.Generator, r: float) -> Shape:
    flat = [1, rng.uniform(0.5, 1)]
    inner = r * rng.uniform(0.5, 0.9)
    outline = _polar(_round(90), np.ones(90)) * flat
    return Shape([Part(outline * r), Part(outline * inner, solid=False)])


def _rectangle(rng: np.random.Generator, r: float) -> Shape:
    size = r * np.array([1, rng.uniform(0.3, 1)])
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    shape = Shape([Part(corners * size)])
    if rng.uniform() < 0.4:  # windows
        across, down = rng.integers(1, 5, 2)
        pane = size / [across, down] * rng.uniform(0.5, 0.85)
        for i in range(across):
            for j in range(down):
                middle = size * [(2 * i + 1) / across - 1, (2 * j + 1) / down - 1]
                shape.parts.append(Part(corners * pane + middle, solid=False))
    return shape


def _leaves(rng: np.random.Generator, r: float) -> Shape:
    """Return a heap of small leaves."""
    count = int(rng.integers(8, 60))
    size = r * rng.uniform(0.1, 0.3)
    outline = _polar(_round(20), np.ones(20)) * [1, rng.uniform(0.25, 0.7)]
    parts = []
    for _ in range(count):
        angle = rng.uniform(0, np.pi)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        place = rng.normal(0, 0.4, 2).clip(-0.9, 0.9) * r
        parts.append(Part(outline * size * rng.uniform(0.6, 1.3) @ turn + place))
    return Shape(parts)


def _crescent(rng: np.random.Generator, r: float) -> Shape:
    disc = _polar(_round(72), np.full(72, r))
    shift = np.array([r * rng.uniform(0.3, 0.9), 0])
    return Shape([Part(disc), Part(disc * rng.uniform(0.7, 1.0) + shift, solid=False)])


def _width(rng: np.random.Generator) -> float:
    """1 to 6 pixels, thin ones more often."""
    return float(np.exp(rng.uniform(0, np.log(6))))


def _bars(rng: np.random.Generator, r: float) -> Shape:
    """Return one pole or several, much longer than wide."""
    length = r * rng.uniform(1.5, 5)
    count = int(rng.integers(1, 5))
    offsets = np.sort(rng.uniform(-r, r, count)) if count > 1 else [0.0]
    parts = []
    for offset in offsets:
        lean = rng.normal(0, 0.05, 2) * length
        ends = np.array([[offset + lean[0], -length], [offset + lean[1], length]])
        parts.append(Part(ends, width=_width(rng) * rng.choice([1, 1, 2])))
    return Shape(parts, thin=True)


def _fence(rng: np.random.Generator, r: float) -> Shape:
    width = _width(rng)
    pitch = max(width * rng.uniform(2.5, 8), 5)
    half = max(r * rng.uniform(0.6, 1.6), pitch)
    places = np.arange(-half, half + 1e-6, pitch)[:80]
    low, high = places[0], places[-1]
    parts = [Part(np.array([[p, low], [p, high]]), width=width) for p in places]
    rails = places if rng.uniform() < 0.5 else [low * 0.7, high * 0.7]
    parts += [Part(np.array([[low, p], [high, p]]), width=width) for p in rails]
    return Shape(parts, thin=True)


def _curves(rng: np.random.Generator, r: float) -> Shape:
    """Return wires or hair: smooth lines that go roughly the same way."""
    t = np.linspace(-1, 1, 48)
    length = r * rng.uniform(1, 3)
    bend = rng.normal(0, 0.4, 4)
    width = _width(rng)
    parts = []
    for _ in range(int(rng.integers(2, 12))):
        own = bend + rng.normal(0, 0.12, 4)
        side = own[0] * t + own[1] * t**2 + own[2] * np.sin(3 * t + 6 * own[3])
        offset = rng.uniform(-0.8, 0.8)
        parts.append(Part(np.column_stack([length * t, r * (offset + side)]), width=width))
    return Shape(parts, thin=True)


def _branch(rng: np.random.Generator, r: float) -> Shape:
    parts: list[Part] = []
    spread = rng.uniform(0.3, 0.9)

    def grow(start: _Points, angle: float, length: float, width: float) -> None:
        end = start + length * np.array([np.cos(angle), np.sin(angle)])
        middle = (start + end) / 2 + rng.normal(0, 0.06, 2) * length
        parts.append(Part(np.vstack([start, middle, end]), width=max(1.0, width)))
        if width > 0.9 and length > 5 and len(parts) < 90:
            for _ in range(int(rng.integers(2, 4))):
                turned = angle + rng.normal(0, spread)
                grow(end, turned, length * rng.uniform(0.55, 0.85), width * 0.65)

    grow(np.array([-r, 0.0]), rng.normal(0, 0.3), r * rng.uniform(0.6, 0.9), rng.uniform(3, 7))
    return Shape(parts, thin=True)


def _letters(rng: np.random.Generator, r: float) -> Shape:
    if not features.check("freetype2"):  # a Pillow without fonts
        return _fence(rng, r)
    count = int(rng.integers(1, 7))
    text = "".join(rng.choice(list(_LETTERS), count))
    height = max(10.0, 2.2 * r / max(1.0, 0.6 * count))
    return Shape([Part(np.zeros((1, 2)), width=height, text=text)], thin=True)


def _loops(rng: np.random.Generator, r: float) -> Shape:
    """Return thin rings."""
    parts = []
    for _ in range(int(rng.integers(1, 5))):
        angles = np.linspace(0, 2 * np.pi, 72)
        outline = _polar(angles, np.ones(72)) * [1, rng.uniform(0.4, 1)] * r * rng.uniform(0.3, 1)
        parts.append(Part(outline + rng.uniform(-0.5, 0.5, 2) * r, width=_width(rng)))
    return Shape(parts, thin=True)


_SOLID: tuple[Callable[[np.random.Generator, float], Shape], ...] = (
    _ellipse,
    _polygon,
    _star,
    _blossom,
    _blob,
    _blob,
    _blob,
    _ring,
    _rectangle,
    _leaves,
    _crescent,
)
_THIN: tuple[Callable[[np.random.Generator, float], Shape], ...] = (
    _bars,
    _fence,
    _curves,
    _branch,
    _letters,
    _loops,
)
