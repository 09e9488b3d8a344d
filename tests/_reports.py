"""What the tests of reports share: small rendered pairs, and methods that are quick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets import SyntheticScene, demo_scene
from hamflow.evaluation import Estimate

NASTY = "<script>alert(1)</script>"
"""A name that must stay a name."""
NAMES = ("clean/one", "clean/two", NASTY, 'final/it\'s "four" & more', "final/five")


class Pairs(list[SyntheticScene]):
    """Scenes with names, as data sets have them."""

    def __init__(self, names: Sequence[str] = NAMES, height: int = 40, width: int = 56) -> None:
        super().__init__(demo_scene(height, width, seed=seed) for seed in range(len(names)))
        self.names = tuple(names)


class Stub:
    """Says that everything moves by (1, 0), and is not sure about it.

    Parameters
    ----------
    whole : bool
        Whether it also has occlusions, a confidence and a gap.
    fail : callable
        Raises for the first frames on which it is to fail.
    """

    def __init__(
        self,
        label: str = "stub",
        *,
        whole: bool = True,
        fail: Callable[[NDArray[Any]], None] = lambda _: None,
    ) -> None:
        self.label = label
        self.settings = {"method": label, "scale": 1}
        self._whole, self._fail = whole, fail

    def __call__(self, image0: NDArray[Any], image1: NDArray[Any]) -> Estimate:
        self._fail(image0)
        flow = np.zeros((*image0.shape[:2], 2), np.float32)
        flow[:, :, 0] = 1
        if not self._whole:
            return Estimate(flow)
        different = np.abs(image1.astype(np.float32) - image0).mean(axis=2)
        return Estimate(flow, different > 60, np.float32(1) / (1 + different), 0.0125)
