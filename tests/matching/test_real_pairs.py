"""Real images: the local model finds most of the motion.

The data is not the project's to redistribute: read where it is present, never written.
"""

from __future__ import annotations

import numpy as np
import pytest

from _paths import DATA, needs_data
from _real_pairs import load_half
from hamflow import pair_bits
from hamflow.matching import local_flow


@needs_data
@pytest.mark.parametrize(
    ("pair", "at_least"),
    [
        # Measured .839, .878 and .792; flow 0 would be right for .000, .360 and .313.
        ("sintel-clean/cave_2_0002", 0.78),
        ("middlebury-flow/Urban2", 0.82),
        ("flyingchairs/0000001", 0.73),
    ],
)
def test_most_of_the_motion(pair: str, at_least: float) -> None:
    frame0, frame1, truth, good = load_half(DATA / pair)
    assert good.mean() > 0.5
    flow = local_flow(frame0, frame1, 64, describe=pair_bits)
    error = np.linalg.norm(flow - truth, axis=2)[good]
    assert (error <= 1.5).mean() > at_least
