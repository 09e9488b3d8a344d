"""Print hashes of results, to check that a change of the code did not change them.

    python -m experiments.scripts.hashes > before.txt
    (change the code)
    python -m experiments.scripts.hashes | diff before.txt -

Each line has the first 16 hexadecimal digits of the SHA-256 of flow, backward flow, occlusion and
confidence, for each preset on two rendered scenes and on the two pairs of a video of three frames.
Compare runs on one machine only: another instruction set may round differently.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import hamflow
from experiments.bench.sequence import rendered_sequence
from hamflow.config import PRESETS
from hamflow.datasets import demo_scene

HEIGHT, WIDTH = 120, 192
OUTPUTS = ("flow", "backward", "occlusion", "confidence")


def digest(array: NDArray[np.generic] | None) -> str:
    """Return the hash of an array, or a dash if the preset does not compute it."""
    if array is None:
        return f"{'-':16}"
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def results() -> Iterator[tuple[str, hamflow.FlowResult]]:
    """Generate the results to compare, with their names."""
    scenes = [demo_scene(HEIGHT, WIDTH, seed) for seed in (0, 1)]
    frames = rendered_sequence(HEIGHT, WIDTH, 3, max_displacement=20.0)
    for preset in PRESETS:
        estimator = hamflow.Estimator(preset)
        for seed, scene in enumerate(scenes):
            yield f"{preset} scene {seed}", estimator.estimate(scene.image0, scene.image1)
        for item in hamflow.video(frames, estimator):
            yield f"{preset} video {item.name}", item.result


def main() -> None:
    """Print a line for each result."""
    print(f"{'':18}", *(f"{name:16}" for name in OUTPUTS))
    for name, result in results():
        print(f"{name:18}", *(digest(getattr(result, output)) for output in OUTPUTS), flush=True)


if __name__ == "__main__":
    main()
