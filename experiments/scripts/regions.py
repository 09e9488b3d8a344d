"""How near the estimate of a region is to that of the whole images, and how fast.

    python -m experiments.scripts.regions PHOTOGRAPHS [--count 3] [--presets balanced fast]

renders scenes of 1024×436 pixels with motion up to 40 pixels, and prints for three regions of each
the median and mean difference to the estimate of the whole images in pixels, both errors, and the
share of the time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tyro

from hamflow import Estimator
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.flow import endpoint_error

CONFIG = SyntheticConfig(height=436, width=1024, max_displacement=40, perspective_share=0.5)
REGIONS = ((400, 150, 200, 140), (0, 0, 120, 100), (800, 300, 224, 136))


def main(
    photographs: tyro.conf.Positional[Path],
    *,
    count: int = 3,
    presets: tuple[str, ...] = ("balanced", "fast"),
) -> None:
    """Measure and print."""
    scenes = SyntheticDataset(CONFIG, photographs, seed=5, size=count)
    for preset in presets:
        estimator = Estimator(preset)
        for scene in scenes:
            whole = estimator.estimate(scene.image0, scene.image1)
            for region in REGIONS:
                part = estimator.estimate(scene.image0, scene.image1, region=region)
                inside = whole.part(region)
                truth = scene.flow[region[1] :, region[0] :][: region[3], : region[2]]
                apart = endpoint_error(part.flow, inside.flow)
                errors = [endpoint_error(flow, truth).mean() for flow in (part.flow, inside.flow)]
                share = sum(part.timings.values()) / sum(whole.timings.values())
                print(
                    f"{preset}: {region}: median {np.median(apart):.3f}, mean {apart.mean():.3f}; "
                    f"errors {errors[0]:.2f}, {errors[1]:.2f}; {share:.0%} of the time",
                    flush=True,
                )


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
