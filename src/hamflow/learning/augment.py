"""Augmentation: random changes of a training pair; the same seed gives the same changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow.learning.config import AugmentConfig

_Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Sample:
    """A training pair: images (H, W, 3) from 0 to 1, flow (H, W, 2), and the occluded pixels."""

    image0: _Floats
    image1: _Floats
    flow: _Floats
    occluded: NDArray[np.bool_]


def augment(
    sample: Sample, config: AugmentConfig, crop: tuple[int, int] | None, rng: np.random.Generator
) -> Sample:
    """Return the pair rescaled, cropped, mirrored, and changed in light, sharpness and noise."""
    if config.rescale > 1:
        sample = _rescaled(sample, float(config.rescale ** rng.uniform(-1, 1)), crop)
    if crop is not None:
        sample = _cropped(sample, crop, rng)
    if config.mirror:
        sample = _mirrored(sample, rng)
    images = [sample.image0, sample.image1]
    if rng.random() < config.photometric:
        images = _relit(images, config.strength, rng)
    images = [
        _blurred(image, rng.uniform(0, config.max_blur)) if rng.random() < config.blur else image
        for image in images
    ]
    if config.noise:
        deviation = rng.uniform(0, config.noise)
        images = [
            image + np.float32(deviation) * rng.standard_normal(image.shape, np.float32)
            for image in images
        ]
    first, second = (np.clip(image, 0, 1) for image in images)
    return Sample(first, second, sample.flow, sample.occluded)


def _rescaled(sample: Sample, factor: float, crop: tuple[int, int] | None) -> Sample:
    """Resample at `factor` times the size, but not smaller than the crop."""
    height, width = sample.flow.shape[:2]
    if crop is not None:
        factor = max(factor, min(1.0, max(crop[0] / height, crop[1] / width)))
    rows, columns = max(1, round(height * factor)), max(1, round(width * factor))
    y = (np.arange(rows, dtype=np.float32) + 0.5) * (height / rows) - 0.5
    x = (np.arange(columns, dtype=np.float32) + 0.5) * (width / columns) - 0.5
    # The flow of the nearest pixel: a mean across a motion boundary would be wrong on both sides.
    near_y = np.clip(np.rint(y), 0, height - 1).astype(np.intp)
    near_x = np.clip(np.rint(x), 0, width - 1).astype(np.intp)
    near = np.ix_(near_y, near_x)
    scales = np.array([columns / width, rows / height], np.float32)

    def resampled(image: _Floats) -> _Floats:
        # Blurred before downsampling, against aliasing.
        source = _blurred(image, 0.5 * (1 / factor - 1) + 0.3) if factor < 1 else image
        return _bilinear(_bilinear(source, y, 0), x, 1)

    return Sample(
        resampled(sample.image0),
        resampled(sample.image1),
        sample.flow[near] * scales,
        sample.occluded[near],
    )


def _bilinear(image: _Floats, places: _Floats, axis: int) -> _Floats:
    places = np.clip(places, 0, image.shape[axis] - 1)
    before = np.minimum(places.astype(np.intp), max(image.shape[axis] - 2, 0))
    after = np.minimum(before + 1, image.shape[axis] - 1)
    share = (places - before).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
    mixed = image.take(before, axis) * (1 - share) + image.take(after, axis) * share
    return np.asarray(mixed, np.float32)


def _cropped(sample: Sample, crop: tuple[int, int], rng: np.random.Generator) -> Sample:
    height, width = sample.flow.shape[:2]
    rows, columns = min(crop[0], height), min(crop[1], width)
    top = int(rng.integers(height - rows + 1))
    left = int(rng.integers(width - columns + 1))
    part = slice(top, top + rows), slice(left, left + columns)
    return Sample(
        sample.image0[part], sample.image1[part], sample.flow[part], sample.occluded[part]
    )


def _mirrored(sample: Sample, rng: np.random.Generator) -> Sample:
    arrays: list[NDArray[Any]] = [sample.image0, sample.image1, sample.flow, sample.occluded]
    for axis in (0, 1):
        if rng.random() < 0.5:
            arrays = [np.flip(array, axis) for array in arrays]
            sign = np.array([-1, 1] if axis == 1 else [1, -1], np.float32)
            arrays[2] = arrays[2] * sign
    if arrays[2].shape[0] == arrays[2].shape[1] and rng.random() < 0.5:
        arrays = [np.swapaxes(array, 0, 1) for array in arrays]
        arrays[2] = arrays[2][..., ::-1]
    return Sample(*(np.ascontiguousarray(array) for array in arrays))


def _relit(images: list[_Floats], strength: float, rng: np.random.Generator) -> list[_Floats]:
    """Change contrast, brightness, colors and gamma, partly the same in both images."""
    common = rng.normal(size=6)
    changed = []
    for image in images:
        drawn = strength * (common + 0.7 * rng.normal(size=6))
        gains = np.exp(drawn[0] + 0.5 * drawn[1:4]).astype(np.float32)
        middle = np.float32(image.mean())
        lit = (image - middle) * np.float32(np.exp(drawn[4])) + middle
        lit = np.clip(lit * gains, 0, 1) ** np.float32(np.exp(drawn[5]))
        changed.append(lit)
    return changed


def _blurred(image: _Floats, sigma: float) -> _Floats:
    if sigma < 0.2:
        return image
    radius = int(np.ceil(2.5 * sigma))
    taps = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2).astype(np.float32)
    taps /= taps.sum()
    for axis in (0, 1):
        widths = [(radius, radius) if a == axis else (0, 0) for a in range(3)]
        padded = np.pad(image, widths, "edge")
        size = image.shape[axis]
        image = np.zeros_like(image)
        for shift, tap in enumerate(taps):
            image += tap * padded.take(range(shift, shift + size), axis)
    return image
