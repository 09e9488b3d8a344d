"""A pair and its truth as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

AWAY = 1.0  # pixels by which a flow back may miss the pixel that it should lead to


def hidden(flow: np.ndarray, back: np.ndarray) -> np.ndarray:
    """Return where no pixel around the end of the flow leads back, or the flow leaves the image."""
    height, width = flow.shape[:2]
    y, x = np.mgrid[:height, :width]
    there = np.stack([x, y], axis=2) + flow
    outside = ((there < 0) | (there > [width - 1, height - 1])).any(axis=2)
    corner = np.floor(there).astype(int)
    part = there - corner
    between, apart = np.zeros_like(flow), np.full(flow.shape[:2], np.inf)
    for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
        v, u = (corner[..., 1] + dy).clip(0, height - 1), (corner[..., 0] + dx).clip(0, width - 1)
        share = np.abs(part - (1 - np.array([dx, dy]))).prod(axis=2)
        between += back[v, u] * share[..., None].astype(np.float32)
        miss = np.linalg.norm(flow + back[v, u], axis=2)
        apart = np.where(share > 0, np.minimum(apart, miss), apart)
    return outside | (np.minimum(apart, np.linalg.norm(flow + between, axis=2)) > AWAY)


def write(path: Path, images: list[np.ndarray], flows: list[np.ndarray]) -> None:
    """Write the folder of a pair, or nothing."""
    part = path.with_suffix(".part")
    part.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(images, 1):
        Image.fromarray(image).save(part / f"frame{number}.png")
    for name, flow in zip(("flow.flo", "backward.flo"), flows, strict=True):
        size = np.array(flow.shape[1::-1], "<i4").tobytes()
        (part / name).write_bytes(b"PIEH" + size + flow.astype("<f4").tobytes())
    Image.fromarray(np.uint8(255) * hidden(*flows)).save(part / "occ.png")
    part.rename(path)
