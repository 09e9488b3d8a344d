"""Disparities of rectified pairs: ``.pfm`` files with one channel, or scaled gray pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hamflow.errors import FileError
from hamflow.io import read_image
from hamflow.io._float_map import read_float_map


def read_pfm_disparity(path: Path) -> NDArray[np.float32]:
    """Read a ``.pfm`` file with one channel, as Middlebury has them since 2014.

    Of the scale in the header only the sign counts, which is the byte order: Middlebury's files
    have one of 1/255 there, which is not meant for the disparities.

    Returns
    -------
    disparity : (H, W) float32
        NaN where the file has infinity or NaN, which is unknown.

    Raises
    ------
    FileError
        If the file is missing or no such file, or is shorter or longer than it should be.
    """
    disparity = read_float_map(path, channels=1)[0][:, :, 0].astype(np.float32)
    disparity[~np.isfinite(disparity)] = np.nan
    return disparity


def read_gray_disparity(path: Path, scale: float) -> NDArray[np.float32]:
    """Read a gray picture of disparities times `scale`, as Middlebury had them until 2003.

    Returns
    -------
    disparity : (H, W) float32
        NaN where the picture is black, which is unknown.

    Raises
    ------
    FileError
        If the file is missing or damaged, or has colors.
    """
    image = read_image(path)
    if (image != image[:, :, :1]).any():
        raise FileError(
            f"{path}: has colors, so it is a picture of disparities that cannot be read back; get "
            "the gray one."
        )
    gray = image[:, :, 0]
    disparity = gray.astype(np.float32) / np.float32(scale)
    disparity[gray == 0] = np.nan
    return disparity
