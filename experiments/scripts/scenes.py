"""How fast synthetic scenes are rendered, on one core.

    python -m experiments.scripts.scenes [PHOTOGRAPHS]

prints the scenes of 256×256 pixels per second of processor time, with all effects: layers in the
plane, things in space, and both with motion blur of up to 60 pixels in every scene.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import tyro

from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset

COUNT = 40


def scenes_per_second(data: SyntheticDataset) -> float:
    """Render all scenes but the first half, which prepares the textures that they share."""
    half = len(data) // 2
    for number in range(half):
        data[number]
    start = time.process_time()
    for number in range(half, len(data)):
        data[number]
    return (len(data) - half) / (time.process_time() - start)


def main(photographs: tyro.conf.Positional[Path | None] = None, count: int = COUNT) -> None:
    """Measure both kinds."""
    plain = SyntheticConfig()
    blurred = SyntheticConfig(motion_blur=1.0, shutter=1.0, max_blur=60 / 256)
    space = {"perspective_share": 1.0}
    for name, config in {
        "in the plane": plain,
        "in space": replace(plain, **space),
        "in the plane, blurred": blurred,
        "in space, blurred": replace(blurred, **space),
    }.items():
        data = SyntheticDataset(config, photographs, size=2 * count)
        print(f"{name}: {scenes_per_second(data):.1f} scenes per second")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
