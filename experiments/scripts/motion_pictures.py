"""Draw the picture of docs/motion.md, into docs/pictures/motion.png.

python -m experiments.scripts.motion_pictures
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from experiments.scripts.motion import CONFIG, shaken
from experiments.scripts.pictures import save
from hamflow import Estimator, interpolate, moving_mask, stabilize, video
from hamflow.cli.mask import tinted
from hamflow.datasets.synthetic import SyntheticFilm, load_textures
from hamflow.motion import TrackPainter, tracked

SCENE = replace(
    CONFIG,
    max_displacement=16.0,
    min_displacement=4.0,
    max_layers=5,
    thin_share=0.1,
    dull_share=0.0,
    still_share=0.0,
    clean=True,
)
SEED, FRAMES = 3, 13
Picture = NDArray[np.uint8]


def tracks(estimator: Estimator, frames: list[Picture]) -> Picture:
    """Draw all tracks on the last frame."""
    painter = TrackPainter(None)
    for state in tracked(video(frames, estimator), estimator, grid=16):
        painter.add(state)
    return painter.draw(frames[-1])


def mean(frames: list[Picture]) -> Picture:
    """Return the mean of frames, which is blurred if they do not stand still."""
    return np.rint(np.mean(frames, axis=0)).astype(np.uint8)


def main() -> None:
    """Draw."""
    estimator, textures = Estimator("balanced"), load_textures()
    frames = SyntheticFilm(SCENE, SEED, textures, FRAMES).images
    first, middle, second = frames[4:7]
    between = list(interpolate([first, second], 2, estimator))[1]
    before, now = (item.result for item in video(frames[4:7], estimator))
    moving = moving_mask(now, previous=before).mask
    large = SyntheticFilm(replace(SCENE, height=440, width=640), SEED, textures, 2).images[0]
    shaking = [picture for picture, _ in shaken(Image.fromarray(large), 1, 12)]
    steady = list(stabilize(shaking, estimator))
    rows = [
        [
            (f"track: {FRAMES} frames", tracks(estimator, frames)),
            ("A frame that is left out", middle),
            ("interpolate: from its neighbors", between),
        ],
        [
            ("mask: what moves by itself", tinted(middle, moving)),
            ("Mean of three shaken frames", mean(shaking[5:8])),
            ("stabilize: mean of the same", mean(steady[5:8])),
        ],
    ]
    save("motion.png", rows, font_size=18)


if __name__ == "__main__":
    main()
