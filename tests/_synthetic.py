"""What the tests of synthetic scenes share: a slow and obvious renderer's view of the layers."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hamflow.datasets.synthetic import (
    SyntheticConfig,
    SyntheticScene,
    TextureSet,
    load_textures,
    render_scene,
)
from hamflow.datasets.synthetic.layer import Layer
from hamflow.datasets.synthetic.patch import Patch, Rigid, View
from hamflow.datasets.synthetic.stage import set_stage
from hamflow.errors import FileError

Doubles = NDArray[np.float64]

FIELDS = ("image0", "image1", "flow", "occluded", "backward_flow", "backward_occluded")
EFFECTS = (
    *("illumination", "shadow", "fog", "motion_blur", "defocus", "noise", "vignette", "jpeg"),
    "specular",
)
SMALL = SyntheticConfig(height=112, width=144, max_displacement=40, clean=True)
PLAIN = replace(SMALL, clean=False, **dict.fromkeys(EFFECTS, 0.0))
# Large pieces with structure, so that there is something to measure in each scene.
EXACT = replace(SMALL, height=160, width=192, max_layers=5, dull_share=0.0)
SPACE = replace(SMALL, perspective_share=1.0, dull_share=0.0, max_displacement=30.0)
CURVED = replace(SPACE, curved_share=1.0)
SEEDS = range(6)
STILL = Rigid(np.zeros(3), np.zeros(3), np.zeros(3))


@cache
def textures() -> TextureSet:
    return load_textures()


@cache
def scene(seed: int, config: SyntheticConfig = SMALL) -> SyntheticScene:
    return render_scene(config, seed, textures())


def same(first: SyntheticScene, second: SyntheticScene) -> bool:
    return all(getattr(first, f).tobytes() == getattr(second, f).tobytes() for f in FIELDS)


def check_kinds(shown: SyntheticScene, size: tuple[int, int]) -> None:
    """Check the shapes and types of what a scene consists of."""
    for image in (shown.image0, shown.image1):
        assert image.shape == (*size, 3)
        assert image.dtype == np.uint8
    for flow in (shown.flow, shown.backward_flow):
        assert flow.shape == (*size, 2)
        assert flow.dtype == np.float32
        assert np.isfinite(flow).all()
    for mask in (shown.occluded, shown.backward_occluded):
        assert mask.shape == size
        assert mask.dtype == np.bool_


def layers_of(config: SyntheticConfig, seed: int, textures: TextureSet) -> list[Layer]:
    """Return the layers that `render_scene` composes."""
    return set_stage(np.random.default_rng([seed, 0]), config, textures)


def backdrop(view: View) -> Patch:
    """A dark plane far behind everything, which does not move."""
    picture = Image.new("RGBA", (80, 80), (50, 50, 50, 255))
    plane = np.column_stack([[0.5, 0, 0], [0, 0.5, 0], [-20, -20, 20]])
    return Patch.of(picture, plane=plane, motion=STILL, view=view, depth=1.0, solid=True)


@dataclass
class SlowLayer:
    """A layer in double precision, straight from the definition."""

    layer: Layer

    def __post_init__(self) -> None:
        picture = np.asarray(self.layer.texels.picture()).astype(np.float64) / 255
        self.coverage = picture[:, :, 3]

    def bend(self, x: Doubles, y: Doubles) -> tuple[Doubles, Doubles]:
        elastic = self.layer.motion.elastic
        if elastic is None:
            return x, y
        dx, dy = np.zeros_like(x), np.zeros_like(y)
        for (kx, ky, phase), (ax, ay) in zip(elastic.waves, elastic.amplitudes, strict=True):
            dx += ax * np.sin(kx * x + ky * y + phase)
            dy += ay * np.sin(kx * x + ky * y + phase)
        return x + dx, y + dy

    def target(self, x: Doubles, y: Doubles) -> tuple[Doubles, Doubles]:
        """Return where points of the first frame are in the second."""
        return mapped(self.layer.motion.affine, *self.bend(x, y))

    def covers(self, frame: int, x: Doubles, y: Doubles) -> Doubles:
        """Return the coverage at points of a frame, in 0..1."""
        if self.layer.solid:
            return np.ones_like(x)
        if frame == 0:
            x, y = self.bend(x, y)
        else:
            motion = np.vstack([self.layer.motion.affine, [0, 0, 1]])
            x, y = mapped(np.linalg.inv(motion)[:2], x, y)
        u, v = mapped(self.layer.place, x, y)
        return bilinear(self.coverage, u, v)


def mapped(a: Doubles, x: Doubles, y: Doubles) -> tuple[Doubles, Doubles]:
    return a[0, 0] * x + a[0, 1] * y + a[0, 2], a[1, 0] * x + a[1, 1] * y + a[1, 2]


def bilinear(values: NDArray[Any], x: Doubles, y: Doubles) -> Doubles:
    """Interpolate, with 0 outside."""
    padded = np.pad(np.asarray(values, np.float64), 1)
    height, width = values.shape
    x, y = np.clip(x, -1, width - 1e-9) + 1, np.clip(y, -1, height - 1e-9) + 1
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    across, down = x - left, y - top
    upper = padded[top, left] * (1 - across) + padded[top, left + 1] * across
    lower = padded[top + 1, left] * (1 - across) + padded[top + 1, left + 1] * across
    return np.asarray(upper * (1 - down) + lower * down)


def pixels(config: SyntheticConfig) -> tuple[Doubles, Doubles]:
    y, x = np.mgrid[: config.height, : config.width].astype(np.float64)
    return x, y


def same_around(labels: NDArray[Any], radius: int) -> NDArray[np.bool_]:
    """Return where all pixels within a square have the same label (never at the border)."""
    height, width = labels.shape
    inner = np.zeros((height, width), np.bool_)
    inside = np.ones((height - 2 * radius, width - 2 * radius), np.bool_)
    middle = labels[radius : height - radius, radius : width - radius]
    for dy in range(2 * radius + 1):
        for dx in range(2 * radius + 1):
            inside &= labels[dy : dy + inside.shape[0], dx : dx + inside.shape[1]] == middle
    inner[radius : height - radius, radius : width - radius] = inside
    return inner


def smooth(image: NDArray[Any]) -> NDArray[np.float32]:
    """Return the gray image without its finest detail, which interpolation does not keep."""
    gray = image.astype(np.float32).mean(axis=2)
    for axis in (0, 1, 0, 1):
        gray = (np.roll(gray, 1, axis) + 2 * gray + np.roll(gray, -1, axis)) / 4
    return gray


class FailingJob:
    """A job for workers that fails in different ways."""

    def prepare(self) -> None: ...

    def __call__(self, number: int) -> None:
        if number == 3:
            raise FileError("it: is the third; remove it.")
        if number == 5:
            os._exit(9)
