"""How much the flow of a video flickers, and how wrong it is.

    python -m experiments.scripts.flicker [PHOTOGRAPHS] [--count 12] [--presets balanced fast]
        [--temporal off] [--videos FILES] [--frames 24]

renders sequences of 8 frames and prints for each preset the mean endpoint error over all pairs but
the first, and the flicker: the mean change of the flow along itself, |g(x + f(x)) - f(x)| over the
visible pixels, with f the flow of one pair and g that of the next. The truth flickers, too, because
motions change; the excess is the flicker of the error alone, along the true tracks. Half of the
surfaces have no texture, and in half of the sequences the camera shakes. Of real videos, of which
the first frames are taken, there is the flicker alone. The photographs should be others than those
of the training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tyro
from numpy.typing import NDArray

from hamflow import EstimatorConfig, video, warp
from hamflow.config import preset_config
from hamflow.datasets.synthetic import (
    SyntheticConfig,
    SyntheticScene,
    Texture,
    TextureSet,
    load_textures,
    render_sequence,
)
from hamflow.flow import endpoint_error
from hamflow.io.video import open_frames
from hamflow.stages import stage_class

FRAMES = 8
MARGIN = 1  # pixel that a shaking camera moves to each side
CONFIG = SyntheticConfig(
    height=288 + 2 * MARGIN,
    width=512 + 2 * MARGIN,
    max_displacement=24,
    perspective_share=0.4,
    elastic_share=0.2,
    max_layers=8,
)
_PLAIN = 2  # textures without texture for each photograph: a half of all surfaces in the end

Array = NDArray[np.float32]


def plain_textures(photographs: TextureSet) -> TextureSet:
    """Return the photographs with pictures of hardly any texture among them."""
    rng, found = np.random.default_rng(0), list(photographs.photographs)
    for k in range(_PLAIN * len(found)):
        color, slope = rng.uniform(30, 225, 3), rng.normal(0, 8, (2, 3))
        y, x = np.mgrid[-1:1:480j, -1:1:640j][..., None]
        picture = color + slope[0] * x + slope[1] * y + rng.normal(0, 0.5, (480, 640, 1))
        found.append(Texture.of(f"plain {k}", picture.clip(0, 255).astype(np.uint8)))
    return TextureSet(found)


def shaken(pairs: list[SyntheticScene], seed: int) -> list[SyntheticScene]:
    """Return what a camera sees that moves by whole pixels from frame to frame."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(-1, 2, (len(pairs) + 1, 2)) * (seed % 2)
    where = [MARGIN + step for step in steps]

    def part(field: NDArray, left: int, top: int) -> NDArray:  # type: ignore[type-arg]
        height, width = field.shape[:2]
        rows = slice(top, height - 2 * MARGIN + top)
        return np.ascontiguousarray(field[rows, left : width - 2 * MARGIN + left])

    found = []
    for pair, (here, there) in zip(pairs, pairwise(where), strict=True):
        moved = (here - there).astype(np.float32)
        flow, backward = part(pair.flow, *here) + moved, part(pair.backward_flow, *there) - moved
        hidden = part(pair.occluded, *here) | outside(flow)
        hidden_back = part(pair.backward_occluded, *there) | outside(backward)
        images = part(pair.image0, *here), part(pair.image1, *there)
        found.append(SyntheticScene(*images, flow, hidden, backward, hidden_back))
    return found


def outside(flow: Array) -> NDArray[np.bool_]:
    """Return where a flow leaves the image."""
    y, x = np.indices(flow.shape[:2])
    ends = np.stack([x, y], 2) + flow
    return ((ends < -0.5) | (ends > np.array(flow.shape[1::-1]) - 0.5)).any(axis=2)


def change(flow: Array, following: Array, along: Array | None = None) -> Array:
    """Return how much a flow changes along its own tracks, or along others; NaN outside."""
    later = warp(following, flow if along is None else along, fill=np.nan)
    difference: Array = np.hypot(*np.moveaxis(later - flow, 2, 0))
    return difference


class Row(NamedTuple):
    """The figures of two consecutive pairs."""

    error: float
    flicker: float
    true: float
    excess: float


def rendered_rows(config: EstimatorConfig, pairs: list[SyntheticScene]) -> Iterator[Row]:
    """Yield the figures of all pairs but the first."""
    frames = [pairs[0].image0, *(pair.image1 for pair in pairs)]
    results = [item.result for item in video(frames, config)]
    for (before, now), (first, second) in zip(pairwise(results), pairwise(pairs), strict=True):
        seen = ~before.occlusion
        error = endpoint_error(now.flow, second.flow).mean()
        errors = before.flow - first.flow, now.flow - second.flow
        yield Row(
            float(error),
            float(np.nanmean(change(before.flow, now.flow)[seen])),
            float(np.nanmean(change(first.flow, second.flow)[~first.occluded])),
            float(np.nanmean(change(*errors, along=first.flow)[~first.occluded])),
        )


def flicker_of(config: EstimatorConfig, images: Iterable[NDArray[np.uint8]]) -> list[float]:
    """Return the flicker of each two consecutive pairs, but not over cuts."""
    found, before = [], None
    for item in video(images, config):
        now = item.result
        if before is not None and not (before.cut or now.cut):
            values = change(before.flow, now.flow)[~before.occlusion]
            found.append(float(np.nanmean(values)))
        before = now
    return found


def main(
    photographs: tyro.conf.Positional[Path | None] = None,
    *,
    count: int = 12,
    seed: int = 0,
    presets: tuple[str, ...] = ("balanced", "fast"),
    temporal: tuple[str, ...] = ("off", "tracks"),
    videos: tuple[str, ...] = (),
    frames: int = 24,
) -> None:
    """Measure and print."""
    sequences = []
    if photographs is not None:
        textures = plain_textures(load_textures(photographs))
        sequences = [
            shaken(render_sequence(CONFIG, [seed, k], textures, FRAMES), k) for k in range(count)
        ]
    images_of = {}
    for path in videos:
        read = open_frames(path).read()
        images_of[path] = [frame.image for frame in islice(read, frames)]
    for preset in presets:
        for name in temporal:
            method = stage_class("temporal", name)()
            config = replace(preset_config(preset), temporal=method)
            if sequences:
                rows = [row for pairs in sequences for row in rendered_rows(config, pairs)]
                row = Row(*np.mean(rows, axis=0).tolist())
                print(
                    f"{preset}, {name}: error {row.error:.3f} px, flicker {row.flicker:.3f} "
                    f"(truth {row.true:.3f}), excess {row.excess:.3f}",
                    flush=True,
                )
            for path, images in images_of.items():
                flicker = np.mean(flicker_of(config, images))
                print(f"{preset}, {name}: {path}: flicker {flicker:.3f}", flush=True)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
