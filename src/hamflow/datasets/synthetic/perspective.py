"""Scenes in space: ground, walls, boxes, poles and flying things, before a moving camera.

Lengths are in heights of the camera above the ground. Patches are ordered from far to near once,
and both frames and the truth go by that order, so the truth is exact even where real things would
pass through each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hamflow.datasets.synthetic import curved
from hamflow.datasets.synthetic.config import SyntheticConfig
from hamflow.datasets.synthetic.layer import Texels
from hamflow.datasets.synthetic.mesh import Mesh, Sway
from hamflow.datasets.synthetic.motion import log_uniform
from hamflow.datasets.synthetic.patch import Matrix, Patch, Rigid, View, rotation
from hamflow.datasets.synthetic.shapes import Shape, draw_shape
from hamflow.datasets.synthetic.skin import Wardrobe
from hamflow.datasets.synthetic.textures import TextureSet

Vector = NDArray[np.float64]

_MOST_TEXELS = 600  # along a side of a texture
_OVERSAMPLING = 1.3  # texels per pixel, where that is affordable
_RIGHT, _DOWN, _AHEAD = np.eye(3)
_STILL = Rigid(np.zeros(3), np.zeros(3), np.zeros(3))


def set_perspective(
    rng: np.random.Generator, config: SyntheticConfig, textures: TextureSet, frames: int = 2
) -> list[Patch | Mesh]:
    """Draw the surfaces of a scene in space, from back to front."""
    return _Space(rng, config, textures, frames).surfaces()


class _Space:
    def __init__(
        self, rng: np.random.Generator, config: SyntheticConfig, textures: TextureSet, frames: int
    ) -> None:
        self._rng = rng
        self._frames = frames
        self._config = config
        self._wardrobe = Wardrobe(rng, config, textures)
        side = max(config.height, config.width)
        self._focal = rng.uniform(0.7, 1.5) * side
        horizon = rng.uniform(0.25, 0.6) * config.height
        self._center = (config.width / 2 + rng.normal(0, 0.05) * side, horizon)
        # Where the lowest row of the frame meets the ground, and where the ground ends.
        self._nearest = self._focal / (config.height - horizon)
        self._farthest = self._nearest * log_uniform(rng, 5, 16)
        self._range = (self._nearest, self._farthest)
        self._view = View(self._focal, self._center, self._range, _STILL)

    def surfaces(self) -> list[Patch | Mesh]:
        rng = self._rng
        camera = self._camera()
        things: list[tuple[float, Sequence[Patch | Mesh]]] = []
        for _ in range(int(rng.integers(0, 4))):
            things.append(self._wall())
        for _ in range(int(rng.integers(0, 6))):
            things.append(self._curved() if self._bent() else self._body())
        for _ in range(int(rng.integers(1, 7))):
            things.append(self._cloth() if self._bent() else self._flat())
        things.sort(key=lambda thing: -thing[0])
        ordered = [*self._ground(), *(surface for _, thing in things for surface in thing)]
        return self._moving(ordered, camera)

    def _bent(self) -> bool:
        share = self._config.curved_share
        return share > 0 and self._rng.uniform() < share

    def _moving(self, surfaces: list[Patch | Mesh], camera: Rigid) -> list[Patch | Mesh]:
        """Let the camera and the things move as far as the settings say."""
        config, rng = self._config, self._rng
        small = rng.uniform() < config.small_share
        # A little below the limit, because displacements are measured on a grid of pixels.
        limit = 0.95 * config.max_displacement
        reach = log_uniform(rng, 0.15 * limit, limit)
        if small:
            reach = min(reach, log_uniform(rng, 0.5, 6.0))
        shape, factor = (config.height, config.width), 1.0
        moved = [p.moving(self._view, 0.0) for p in surfaces]
        samples = [p.samples(shape) for p in surfaces]
        for _ in range(12):
            view = replace(self._view, motion=camera.scaled(factor))
            tried = [p.moving(view, factor) for p in surfaces]
            farthest = max(p.farthest(s) for p, s in zip(tried, samples, strict=True))
            for frame in range(1, self._frames - 1):
                later = (p.farthest(p.samples(shape, frame), frame + 1) for p in tried)
                farthest = max(farthest, *later)
            if farthest <= reach:
                moved = tried
            if 0.8 * reach <= farthest <= reach:
                break
            # Nearly proportional, unless something gets close to the camera.
            step = reach / farthest if 0 < farthest < np.inf else 0.3
            factor *= float(np.clip(0.9 * step, 0.2, 4.0))
        return moved

    def _camera(self) -> Rigid:
        rng = self._rng
        kind = rng.uniform()
        if kind < 0.45:  # driving: forward, with a little steering
            shift = np.array([rng.normal(0, 0.04), rng.normal(0, 0.02), -1.0]) * rng.choice(
                [1, 1, 1, -1]
            )
            turn = np.array([rng.normal(0, 0.005), rng.normal(0, 0.03), rng.normal(0, 0.004)])
        elif kind < 0.7:  # panning
            shift = np.array([rng.normal(0, 1), rng.normal(0, 0.2), rng.normal(0, 0.3)])
            turn = np.array([rng.normal(0, 0.02), rng.normal(0, 0.08), rng.normal(0, 0.01)])
        elif kind < 0.9:  # held in the hand
            shift, turn = rng.normal(0, 0.4, 3), rng.normal(0, 0.04, 3)
        else:
            return _STILL
        return Rigid(turn, shift * rng.uniform(0.1, 0.5), np.zeros(3))

    # --- what there is ----------------------------------------------------------------------------

    def _ground(self) -> list[Patch]:
        """Return the backdrop, the ground in the distance, and that in front of the camera."""
        far, near = self._farthest, self._nearest
        height, width = self._config.height, self._config.width
        half = 0.9 * max(height, width) / self._focal * far + 2
        backdrop = self._patch(
            -half * _RIGHT - half * _DOWN + far * _AHEAD,
            2 * half * _RIGHT,
            2 * half * _DOWN,
            far,
            solid=True,
        )
        patches = [backdrop]
        middle = near * log_uniform(self._rng, 1.8, 3.0)
        for start, end in ((middle, 1.02 * far), (0.35 * near, 1.03 * middle)):
            side = 0.8 * width / self._focal * end + 0.7
            patches.append(
                self._patch(
                    -side * _RIGHT + _DOWN + end * _AHEAD,
                    2 * side * _RIGHT,
                    (start - end) * _AHEAD,
                    (start + end) / 2,
                )
            )
        return patches

    def _wall(self) -> tuple[float, list[Patch]]:
        """Return a wall beside the way, or across it."""
        rng = self._rng
        start = self._nearest * log_uniform(rng, 0.8, 5)
        length, height = log_uniform(rng, 2, 12), log_uniform(rng, 0.7, 4)
        side = rng.choice([-1, 1]) * rng.uniform(0.7, 3.5)
        angle = rng.normal(0, 0.15) + (np.pi / 2 if rng.uniform() < 0.75 else 0.0)
        along = rotation(np.array([0, angle, 0])) @ _RIGHT * length
        corner = side * _RIGHT + (1 - height) * _DOWN + start * _AHEAD
        center = corner + along / 2
        return float(np.linalg.norm(center)), [
            self._patch(corner, along, height * _DOWN, center[2])
        ]

    def _body(self) -> tuple[float, list[Patch]]:
        """Return a box that stands on the ground; many of them move."""
        rng = self._rng
        ahead = self._nearest * log_uniform(rng, 1.1, 6)
        size = log_uniform(rng, 0.12, 0.6) * ahead * np.exp(rng.normal(0, 0.4, 3))
        if rng.uniform() < self._config.thin_share:  # a pole
            size[[0, 2]] = log_uniform(rng, 0.004, 0.03) * ahead
            size[1] = rng.uniform(0.8, 3)
        middle = self._place(ahead)
        middle[1] = 1 - size[1] / 2
        heading = rotation(np.array([0, rng.uniform(0, 2 * np.pi), 0]))
        motion = _STILL
        if rng.uniform() > 0.5 + self._config.still_share / 2:
            speed = heading @ _AHEAD * rng.normal(0, 0.12) * ahead
            motion = Rigid(np.array([0, rng.normal(0, 0.1), 0]), speed, middle)
        return float(np.linalg.norm(middle)), self._faces(middle, size, heading, motion)

    def _faces(self, middle: Vector, size: Vector, heading: Matrix, motion: Rigid) -> list[Patch]:
        faces = []
        width, height, length = size / 2
        # Right, down and toward the inside, as one looks at each face from outside.
        for right, inward, across, deep in (
            (_RIGHT, _AHEAD, width, length),
            (-_RIGHT, -_AHEAD, width, length),
            (_AHEAD, -_RIGHT, length, width),
            (-_AHEAD, _RIGHT, length, width),
        ):
            a, n = heading @ right, heading @ inward
            corner = middle - n * deep - a * across - _DOWN * height
            faces.append((corner, 2 * across * a, 2 * height * _DOWN))
        a, b = heading @ _RIGHT, heading @ -_AHEAD
        faces.append(
            (middle - _DOWN * height - a * width - b * length, 2 * width * a, 2 * length * b)
        )
        return [
            self._patch(*face, middle[2], motion=motion, one_sided=True)
            for face in faces
            if self._may_face(*face)
        ]

    def _may_face(self, corner: Vector, across: Vector, down: Vector) -> bool:
        """Say whether a face of a body is seen, or is hardly turned away and may come into view."""
        middle = corner + (across + down) / 2
        outside = np.cross(across, down)
        return float(outside @ middle) > -0.25 * float(
            np.linalg.norm(outside) * np.linalg.norm(middle)
        )

    def _flat(self) -> tuple[float, list[Patch]]:
        """Return a flat thing of any outline, in the air or on the ground, which may tumble."""
        rng = self._rng
        ahead = self._nearest * log_uniform(rng, 0.9, 7)
        middle = self._place(ahead)
        radius = log_uniform(rng, 0.06, 0.4) * ahead * self._config.height / self._focal
        thin = bool(rng.uniform() < self._config.thin_share)
        tilt = rotation(np.array([rng.normal(0, 0.4), rng.normal(0, 0.6), rng.normal(0, 1.0)]))
        motion = _STILL
        if rng.uniform() > self._config.still_share:
            shift = rng.normal(0, 0.1, 3) * ahead
            motion = Rigid(rng.normal(0, 0.12, 3), shift, middle)
        # In pixels, as shapes have fixed details.
        shape = draw_shape(rng, radius * self._focal / ahead, thin)
        left, top, right, bottom = (edge * ahead / self._focal for edge in shape.box)
        corner = middle + tilt @ (left * _RIGHT + top * _DOWN)
        across, down = tilt @ _RIGHT * (right - left), tilt @ _DOWN * (bottom - top)
        patch = self._patch(corner, across, down, ahead, motion=motion, shape=shape)
        return float(np.linalg.norm(middle)), [patch]

    def _curved(self) -> tuple[float, list[Mesh]]:
        """Return a tube, a ball or something like a vase, or hills."""
        rng = self._rng
        if rng.uniform() < 0.25:
            return self._hills()
        ahead = self._nearest * log_uniform(rng, 1.0, 5)
        size = log_uniform(rng, 0.1, 0.5) * ahead * self._config.height / self._focal
        middle = self._place(ahead)
        upright = rng.uniform() < 0.5
        grid = curved.turned_body(rng, size)
        if upright:
            middle[1] = 1 - grid[..., 1].max()
        tilt = np.eye(3) if upright else rotation(rng.normal(0, 1.0, 3))
        motion = _STILL
        if rng.uniform() > self._config.still_share:
            # It rolls, and may tumble.
            turn = rng.normal(0, 0.3) * (tilt @ _DOWN) + (not upright) * rng.normal(0, 0.06, 3)
            shift = rng.normal(0, 0.08, 3) * ahead * ([1, 0, 1] if upright else [1, 1, 1])
            motion = Rigid(turn, shift, middle)
        # The seam of the texture is behind.
        seam = rotation(np.array([0, np.arctan2(middle[0], middle[2]), 0]))
        points = grid @ (tilt @ seam if upright else tilt).T + middle
        return float(np.linalg.norm(middle)), [self._mesh(points, ahead, motion)]

    def _hills(self) -> tuple[float, list[Mesh]]:
        rng = self._rng
        start = self._nearest * log_uniform(rng, 0.9, 2.5)
        width, length = log_uniform(rng, 1.5, 6), log_uniform(rng, 2, 8)
        middle = np.array([rng.normal(0, 1.5), 1.0, start + length / 2])
        points = curved.hills(rng, width, length) + middle
        mask = Image.fromarray(curved.soft_disc(256))
        return float(np.linalg.norm(middle)), [self._mesh(points, middle[2], _STILL, mask)]

    def _cloth(self) -> tuple[float, list[Mesh]]:
        """Return a sheet that waves and flies."""
        rng = self._rng
        ahead = self._nearest * log_uniform(rng, 0.9, 6)
        middle = self._place(ahead)
        size = log_uniform(rng, 0.15, 0.6) * ahead * self._config.height / self._focal
        tilt = rotation(np.array([rng.normal(0, 0.5), rng.normal(0, 0.6), rng.normal(0, 0.6)]))
        grid, sway = curved.sheet(rng, size, tilt)
        shift = rng.normal(0, 0.08, 3) * ahead
        motion = Rigid(rng.normal(0, 0.08, 3), shift, middle)
        mask = None
        if rng.uniform() < 0.4:
            shape = draw_shape(rng, size * self._focal / ahead / 2, thin=False)
            mask = shape.coverage(shape.box, (256, 256))
        mesh = self._mesh(grid @ tilt.T + middle, ahead, motion, mask, sway)
        return float(np.linalg.norm(middle)), [mesh]

    # --- how it is made ---------------------------------------------------------------------------

    def _place(self, ahead: float) -> Vector:
        """Return a point at some distance that a random pixel shows."""
        rng, config = self._rng, self._config
        pixel = rng.uniform(-0.05, 1.05, 2) * (config.width, config.height)
        x, y = (pixel - self._center) / self._focal * ahead
        return np.array([x, min(y, 1.0), ahead])

    def _patch(
        self,
        corner: Vector,
        across: Vector,
        down: Vector,
        ahead: float,
        *,
        motion: Rigid = _STILL,
        solid: bool = False,
        one_sided: bool = False,
        shape: Shape | None = None,
    ) -> Patch:
        """Return a parallelogram with a texture as fine as its nearest usual view needs it."""
        extent = [float(np.linalg.norm(edge)) for edge in (across, down)]
        density = _OVERSAMPLING * self._focal / max(ahead, self._nearest)
        size = [int(np.clip(np.ceil(length * density), 8, _MOST_TEXELS)) for length in extent]
        mask = None if shape is None else shape.coverage(shape.box, (size[0], size[1]))
        pixels = (size[0] / _OVERSAMPLING, size[1] / _OVERSAMPLING)
        picture = self._wardrobe.dress(pixels, (size[0], size[1]), mask)
        # The outermost texels are not covered; they lie around the parallelogram.
        right, below = across / (size[0] - 2), down / (size[1] - 2)
        plane = np.column_stack([right, below, corner - 0.5 * (right + below)])
        return Patch.of(
            picture,
            plane=plane,
            motion=motion,
            view=self._view,
            depth=1.0 if solid else self._depth(ahead),
            solid=solid,
            one_sided=one_sided,
        )

    def _mesh(
        self,
        points: NDArray[np.float64],
        ahead: float,
        motion: Rigid,
        mask: Image.Image | None = None,
        sway: Sway | None = None,
    ) -> Mesh:
        """Return a curved surface with a texture as fine as its usual view needs it, lit."""
        density = _OVERSAMPLING * self._focal / max(ahead, self._nearest)
        size = [
            int(np.clip(np.ceil(length * density), 16, _MOST_TEXELS))
            for length in curved.extent(points)
        ]
        texels = (size[0], size[1])
        if mask is not None:
            mask = mask.resize(texels, Image.Resampling.BILINEAR)
        pixels = (size[0] / _OVERSAMPLING, size[1] / _OVERSAMPLING)
        picture = self._wardrobe.dress(pixels, texels, mask)
        form = points if sway is None else points + sway.at(0.0, *points.shape[:2])
        light = curved.light(form, self._sun)
        return Mesh(
            Texels.of(curved.lit(picture, light)),
            points,
            motion,
            self._view,
            self._depth(ahead),
            sway,
        )

    @cached_property
    def _sun(self) -> Vector:
        """Where the light comes from."""
        side, back = self._rng.normal(0, 0.8, 2)
        return np.array([side, -1.0, -abs(back)])

    def _depth(self, ahead: float) -> float:
        span = np.log(self._farthest / self._nearest)
        return float(np.clip(np.log(max(ahead, self._nearest) / self._nearest) / span, 0, 1))
