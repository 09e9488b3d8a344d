"""Real images: the local model finds most of the motion.

The data is not the project's to redistribute: read where it is present, never written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import hamflow
from hamflow.matching import local_flow

DATA = Path(__file__).parents[2] / "shared" / "data"
Array = NDArray[Any]


def load_half(folder: Path) -> tuple[Array, Array, Array, Array]:
    """Both frames at half size, the true flow there, and where it is known and visible."""
    flow = hamflow.read_flow(folder / "flow.flo")
    good = ~np.isnan(flow).any(axis=2)
    for name in ("occ.png", "invalid.png"):
        if (folder / name).exists():
            good &= np.asarray(Image.open(folder / name).convert("L")) < 128
    height, width = flow.shape[0] // 2, flow.shape[1] // 2
    frames = [
        np.asarray(
            Image.open(folder / f"frame{i}.png")
            .convert("RGB")
            .resize((width, height), Image.Resampling.BOX)
        )
        for i in (1, 2)
    ]
    blocks = (height, 2, width, 2)
    half = flow[: 2 * height, : 2 * width].reshape(*blocks, 2).mean(axis=(1, 3)) / 2
    return *frames, half, good[: 2 * height, : 2 * width].reshape(blocks).all(axis=(1, 3))


@pytest.mark.skipif(not DATA.is_dir(), reason="the development data is not here")
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
    flow = local_flow(frame0, frame1, 64)
    error = np.linalg.norm(flow - truth, axis=2)[good]
    assert (error <= 1.5).mean() > at_least
