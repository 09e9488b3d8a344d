"""Pictures of tracks."""

from __future__ import annotations

import colorsys
from collections import deque

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from hamflow._check import to_rgb
from hamflow._types import Pixels
from hamflow.motion.tracks import TrackedFrame

TRAIL = 12
"""How many frames a trail goes back."""
_FINE = 2  # pictures are drawn at this many times their size, for smooth lines
_FADE = 0.35  # share of white in the image under the tracks


class TrackPainter:
    """Draws the points of each frame with colored trails of where they were.

    The color of a point goes by its place in the first frame, so that neighbors have similar
    colors. A visible point is a disc, a hidden one a ring without a trail.

    Parameters
    ----------
    trail : int, optional
        How many frames the trails go back; None for all.
    """

    def __init__(self, trail: int | None = TRAIL) -> None:
        self._past: deque[tuple[NDArray[np.float32], NDArray[np.bool_]]] = deque(
            maxlen=None if trail is None else trail + 1
        )
        self._colors: list[tuple[int, int, int]] = []

    def add(self, state: TrackedFrame) -> None:
        """Take up the next frame."""
        if not self._past:
            self._colors = _colors(state.position, state.frame.shape)
        self._past.append((state.position, state.visible))

    def draw(self, frame: Pixels) -> NDArray[np.uint8]:
        """Return a picture of the present frame."""
        pixels = to_rgb(frame)
        height, width = pixels.shape[:2]
        faded = Image.blend(
            Image.fromarray(pixels), Image.new("RGB", (width, height), "white"), _FADE
        )
        large = faded.resize((_FINE * width, _FINE * height), Image.Resampling.BILINEAR)
        pen = ImageDraw.Draw(large)
        thick = max(_FINE, round(_FINE * max(height, width) / 640))
        places = _FINE * (np.stack([position for position, _ in self._past]) + 0.5)
        seen = np.stack([visible for _, visible in self._past])
        for k, color in enumerate(self._colors):
            for before in range(len(places) - 1):
                if seen[before, k] and seen[before + 1, k]:
                    ends = [tuple(places[n, k].tolist()) for n in (before, before + 1)]
                    pen.line(ends, color, thick)
        radius = 1.6 * thick
        for (x, y), visible, color in zip(
            places[-1].tolist(), seen[-1].tolist(), self._colors, strict=True
        ):
            box = (x - radius, y - radius, x + radius, y + radius)
            pen.ellipse(box, fill=color if visible else None, outline=color)
        return np.asarray(large.reduce(_FINE))


def _colors(points: NDArray[np.float32], shape: tuple[int, ...]) -> list[tuple[int, int, int]]:
    height, width = shape[:2]
    colors = []
    for x, y in points.tolist():
        hue, light = 0.85 * x / width, 0.6 + 0.4 * y / height
        red, green, blue = (round(255 * v) for v in colorsys.hsv_to_rgb(hue, 0.9, light))
        colors.append((red, green, blue))
    return colors
