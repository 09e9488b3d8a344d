"""What the tests of the data sets share: rendered scenes and writers of single files."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from hamflow.datasets import FlowPair, SyntheticScene, demo_scene
from hamflow.errors import FileError
from hamflow.io import write_flow, write_image

KITTI_STEP = 1 / 128
"""What rounding to KITTI's multiples of 1/64 can change."""


@cache
def scene(seed: int = 0) -> SyntheticScene:
    return demo_scene(40, 56, seed)


def save_image(path: Path, image: NDArray[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".ppm", ".pgm"):  # which Hamflow does not write
        Image.fromarray(image).save(path)
    else:
        write_image(path, image)


def save_mask(path: Path, mask: NDArray[np.bool_]) -> None:
    save_image(path, np.where(mask, 255, 0).astype(np.uint8))


def save_flow(path: Path, flow: NDArray[np.float32]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # KITTI's own files end like pictures.
    write_flow(path, flow, format="kitti" if path.suffix == ".png" else None)


def save_pair(folder: Path, shown: SyntheticScene, flow: str = "flow.flo") -> Path:
    """Write a pair as `FolderDataset` reads it; return its folder."""
    save_image(folder / "frame1.png", shown.image0)
    save_image(folder / "frame2.png", shown.image1)
    save_flow(folder / flow, shown.flow)
    return folder


def visible_flow(shown: SyntheticScene) -> NDArray[np.float32]:
    """The flow of only the pixels that are not occluded."""
    return np.where(shown.occluded[:, :, None], np.float32(np.nan), shown.flow)


def check_pair(pair: FlowPair, shown: SyntheticScene, precision: float = 0) -> None:
    """See that a pair is what was written."""
    assert np.array_equal(pair.image0, shown.image0)
    assert np.array_equal(pair.image1, shown.image1)
    assert np.abs(pair.flow - shown.flow).max() <= precision


def message_of(work: Callable[[], object], path: Path) -> str:
    """The one sentence about `path` that something fails with."""
    with pytest.raises(FileError) as caught:
        work()
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert message.endswith(".")
    return message
