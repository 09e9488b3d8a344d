"""One image pair on the disk, usually with known flow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow.errors import FileError
from hamflow.io import read_flow, read_image

_Pixels = NDArray[np.uint8] | NDArray[np.uint16]


@dataclass(frozen=True)
class FlowPair:
    """Two frames and the true flow between them, read from their files on first access.

    What was read stays in memory as long as the pair does. Reading raises a FileError if a file is
    missing or damaged, has another size than the first frame, or if there is no true flow.

    Parameters
    ----------
    name : str
        The name of the pair, after the groups that it belongs to, as in ``"kitti/000000_10"``.
    image0_path, image1_path : Path
        The frames.
    flow_path : Path, optional
        The true flow, in any format of `hamflow.read_flow`. Pairs of test sets have none.
    noc_path : Path, optional
        The true flow of only the pixels that are not occluded, as KITTI has it.
    occluded_path : Path, optional
        An image that is white where a pixel is occluded and black elsewhere. If it is given,
        `noc_path` is ignored.
    invalid_path : Path, optional
        An image that is white where a pixel is not to be evaluated and black elsewhere.
    """

    name: str
    image0_path: Path
    image1_path: Path
    flow_path: Path | None = None
    noc_path: Path | None = None
    occluded_path: Path | None = None
    invalid_path: Path | None = None

    @property
    def group(self) -> str:
        """The name without its last part: ``"kitti"`` for ``"kitti/000000_10"``."""
        return self.name.rpartition("/")[0]

    @cached_property
    def image0(self) -> _Pixels:
        """The first frame: (H, W, 3) uint8 or uint16, RGB."""
        return read_image(self.image0_path)

    @cached_property
    def image1(self) -> _Pixels:
        """The second frame, like the first."""
        return self._read_image(self.image1_path)

    @cached_property
    def flow(self) -> NDArray[np.float32]:
        """The true flow: (H, W, 2), NaN where it is unknown or not to be evaluated."""
        flow = self._read_flow(self._known_path())
        if self.invalid_path is not None:
            flow[self._read_mask(self.invalid_path)] = np.nan
        return flow

    @cached_property
    def occluded(self) -> NDArray[np.bool_] | None:
        """Which pixels of the first frame are hidden in the second: (H, W); None if unknown.

        If this follows from KITTI's two flow files, pixels of unknown flow count as visible.
        """
        if self.occluded_path is not None:
            return self._read_mask(self.occluded_path)
        if self.noc_path is None:
            return None
        visible = ~np.isnan(self._read_flow(self.noc_path)[:, :, 0])
        return ~np.isnan(self.flow[:, :, 0]) & ~visible

    def _known_path(self) -> Path:
        if self.flow_path is None:
            raise FileError(
                f"{self.image0_path}: the true flow from this frame is not known, as usual in a "
                "test set; use a split with known flow."
            )
        return self.flow_path

    def _read_image(self, path: Path) -> _Pixels:
        image = read_image(path)
        self._check_size(path, image)
        return image

    def _read_flow(self, path: Path) -> NDArray[np.float32]:
        flow = read_flow(path)
        self._check_size(path, flow)
        return flow

    def _read_mask(self, path: Path) -> NDArray[np.bool_]:
        image = self._read_image(path)
        white = np.iinfo(image.dtype).max
        # Without this check, a mask of 0 and 1 would seem to be black everywhere.
        if ((image != 0) & (image != white)).any():
            raise FileError(
                f"{path}: has other colors than black and white; save the mask with 0 and {white}."
            )
        return np.asarray(image[:, :, 0] == white)

    def _check_size(self, path: Path, array: NDArray[Any]) -> None:
        (height, width), (rows, columns) = self.image0.shape[:2], array.shape[:2]
        if (height, width) != (rows, columns):
            raise FileError(
                f"{path}: has {columns} × {rows} pixels, but {self.image0_path.name} has "
                f"{width} × {height}; all files of a pair must be of one size."
            )
