"""Disparities of rectified pairs: ``.pfm`` files with one channel, or scaled grey pictures."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hamflow.errors import FileError
from hamflow.io import read_image
from hamflow.io._reading import check_size, open_regular

_LONGEST_HEADER = 128
_HEADER = re.compile(
    rb"Pf\s+(\d{1,10})\s+(\d{1,10})\s+(-?)[\d.]{1,20}(?:[eE][-+]?\d{1,3})?[ \t]*\r?\n"
)


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
    with open_regular(path) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            header = _HEADER.match(file.read(_LONGEST_HEADER))
            if header is None:
                raise FileError(
                    f"{path}: is not a .pfm file with one channel (Pf, width and height, scale), "
                    "so it holds no disparities; get it again."
                )
            width, height = int(header[1]), int(header[2])
            check_size(path, width, height)
            if size != header.end() + 4 * width * height:
                raise FileError(
                    f"{path}: {width} × {height} pixels take {header.end() + 4 * width * height} "
                    f"bytes, but the file has {size}; get it again."
                )
            file.seek(header.end())
            data = file.read(4 * width * height)
        except OSError as error:
            raise FileError(
                f"{path}: cannot be read ({error.strerror}); check the disk."
            ) from error
    if len(data) != 4 * width * height:
        raise FileError(f"{path}: became shorter while it was read; try again.")
    stored = np.frombuffer(data, "<f4" if header[3] else ">f4").reshape(height, width)
    # Rows are stored from the bottom up.
    disparity = stored[::-1].astype(np.float32)
    disparity[~np.isfinite(disparity)] = np.nan
    return disparity


def read_grey_disparity(path: Path, scale: float) -> NDArray[np.float32]:
    """Read a grey picture of disparities times `scale`, as Middlebury had them until 2003.

    Returns
    -------
    disparity : (H, W) float32
        NaN where the picture is black, which is unknown.

    Raises
    ------
    FileError
        If the file is missing or damaged, or has colours.
    """
    image = read_image(path)
    if (image != image[:, :, :1]).any():
        raise FileError(
            f"{path}: has colours, so it is a picture of disparities that cannot be read back; get "
            "the grey one."
        )
    grey = image[:, :, 0]
    disparity = grey.astype(np.float32) / np.float32(scale)
    disparity[grey == 0] = np.nan
    return disparity
