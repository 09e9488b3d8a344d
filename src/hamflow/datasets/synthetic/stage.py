"""Composition of the layers of a scene."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image

from hamflow.datasets.synthetic.chain import draw_chain
from hamflow.datasets.synthetic.config import SyntheticConfig, longest_blur
from hamflow.datasets.synthetic.geometry import (
    Affine,
    Box,
    about,
    bounds,
    common,
    compose,
    farthest,
    grown,
    invert,
    united,
)
from hamflow.datasets.synthetic.layer import Layer, Texels
from hamflow.datasets.synthetic.motion import Motion, Mover, log_uniform, similarity
from hamflow.datasets.synthetic.shapes import Shape, draw_shape, ground
from hamflow.datasets.synthetic.skin import Wardrobe
from hamflow.datasets.synthetic.textures import TextureSet

Dress = Callable[[tuple[float, float], tuple[int, int], Image.Image | None], Image.Image]

# Texels per pixel. Above 1, because interpolation between texels blurs, which would make the frames
# differ.
_DENSITY = 1.5
_STILL = 0.7  # probability that only the camera moves the background
MARGIN = 2.0  # pixels around a shape in its texture
LEAST = 4.0  # pixels: narrower pieces of a layer are left out


def set_stage(
    rng: np.random.Generator, config: SyntheticConfig, textures: TextureSet, frames: int = 2
) -> list[Layer]:
    """Draw the layers of a scene, from back to front, large enough for some frames."""
    return _Stage(rng, config, textures, frames).layers()


class _Stage:
    def __init__(
        self, rng: np.random.Generator, config: SyntheticConfig, textures: TextureSet, frames: int
    ) -> None:
        self._rng = rng
        self._frames = frames
        self._config = config
        self._mover = Mover(rng, config)
        self._wardrobe = Wardrobe(rng, config, textures)
        self._frame: Box = (0.0, 0.0, config.width - 1.0, config.height - 1.0)
        # The unit of sizes: more than the shorter side if the frame is wide.
        shorter = min(config.height, config.width)
        self._side = min(1.3 * shorter, float(np.sqrt(config.height * config.width)))

    def layers(self) -> list[Layer]:
        rng, config = self._rng, self._config
        count = int(rng.integers(config.min_layers, config.max_layers + 1))
        near, far = rng.uniform(0.8, 1.8), rng.uniform(0.2, 0.8)
        layers = [self._background(far)]
        for depth in np.sort(rng.uniform(0.05, 0.9, count))[::-1].tolist():
            parallax = near + (far - near) * depth
            if config.articulated_share and rng.uniform() < config.articulated_share:
                layers += self._limbs(depth, parallax)
                continue
            layer = self._thing(depth, parallax)
            if layer is not None:
                layers.append(layer)
        return layers

    def _background(self, parallax: float) -> Layer:
        center = (self._config.width / 2, self._config.height / 2)
        motion = self._mover.draw(self._frame, center, parallax, still_share=_STILL)
        to_local = plane_at(center, self._rng.normal(0, 0.15))
        domain = self._shown(to_local, motion)
        return self._make(None, domain, to_local, motion, depth=1.0)

    def _thing(self, depth: float, parallax: float) -> Layer | None:
        rng, config = self._rng, self._config
        center = (rng.uniform(-0.05, 1.05) * config.width, rng.uniform(-0.05, 1.05) * config.height)
        shape, angle = self._shape()
        to_local = plane_at(center, angle)
        seen = common(bounds(invert(to_local), shape.box), self._frame)
        if seen[2] - seen[0] < 1 or seen[3] - seen[1] < 1:
            return None
        motion = self._mover.draw(seen, center, parallax, still_share=config.still_share)
        return self._piece(shape, to_local, motion, depth)

    def _piece(self, shape: Shape, to_local: Affine, motion: Motion, depth: float) -> Layer | None:
        """Return a layer with an outline, or None if hardly anything of it is in the frames."""
        domain = common(self._shown(to_local, motion), grown(shape.box, MARGIN))
        if domain[2] - domain[0] < LEAST or domain[3] - domain[1] < LEAST:
            return None
        return self._make(shape, domain, to_local, motion, depth=depth)

    def _limbs(self, depth: float, parallax: float) -> list[Layer]:
        """Return the layers of an arm, a leg or a tail: a chain whose joints turn."""
        rng, config = self._rng, self._config
        root = (rng.uniform(0.05, 0.95) * config.width, rng.uniform(0.05, 0.95) * config.height)
        chain = draw_chain(rng, root, log_uniform(rng, 0.06 * self._side + 4, 0.22 * self._side))
        around = common(grown((*root, *root), chain.lengths[0]), self._frame)
        base = self._mover.draw(around, root, parallax, still_share=config.still_share).affine
        boxes = [common(box, self._frame) for box in chain.boxes()]
        layers = []
        for limb, motion in enumerate(chain.motions(base, boxes, config, self._frames)):
            to_local = plane_at(chain.joints[limb], chain.angles[limb])
            layer = self._piece(chain.shape(limb), to_local, motion, depth)
            layers += [] if layer is None else [layer]
        return layers

    def _shape(self) -> tuple[Shape, float]:
        """Draw an outline and its rotation."""
        rng, side = self._rng, self._side
        thin = rng.uniform() < self._config.thin_share
        if not thin and rng.uniform() < 0.18:
            reach = 2.0 * max(self._config.height, self._config.width)
            # Mostly from below, as the ground is.
            angle = rng.normal(0, 0.2) + rng.choice([0, 0, 0, 0.5, 1, 1.5]) * np.pi
            return ground(rng, reach, rng.uniform(0.02, 0.35) * side), angle
        shape = draw_shape(rng, log_uniform(rng, 0.05 * side + 3, 0.45 * side), thin)
        upright = rng.uniform() < 0.3
        return shape, rng.normal(0, 0.15) if upright else rng.uniform(0, 2 * np.pi)

    def _shown(self, to_local: Affine, motion: Motion) -> Box:
        # While the shutter is open, more comes into view.
        blur = self._config.shutter * farthest(motion.affine, self._frame)
        margin = 0.5 * min(blur, longest_blur(self._config))
        return shown(self._frame, to_local, motion, margin, self._frames)

    def _make(
        self, shape: Shape | None, domain: Box, to_local: Affine, motion: Motion, *, depth: float
    ) -> Layer:
        return make_layer(shape, domain, to_local, motion, depth=depth, dress=self._wardrobe.dress)


def shown(
    frame: Box, to_local: Affine, motion: Motion, margin: float = 0.0, frames: int = 2
) -> Box:
    """Return the part of a layer's plane that one of the frames can show."""
    seen = bounds(to_local, frame)
    for number in range(1, frames):
        seen = united(seen, bounds(compose(to_local, invert(motion.at(number))), frame))
    bent = motion.elastic.reach if motion.elastic else 0.0
    return grown(seen, MARGIN + margin + bent)


def make_layer(
    shape: Shape | None,
    domain: Box,
    to_local: Affine,
    motion: Motion,
    *,
    depth: float,
    dress: Dress,
) -> Layer:
    """Return the layer with an outline, or without one for a background.

    The outline is in the layer's own plane, to which `to_local` maps the first frame; `domain` is
    the part of this plane that is needed. `dress` makes the texture, as `Wardrobe.dress` does.
    """
    left, top = domain[:2]
    columns = int(np.ceil((domain[2] - left) * _DENSITY))
    rows = int(np.ceil((domain[3] - top) * _DENSITY))
    width, height = columns / _DENSITY, rows / _DENSITY
    box = (left, top, left + width, top + height)
    mask = None if shape is None else shape.coverage(box, (columns, rows))
    texels = Texels.of(dress((width, height), (columns, rows), mask))
    if shape is not None:
        texels.clear_border()
    d = _DENSITY
    # The center of the first texel is half a texel inside the box.
    to_texels = np.array([[d, 0.0, -d * left - 0.5], [0.0, d, -d * top - 0.5]])
    place = compose(to_texels, to_local)
    return Layer(texels, place, motion, depth=depth, solid=shape is None)


def plane_at(center: tuple[float, float], angle: float) -> Affine:
    """Return the map to a layer's own plane, whose origin is the center."""
    moved = about(center, similarity(-angle, 1.0))
    moved[:, 2] -= center
    return moved
