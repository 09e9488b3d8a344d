"""How good presets are on rendered scenes in space.

    python -m experiments.scripts.rendered PHOTOGRAPHS [--count 60] [--presets balanced fast]
        [--ablation]

prints the mean endpoint error over all and over visible pixels, and the worst scenes. They have
512×384 pixels, motion up to 100 pixels, and all effects. The photographs should be others than
those of the training. With --ablation, also the first preset without each of its stages.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import tyro

from experiments.variants import ABLATION
from hamflow import Estimator, EstimatorConfig
from hamflow.config import preset_config
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.flow import endpoint_error

CONFIG = SyntheticConfig(height=384, width=512, max_displacement=100, perspective_share=1.0)


def errors(config: EstimatorConfig, scenes: SyntheticDataset) -> list[tuple[float, float]]:
    """Return the error of each scene over all and over visible pixels."""
    estimator, found = Estimator(config), []
    for scene in scenes:
        error = endpoint_error(estimator.estimate(scene.image0, scene.image1).flow, scene.flow)
        visible = error[~scene.occluded]
        found.append((float(error.mean()), float(visible.mean()) if visible.size else np.nan))
    return found


def main(
    photographs: tyro.conf.Positional[Path],
    *,
    count: int = 60,
    presets: tuple[str, ...] = ("balanced", "fast"),
    ablation: bool = False,
) -> None:
    """Measure and print."""
    scenes = SyntheticDataset(CONFIG, photographs, size=count)
    configs = {preset: preset_config(preset) for preset in presets}
    if ablation:
        first = preset_config(presets[0])
        configs |= {name: replace(first, **off) for name, off in ABLATION.items() if off}
    for preset, config in configs.items():
        found = np.array(errors(config, scenes))
        worst = np.argsort(-found[:, 0])[:3]
        text = ", ".join(f"{found[k, 0]:.1f} (scene {k})" for k in worst)
        everywhere, visible = np.nanmean(found, axis=0)
        print(f"{preset}: {everywhere:.3f} px, visible {visible:.3f}; worst {text}", flush=True)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
