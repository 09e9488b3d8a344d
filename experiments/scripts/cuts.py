"""How well cuts are told from pairs that are only difficult.

    python -m experiments.scripts.cuts PHOTOGRAPHS [--count 20] [--presets balanced fast realtime]

renders scenes of 512×384 pixels with motion up to 100 pixels and all effects, and prints for each
kind of pair how many are called a cut, and the least and the largest share of pixels on which both
directions agree clearly, by which that is decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tyro

from hamflow import Estimator
from hamflow._types import Image
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset

CONFIG = SyntheticConfig(height=384, width=512, max_displacement=100, perspective_share=0.5)


def pairs(scenes: SyntheticDataset) -> Iterator[tuple[str, Image, Image]]:
    """Yield pairs of images by their kind; those whose names begin with "cut" are cuts."""
    rng = np.random.default_rng(0)
    for k in range(len(scenes)):
        scene = scenes[k]
        first, second, other = scene.image0, scene.image1, scenes[(k + 1) % len(scenes)].image0
        width = first.shape[1]

        def noisy(image: Image, gain: float, offset: float = 0.0) -> Image:
            changed = gain * image + offset + rng.normal(0, 2, image.shape)
            return changed.clip(0, 255).astype(np.uint8)

        def covered(share: float, back: Image = second, front: Image = other) -> Image:
            image = back.copy()
            image[:, : int(share * width)] = front[:, : int(share * width)]  # noqa: B023
            return image

        yield "scene", first, second
        yield "fade to 30 %", first, noisy(second, 0.3)
        yield "fade to 10 %", first, noisy(second, 0.1)
        yield "flash", first, noisy(second, 1.5, 90)
        yield "dark", noisy(first, 0.08), noisy(second, 0.08)
        yield "60 % covered", first, covered(0.6)
        yield "80 % covered", first, covered(0.8)
        yield "noise alone", noisy(first, 0, 20), noisy(first, 0, 20)
        yield "cut", first, other
        yield "cut, dark", noisy(first, 0.08), noisy(other, 0.08)
        yield "cut to black", first, np.zeros_like(first)


def main(
    photographs: tyro.conf.Positional[Path],
    *,
    count: int = 20,
    presets: tuple[str, ...] = ("balanced", "fast", "realtime"),
) -> None:
    """Measure and print."""
    scenes = SyntheticDataset(CONFIG, photographs, seed=77, size=count)
    for preset in presets:
        estimator = Estimator(preset)
        found: dict[str, list[tuple[bool, float]]] = {}
        for kind, first, second in pairs(scenes):
            _, matches = estimator.between(estimator.frame(first), estimator.frame(second))
            found.setdefault(kind, []).append((matches.cut, matches.clear_share))
        for kind, values in found.items():
            cuts, shares = zip(*values, strict=True)
            print(
                f"{preset}: {kind}: {sum(cuts)} of {len(cuts)} called a cut, "
                f"shares {min(shares):.2%} to {max(shares):.2%}",
                flush=True,
            )


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
