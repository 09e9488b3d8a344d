"""One layer: a texture with an outline, and its place in each frame."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from hamflow import _native
from hamflow.datasets.synthetic.geometry import (
    IDENTITY,
    Affine,
    Box,
    Elastic,
    Floats,
    apply,
    bounds,
    common,
    compose,
    farthest,
    grown,
    invert,
    partway,
)
from hamflow.datasets.synthetic.motion import Motion

FULL = 255 * 256  # the largest value of an interpolated color or coverage
HALF = FULL // 2
_SHADOW_REDUCTION = 3  # shadows are soft, so fewer texels will do
Lanes = NDArray[np.uint16]
"""(N, 4): red, green, blue and coverage from 0 to `FULL`."""


@dataclass(frozen=True, eq=False)
class Texels:
    """Red, green, blue and coverage on a grid, four 16-bit lanes in a 64-bit word.

    All four are interpolated at once: the lanes hold 8 bits and the weights sum to 256, so no lane
    overflows into the next.
    """

    words: NDArray[np.uint64]  # (height, width), at least 2 each

    @classmethod
    def of(cls, picture: Image.Image) -> Texels:
        """Pack an RGBA picture."""
        return cls(np.asarray(picture).astype(np.uint16).view(np.uint64)[:, :, 0])

    @property
    def width(self) -> int:
        """How many texels there are in a row."""
        return int(self.words.shape[1])

    @property
    def height(self) -> int:
        """How many rows there are."""
        return int(self.words.shape[0])

    def picture(self) -> Image.Image:
        """Return the RGBA picture."""
        lanes = self.words.view(np.uint16).astype(np.uint8)
        return Image.fromarray(lanes.reshape(self.height, self.width, 4))

    def clear_border(self) -> None:
        """Set the coverage of the border to 0: places outside of the grid are clipped to it."""
        coverage = self.words.view(np.uint16).reshape(self.height, self.width, 4)[:, :, 3]
        coverage[[0, -1]] = 0
        coverage[:, [0, -1]] = 0

    def look_up(self, x: Floats, y: Floats) -> Lanes:
        """Interpolate at N places in texels, which are clipped to the grid."""
        lanes = np.empty((len(x), 4), np.uint16)
        _native.look_up(self.words, x, y, lanes)
        return lanes


@dataclass(frozen=True, eq=False)
class Layer:
    """A texture with an outline, and its motion.

    A pixel x of the first frame shows what the layer has at ``place(x + elastic(x))``, a pixel of
    the second what it has at ``place(inverse motion(x))``. So x goes to ``motion(x + elastic(x))``,
    exactly. In longer sequences, the motion goes on, and the bending swings: it is gone in the
    second frame, reversed in the third, and gone again in the fourth.
    """

    texels: Texels
    place: Affine  # from the first frame, after the bending, to texels
    motion: Motion
    depth: float  # 1 for the farthest, 0 for the nearest
    solid: bool = False  # whether it covers the whole frame, as only the background does

    @cached_property
    def _backs(self) -> dict[int, Affine]:
        return {}

    def _back(self, frame: int) -> Affine:
        """Return the map from a frame to the first one, before the bending."""
        if frame not in self._backs:
            self._backs[frame] = invert(self.motion.at(frame)) if frame else IDENTITY
        return self._backs[frame]

    def _bending(self, frame: int) -> Elastic | None:
        """Return the bending in a frame; it swings."""
        factor = (1, 0, -1, 0)[frame % 4]
        if self.motion.elastic is None or factor == 0:
            return None
        return self.motion.elastic.scaled(factor)

    @cached_property
    def _density(self) -> float:
        """Texels per pixel."""
        return float(np.sqrt(abs(np.linalg.det(self.place[:, :2]))))

    def softened(self, sigma: float) -> Layer:
        """Return the layer out of focus, by a standard deviation in pixels."""
        blurred = self.texels.picture().filter(ImageFilter.GaussianBlur(sigma * self._density))
        return replace(self, texels=Texels.of(blurred))

    def shadow(self, offset: tuple[float, float], sigma: float, strength: float) -> Layer:
        """Return the soft shadow that the layer casts on the layers behind it.

        `offset` and the standard deviation `sigma` are in pixels, `strength` is from 0 to 1.
        """
        mask = self.texels.picture().getchannel("A").reduce(_SHADOW_REDUCTION)
        blur = sigma * self._density / _SHADOW_REDUCTION
        border = 1 + int(np.ceil(2.5 * blur))
        wide = Image.new("L", (mask.width + 2 * border, mask.height + 2 * border))
        wide.paste(mask, (border, border))
        dark = wide.filter(ImageFilter.GaussianBlur(blur)).point(lambda a: int(strength * a))
        black = Image.new("L", dark.size)
        picture = Image.merge("RGBA", (black, black, black, dark))
        # A texel of the mask covers several texels of the layer.
        half, reduction = 0.5 * (_SHADOW_REDUCTION - 1), 1.0 / _SHADOW_REDUCTION
        shrink = np.array([[1.0, 0, -half], [0, 1, -half]]) * reduction
        shrink[:, 2] += border
        shifted = compose(self.place, np.array([[1, 0, -offset[0]], [0, 1, -offset[1]]]))
        place = compose(shrink, shifted)
        return replace(self, texels=Texels.of(picture), place=place)

    def box(self, frame: int, time: float = 0.0) -> Box:
        """Return the part of a frame in which the layer may be visible."""
        back = self._back(frame)
        to_frame = invert(compose(self.place, back))
        if time:
            to_frame = compose(partway(self.motion.affine, time), to_frame)
        box = bounds(to_frame, (0.0, 0.0, self.texels.width - 1.0, self.texels.height - 1.0))
        bending = self._bending(frame)
        if bending is not None:
            stretch = float(np.linalg.norm(self.motion.at(frame)[:, :2], 2))
            box = grown(box, bending.reach * 1.3 * stretch)
        return box

    def coordinates(
        self, frame: int, x: Floats, y: Floats, time: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Return the texels that places (in pixels, broadcast) of a frame show.

        For motion blur, the frame is rendered `time` later, in units of the time between frames.
        """
        before = invert(partway(self.motion.affine, time)) if time else IDENTITY
        back = compose(self._back(frame), before)
        bending = self._bending(frame)
        if bending is None:
            return apply(compose(self.place, back), x, y)
        if frame or time:
            x, y = apply(back, x, y)
        dx, dy = bending(x, y)
        return apply(self.place, x + dx, y + dy)

    def look(self, frame: int, x: Floats, y: Floats, time: float = 0.0) -> Lanes:
        """Return color and coverage at places of a frame; parameters as for `coordinates`."""
        return self.texels.look_up(*self.coordinates(frame, x, y, time))

    def depths(self, frame: int, x: Floats, y: Floats) -> float:
        """Return the depth, which all of a layer shares."""
        return self.depth

    def covers(self, frame: int, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Return where the layer covers more than half of a place."""
        return self.look(frame, x, y)[:, 3] > HALF

    def displacement(self, shape: tuple[int, int]) -> float:
        """Return how far a pixel of the first frame that shows the layer moves at most."""
        seen = common(self.box(0), (0.0, 0.0, shape[1] - 1.0, shape[0] - 1.0))
        return (
            farthest(self.motion.affine, seen) if seen[0] < seen[2] and seen[1] < seen[3] else 0.0
        )

    def follow(self, frame: int, other: int, x: Floats, y: Floats) -> tuple[Floats, Floats, bool]:
        """Return where places of one frame are in another, and that the layer faces the camera."""
        if frame:
            x, y = apply(self._back(frame), x, y)
        here, there = self._bending(frame), self._bending(other)
        if here is not None:
            dx, dy = here(x, y)
            x, y = x + dx, y + dy
        if there is not None:
            x, y = there.undo(x, y)
        return (*(apply(self.motion.at(other), x, y) if other else (x, y)), True)
