"""Consecutive frames to time a video on: rendered ones, or those of a file."""

from __future__ import annotations

import os
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets.synthetic import SyntheticConfig, load_textures
from hamflow.datasets.synthetic.compose import Canvas, composite
from hamflow.datasets.synthetic.effects import to_picture
from hamflow.datasets.synthetic.stage import set_stage
from hamflow.errors import InputError
from hamflow.io.video import open_frames

FEWEST = 4
"""The smallest number of frames: a first pair, and two pairs that follow it."""


def rendered_sequence(
    height: int, width: int, count: int, *, max_displacement: float = 60.0
) -> list[NDArray[np.uint8]]:
    """Render a scene at several times; every layer continues its motion.

    Parameters
    ----------
    height, width : int
        Size of the frames.
    count : int
        How many frames.
    max_displacement : float
        The largest motion of a pixel from one frame to the next.
    """
    # The motion is defined between the first and the last time; the frames are rendered in between.
    steps = count - 1
    config = SyntheticConfig(height=height, width=width, max_displacement=steps * max_displacement)
    layers = set_stage(np.random.default_rng(1), config, load_textures())
    canvas = Canvas(height, width)
    times = (number / steps for number in range(count))
    return [np.array(to_picture(composite(canvas, layers, 0, time=time))) for time in times]


def read_sequence(path: str | os.PathLike[str], count: int) -> list[NDArray[Any]]:
    """Read the first frames of a video file or of a folder of frames.

    Raises
    ------
    InputError
        If there are fewer than `FEWEST` frames.
    FileError
        If they cannot be read.
    """
    frames = [frame.image for frame in islice(open_frames(path).read(), count)]
    if len(frames) < FEWEST:
        raise InputError(
            f"{os.fspath(path)}: has {len(frames)} frames, but at least {FEWEST} are needed; "
            "give a longer video."
        )
    return frames
