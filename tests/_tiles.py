"""An estimator that works tile by tile, however much memory there is."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow import Estimator
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.pipeline.plan import Plan

SCENE = SyntheticConfig(height=302, width=502, max_displacement=30, min_displacement=10)


def scene(number: int, config: SyntheticConfig = SCENE) -> Any:
    return SyntheticDataset(config, seed=3)[number]


class InTiles(Estimator):
    """Works in tiles of at most so many pixels, with their surroundings."""

    def __init__(self, preset: Any, pixels: int, **options: Any) -> None:
        super().__init__(preset, max_memory="1GB", **options)
        self.pixels = pixels
        self.limits = {"matched_labels": 10**9}

    def plan(self, shape: tuple[int, int]) -> Plan:
        """Return the usual plan with smaller tiles."""
        plan = super().plan(shape)
        return dataclasses.replace(plan, whole=False, tile_pixels=self.pixels, **self.limits)


def apart(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """The largest difference of a component, for each pixel."""
    largest: NDArray[Any] = np.abs(one - other).max(axis=2)
    return largest
