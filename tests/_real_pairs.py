"""Real pairs at half size, as the tests of matching use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import hamflow

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
