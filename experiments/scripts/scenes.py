"""How fast synthetic scenes are rendered, on one core.

    python -m experiments.scripts.scenes [PHOTOGRAPHS]

prints the scenes of 256×256 pixels per second, with all effects: layers in the plane, and things in
space.
"""

from __future__ import annotations

import sys
import time

from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset

COUNT = 40


def scenes_per_second(data: SyntheticDataset) -> float:
    """Render all scenes but the first half, which prepares the textures that they share."""
    half = len(data) // 2
    for number in range(half):
        data[number]
    start = time.perf_counter()
    for number in range(half, len(data)):
        data[number]
    return (len(data) - half) / (time.perf_counter() - start)


def main(photographs: str | None = None, count: int = COUNT) -> None:
    """Measure both kinds."""
    for name, share in (("in the plane", 0.0), ("in space", 1.0)):
        config = SyntheticConfig(perspective_share=share)
        data = SyntheticDataset(config, photographs, size=2 * count)
        print(f"{name}: {scenes_per_second(data):.1f} scenes per second")


if __name__ == "__main__":
    main(*sys.argv[1:2])
