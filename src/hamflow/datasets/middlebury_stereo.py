"""Middlebury's rectified stereo pairs as flow, from left to right: u = -disparity, v = 0.

Since 2014 (also MiddEval3 and 2021), in scene folders at any depth::

    ROOT/.../SCENE/im0.png, im1.png
                   disp0.pfm        or disp0GT.pfm; infinity: unknown
                   mask0nocc.png    optional; white: visible, gray: occluded, black: unknown

2001 and 2003, with the suffixes .png, or .ppm for frames and .pgm for disparities::

    ROOT/.../SCENE/im2.png, im6.png
                   disp2.png        disparity times a scale; black: unknown
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets._listing import Listing, Root, Split, check_choice
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset
from hamflow.errors import FileError, InputError
from hamflow.io._float_map import read_float_map

_EXPECTED = (
    "expected are scene folders with im0.png, im1.png and disp0.pfm (or disp0GT.pfm), or with "
    "im2.png, im6.png and disp2.png."
)
_OCCLUDED = 128  # in mask0nocc.png
_SCALES_2001 = dict.fromkeys(("barn1", "barn2", "bull", "poster", "sawtooth", "venus"), 8.0)
_FULL_WIDTHS_2003 = {"cones": 1800, "teddy": 1800}  # where the scale is 1
# Left frames; for each, the right frame and the possible files of disparities.
_STYLES = {
    "im0.png": ("im1.png", ("disp0.pfm", "disp0GT.pfm")),
    "im2.png": ("im6.png", ("disp2.png",)),
    "im2.ppm": ("im6.ppm", ("disp2.pgm",)),
}


@dataclass(frozen=True)
class StereoPair(FlowPair):
    """A rectified pair; `flow_path` is the disparity of the left frame.

    Parameters
    ----------
    scale : float, optional
        The factor by which gray disparities were multiplied.
    """

    scale: float | None = None

    def _read_flow(self, path: Path) -> NDArray[np.float32]:
        if path.suffix == ".pfm":
            # The scale in the header of Middlebury's files, 1/255, is not meant for disparities.
            disparity = read_float_map(path, channels=1)[0][:, :, 0].astype(np.float32)
            disparity[~np.isfinite(disparity)] = np.nan
            self._check_size(path, disparity)
        else:
            disparity = self._read_gray_disparity(path)
        flow = np.zeros((*disparity.shape, 2), np.float32)
        flow[:, :, 0] = -disparity
        flow[np.isnan(disparity)] = np.nan
        return flow

    def _read_gray_disparity(self, path: Path) -> NDArray[np.float32]:
        image = self._read_image(path)
        gray = image[:, :, 0]
        if (image != gray[:, :, None]).any():
            raise FileError(
                f"{path}: has colors, but must be the gray image of the disparities; get that one."
            )
        disparity = gray.astype(np.float32) / np.float32(self._scale(path))
        disparity[gray == 0] = np.nan
        return disparity

    def _scale(self, path: Path) -> float:
        if self.scale is not None:
            return self.scale
        # The folder's name may end in the size of the download: conesQ is cones in quarter size.
        scene = path.parent.name.lower()
        for name, scale in _SCALES_2001.items():
            if scene.startswith(name):
                return scale
        for name, width in _FULL_WIDTHS_2003.items():
            if scene.startswith(name):
                return float(width / self.image0.shape[1])
        raise FileError(
            f"{path}: the scale of gray disparities is known only for the scenes "
            f"{', '.join((*_SCALES_2001, *_FULL_WIDTHS_2003))}; give it as the option scale."
        )

    def _read_mask(self, path: Path) -> NDArray[np.bool_]:
        return np.asarray(self._read_image(path)[:, :, 0] == _OCCLUDED)


class MiddleburyStereoDataset(PairDataset):
    """The stereo pairs of all scene folders below a root, as flow from the left to the right.

    Pairs are named after the paths of their folders below the root. Scenes with vertical
    disparities (``disp0y.pfm``, the imperfectly rectified ones of 2014) are left out.

    Parameters
    ----------
    root : str or os.PathLike
        The folder of one scene, or a folder of such folders, at any depth.
    split : "training" or "test"
        The scenes with disparities, or those without.
    scale : float, optional
        The factor by which the gray disparities of 2001 and 2003 were multiplied. By default it
        follows from the name of the scene's folder: 8 for those of 2001; for cones and teddy 4 in
        quarter size (450 pixels wide), 2 in half and 1 in full size. Where it is unknown, reading
        the flow raises a FileError.
    """

    def __init__(
        self, root: Root, *, split: Split = "training", scale: float | None = None
    ) -> None:
        check_choice("split", split, ("training", "test"))
        if scale is not None and not 0 < scale < np.inf:
            raise InputError(f"scale must be a positive number, but is {scale}.")
        top = Listing(root, _EXPECTED)
        scenes = [found for found in top.search(_STYLES) if found[1].find("disp0y.pfm") is None]
        pairs = (_pair(*found, scale) for found in scenes)
        known = split == "training"
        super().__init__(top, (pair for pair in pairs if (pair.flow_path is not None) == known))


def _pair(name: str, folder: Listing, scale: float | None) -> StereoPair:
    # Scenes of 2003 may have all of im0 to im8: the frames with disparities are taken.
    lefts = [left for left in _STYLES if folder.find(left)]
    left = next((left for left in lefts if folder.find(*_STYLES[left][1])), lefts[0])
    right, disparities = _STYLES[left]
    return StereoPair(
        name,
        folder.file(left),
        folder.file(right),
        folder.find(*disparities),
        occluded_path=folder.find("mask0nocc.png") if left == "im0.png" else None,
        scale=scale,
    )
