"""Effects of a camera: light, fog, lens and sensor."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from hamflow.datasets.synthetic.compose import Canvas, Haze, Surface, Visible, composite
from hamflow.datasets.synthetic.config import SyntheticConfig, longest_blur
from hamflow.datasets.synthetic.geometry import Floats
from hamflow.datasets.synthetic.gloss import Glossy, Spot, draw_spots
from hamflow.datasets.synthetic.motion import log_uniform

_STEP = 3.0  # pixels between two positions of a blurred motion
_MOST = 65  # positions: in large frames they are farther apart, which does not show there
_GLOSSY = 0.5  # probability that a layer has spots in a scene with such
_SHARP = 0.25  # pixels: less defocus than this does not show


@dataclass(frozen=True, eq=False)
class Look:
    """The effects on one whole frame."""

    gain: Floats  # of the color channels
    gamma: float  # 1 for no change
    slope: NDArray[np.float64]  # how much brighter it gets to the right and downwards
    shade: Floats | None  # (H, W, 1): factor of soft shadows and vignette
    blur: float  # standard deviation in pixels
    read_noise: float  # standard deviation in gray levels
    shot_noise: float  # the same for white pixels
    quality: int  # of JPEG compression; 0 for none


class Cast(NamedTuple):
    """The arguments of `Layer.shadow`."""

    offset: tuple[float, float]
    sigma: float
    strength: float


@dataclass(frozen=True, eq=False)
class Effects:
    """All effects of a scene."""

    looks: tuple[Look, ...]  # of each frame
    hazes: tuple[Haze, ...] | None  # the fog of each frame
    softness: list[float]  # of each layer: defocus as a standard deviation in pixels
    cast: Cast | None  # the shadows of layers on those behind them
    shutter: float  # share of the time between the frames in which the shutter is open
    blur: float  # how far the fastest layer moves in this time, in pixels
    spots: list[list[Spot]]  # on each layer

    @property
    def times(self) -> list[float]:
        """The times to render during the exposure, whose middle is at 0."""
        # An odd number, so that one of them is 0.
        half = min(int(np.ceil(self.blur / (2 * _STEP))), _MOST // 2)
        return [float(t) for t in self.shutter * np.arange(-half, half + 1) / max(1, 2 * half)]

    def dress(self, layers: Sequence[Surface]) -> list[Visible]:
        """Return the layers with defocus, shadows and spots, from back to front."""
        seen: list[Visible] = []
        for layer, sigma, spots in zip(layers, self.softness, self.spots, strict=True):
            if self.cast is not None and not layer.solid:
                shadow = layer.shadow(*self.cast)
                seen += [] if shadow is None else [shadow]
            sharp = layer.softened(sigma) if sigma > _SHARP else layer
            seen.append(Glossy(sharp, spots) if spots else sharp)
        return seen


def draw_effects(
    rng: np.random.Generator, config: SyntheticConfig, layers: Sequence[Surface], frames: int = 2
) -> Effects:
    """Draw the effects of a scene.

    Light, fog and focus alternate between two states if there are more than two frames.
    """
    on = {
        name: rng.uniform() < getattr(config, name)
        for name in (
            "illumination", "shadow", "fog", "motion_blur", "defocus", "noise", "vignette", "jpeg",
        )
    }  # fmt: skip
    change = config.illumination_strength * on["illumination"]
    gains = np.exp(rng.normal(0, 0.3 * change, (2, 1)) + rng.normal(0, 0.1 * change, (2, 3)))
    gammas = np.exp(rng.normal(0, 0.25 * change, 2))
    slopes = rng.normal(0, 0.4 * change, (2, 2))
    dark = config.shadow_strength * rng.uniform(0.3, 1) * on["shadow"]
    cast = _draw_cast(rng, config, dark) if rng.uniform() < 0.6 and dark else None
    shades = _shades(
        rng,
        config,
        dark if cast is None or rng.uniform() < 0.4 else 0.0,
        config.vignette_strength * rng.uniform(0.3, 1) * on["vignette"],
        frames,
    )
    hazes = None
    if on["fog"]:
        states = _hazes(rng, config.fog_strength)
        hazes = tuple(states[k % 2] for k in range(frames))
    whole = on["defocus"] and rng.uniform() < 0.5
    blurs = np.zeros(2)
    softness = [0.0] * len(layers)
    if whole:
        blurs[:] = log_uniform(rng, 0.3, config.defocus_strength)
        if rng.uniform() < 0.4:  # the focus changes between the frames
            blurs[int(rng.integers(2))] *= rng.uniform(0, 1)
    elif on["defocus"]:
        focus, strength = rng.uniform(0, 1), rng.uniform(0.3, 1.3) * config.defocus_strength
        softness = [strength * abs(layer.depth - focus) for layer in layers]
    level = log_uniform(rng, 0.5, max(0.5, config.noise_strength)) * on["noise"]
    read = level * rng.uniform(0.2, 0.8)
    quality = int(rng.integers(35, 90)) * on["jpeg"]
    looks = tuple(
        Look(
            gain=gains[k % 2].astype(np.float32),
            gamma=float(gammas[k % 2]),
            slope=slopes[k % 2],
            shade=shades[k],
            blur=float(blurs[k % 2]) if blurs[k % 2] > 0.2 else 0.0,
            read_noise=read,
            shot_noise=float(np.sqrt(max(0.0, level**2 - read**2))),
            quality=quality,
        )
        for k in range(frames)
    )
    shutter = config.shutter * rng.uniform(0.3, 1) * on["motion_blur"]
    speed = max(layer.displacement((config.height, config.width)) for layer in layers)
    shutter = min(shutter, longest_blur(config) / max(speed, 1e-3))
    # A surface that passes the camera is infinitely fast, and then the shutter is never open.
    blur = shutter * speed if shutter else 0.0
    spots = _draw_spots(rng, config, layers)
    return Effects(looks, hazes, softness, cast, shutter, blur, spots)


def _draw_spots(
    rng: np.random.Generator, config: SyntheticConfig, layers: Sequence[Surface]
) -> list[list[Spot]]:
    if not config.specular or rng.uniform() >= config.specular:
        return [[] for _ in layers]
    shape = (config.height, config.width)
    return [
        []
        if layer.solid or rng.uniform() > _GLOSSY
        else draw_spots(rng, layer, shape, config.specular_strength)
        for layer in layers
    ]


def _draw_cast(rng: np.random.Generator, config: SyntheticConfig, strength: float) -> Cast:
    side = min(config.height, config.width)
    length, angle = log_uniform(rng, 0.008, 0.06) * side, rng.normal(np.pi / 4, 0.8)
    offset = (float(length * np.cos(angle)), float(length * np.sin(angle)))
    return Cast(offset, 1.0 + length * rng.uniform(0.2, 0.6), strength)


def _hazes(rng: np.random.Generator, strength: float) -> tuple[Haze, Haze]:
    color = (rng.uniform(90, 240) * (1 + rng.normal(0, 0.06, 3))).clip(0, 255).astype(np.float32)
    first = strength * rng.uniform(0.2, 1)
    second = first * np.exp(rng.normal(0, 0.15))
    near = rng.uniform(0, 0.4)
    return Haze(first, near, color), Haze(float(second), near, color)


def _shades(
    rng: np.random.Generator, config: SyntheticConfig, shadow: float, vignette: float, frames: int
) -> list[Floats | None]:
    """Return a factor for each frame: moving shadows, and a vignette that stays."""
    size = (config.width, config.height)
    cells = int(rng.integers(3, 9))
    field = rng.uniform(0, 1, (cells + 6, cells + 6)).astype(np.float32)
    moved = rng.normal(0, 0.15, 2) * min(1.0, config.max_displacement / 40)
    start = 3 + rng.uniform(-1, 1, 2)
    edge, soft = rng.uniform(0.4, 0.65), rng.uniform(0.05, 0.3)
    shades: list[Floats | None] = []
    for k in range(frames):
        if not shadow and not vignette:
            shades.append(None)
            continue
        factor = np.ones((config.height, config.width), np.float32)
        if shadow:
            left, top = np.clip(start + k * moved * cells, 0, 6)
            smooth = Image.fromarray(field).resize(
                size, Image.Resampling.BICUBIC, (left, top, left + cells, top + cells)
            )
            dark = np.clip((np.asarray(smooth) - edge) / soft + 0.5, 0, 1)
            factor -= np.float32(shadow) * dark
        if vignette:
            x, y = np.linspace(-1, 1, size[0]), np.linspace(-1, 1, size[1])
            radius = (x[None, :] ** 2 + y[:, None] ** 2).astype(np.float32)
            factor *= 1 - np.float32(0.5 * vignette) * radius
        shades.append(factor[:, :, None])
    return shades


def film(
    rng: np.random.Generator,
    canvas: Canvas,
    layers: Sequence[Visible],
    effects: Effects,
    frame: int,
) -> NDArray[np.uint8]:
    """Render a frame with all effects: (H, W, 3) uint8. `rng` is for the noise."""
    look = effects.looks[frame]
    haze = effects.hazes[frame] if effects.hazes else None
    times = effects.times
    image = composite(canvas, layers, frame, haze, times[0])
    for time in times[1:]:
        image += composite(canvas, layers, frame, haze, time)
    if len(times) > 1:
        image *= np.float32(1 / len(times))
    if look.shade is not None:
        image *= look.shade
    image *= look.gain
    if look.slope.any():
        across = np.linspace(-0.5, 0.5, canvas.width, dtype=np.float32) * look.slope[0]
        down = np.linspace(-0.5, 0.5, canvas.height, dtype=np.float32) * look.slope[1]
        image *= np.clip(1 + across[None, :] + down[:, None], 0.2, 2).astype(np.float32)[..., None]
    if look.gamma != 1:
        np.clip(image, 0, 255, out=image)
        image = np.float32(255) * (image * np.float32(1 / 255)) ** np.float32(look.gamma)
    if look.blur:
        blurred = to_picture(image).filter(ImageFilter.GaussianBlur(look.blur))
        image = np.asarray(blurred).astype(np.float32)
    if look.read_noise or look.shot_noise:
        variance = image * np.float32(look.shot_noise**2 / 255) + np.float32(look.read_noise**2)
        grain = rng.standard_normal(image.shape, np.float32)
        image += np.sqrt(np.maximum(variance, 0)) * grain
    picture = to_picture(image)
    if look.quality:
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=look.quality)
        picture = Image.open(file)
    return np.array(picture)


def to_picture(image: Floats) -> Image.Image:
    """Round an (H, W, 3) image from 0 to 255 to 8 bits."""
    return Image.fromarray(np.rint(np.clip(image, 0, 255)).astype(np.uint8))
