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

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets._disparity import read_gray_disparity, read_pfm_disparity
from hamflow.datasets._listing import Found, check_choice, search
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset
from hamflow.errors import FileError, InputError, missing_file
from hamflow.io import read_image

_EXPECTED = (
    "expected are scene folders with im0.png, im1.png and disp0.pfm (or disp0GT.pfm), or with "
    "im2.png, im6.png and disp2.png."
)
_OCCLUDED = 128  # in mask0nocc.png
_SCALES_2001 = dict.fromkeys(("barn1", "barn2", "bull", "poster", "sawtooth", "venus"), 8.0)
_FULL_WIDTHS_2003 = {"cones": 1800, "teddy": 1800}  # where the scale is 1


class _Style(NamedTuple):
    images: tuple[str, str]
    disparities: tuple[str, ...]


_STYLES = (
    _Style(("im0.png", "im1.png"), ("disp0.pfm", "disp0GT.pfm")),
    _Style(("im2.png", "im6.png"), ("disp2.png",)),
    _Style(("im2.ppm", "im6.ppm"), ("disp2.pgm",)),
)


@dataclass(frozen=True)
class StereoPair(FlowPair):
    """A rectified pair; `flow_path` is the disparity of the left frame.

    Parameters
    ----------
    scale : float, optional
        What gray disparities were multiplied by.
    """

    scale: float | None = None

    def _read_flow(self, path: Path) -> NDArray[np.float32]:
        if path.suffix == ".pfm":
            disparity = read_pfm_disparity(path)
        else:
            disparity = read_gray_disparity(path, self._scale(path))
        self._check_size(path, disparity)
        flow = np.zeros((*disparity.shape, 2), np.float32)
        flow[:, :, 0] = -disparity
        flow[np.isnan(disparity)] = np.nan
        return flow

    def _scale(self, path: Path) -> float:
        if self.scale is not None:
            return self.scale
        # With the size that it was downloaded in: conesQ is cones in quarter size.
        scene = path.parent.name.lower()
        for name, scale in _SCALES_2001.items():
            if scene.startswith(name):
                return scale
        for name, width in _FULL_WIDTHS_2003.items():
            if scene.startswith(name):
                return float(width / self.image0.shape[1])
        raise FileError(
            f"{path}: what the disparities were multiplied by is known only for the scenes "
            f"{', '.join((*_SCALES_2001, *_FULL_WIDTHS_2003))}; give it as the option scale."
        )

    def _read_mask(self, path: Path) -> NDArray[np.bool_]:
        image = read_image(path)
        self._check_size(path, image)
        return np.asarray(image[:, :, 0] == _OCCLUDED)


class MiddleburyStereoDataset(PairDataset):
    """The stereo pairs of all scene folders below a root, as flow from the left to the right.

    Pairs are called by the paths of their folders below the root. Scenes with vertical
    disparities (``disp0y.pfm``, the imperfectly rectified ones of 2014) are left out.

    Parameters
    ----------
    root : str or os.PathLike
        One scene's folder, or a folder of such folders, to any depth.
    split : "training" or "test"
        The scenes with disparities, or those without.
    scale : float, optional
        What the gray disparities of 2001 and 2003 were multiplied by. By default, the scenes of
        these years are known by the names of their folders: 8 for those of 2001, 4 for cones and
        teddy in quarter size (450 pixels wide), 2 in half and 1 in full size.

    Raises
    ------
    FileError
        If a frame is missing; on access to a flow, if the scale is not known.
    InputError
        If an option has another value.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        split: Literal["training", "test"] = "training",
        scale: float | None = None,
    ) -> None:
        check_choice("split", split, ("training", "test"))
        if scale is not None and not 0 < scale < np.inf:
            raise InputError(f"scale must be a positive number, but is {scale}.")
        top = Path(root)
        known = split == "training"
        pairs = (pair for pair in _pairs(top, scale) if (pair.flow_path is not None) == known)
        super().__init__(top, pairs, _EXPECTED)


def _pairs(top: Path, scale: float | None) -> Iterator[StereoPair]:
    markers = {style.images[0] for style in _STYLES}
    for found in search(top, _EXPECTED, markers):
        if "disp0y.pfm" not in found.entries:
            yield _pair(found, scale)


def _pair(found: Found, scale: float | None) -> StereoPair:
    path, name, entries = found
    # The one with disparities: scenes of 2003 may have all of im0 to im8.
    styles = [style for style in _STYLES if style.images[0] in entries]
    style = next((s for s in styles if not entries.isdisjoint(s.disparities)), styles[0])
    left, right = style.images
    if right not in entries:
        raise missing_file(path / right, _EXPECTED)
    disparity = next((path / file for file in style.disparities if file in entries), None)
    has_mask = style is _STYLES[0] and "mask0nocc.png" in entries
    return StereoPair(
        name,
        path / left,
        path / right,
        disparity,
        occluded_path=path / "mask0nocc.png" if has_mask else None,
        scale=scale,
    )
