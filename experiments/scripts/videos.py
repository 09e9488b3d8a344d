"""How good and how fast the next pair of a video is, compared with the same pair alone.

    python -m experiments.scripts.videos [PHOTOGRAPHS] [--count 8] [--frames 4]
        [--presets balanced fast] [--videos FILES] [--start 0]

renders sequences in which all motions go on, up to 40 pixels from one frame to the next, half of
them scenes in space, and prints for each preset the mean endpoint errors over all pairs but the
first of each sequence, and the shares of the time: by the clock, and of the processor. The
photographs should be others than those of the training. Of real videos, of which as many frames
are taken from the given one on, there are the shares alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from hamflow import Estimator
from hamflow._types import Flow, Pixels
from hamflow.datasets.synthetic import SyntheticConfig, load_textures, render_sequence
from hamflow.flow import endpoint_error
from hamflow.io.video import open_frames

CONFIG = SyntheticConfig(height=436, width=768, max_displacement=40, perspective_share=0.5)


def both_times(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what a call returns, its seconds by the clock and those of the processor."""
    start = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - start[0], time.process_time() - start[1]


def measured(
    estimator: Estimator, images: Sequence[Pixels], truths: Sequence[Flow | None]
) -> list[tuple[float, ...]]:
    """Return for each pair but the first what it has in the video, then what it has alone.

    Error (NaN if there is no truth), seconds by the clock, seconds of the processor.
    """
    found: list[tuple[float, ...]] = []
    last, state = estimator.frame(images[0]), None
    for number, (pair, truth) in enumerate(zip(pairwise(images), truths, strict=True)):

        def following(image: Pixels = pair[1], first=last, known=state):  # type: ignore[no-untyped-def]
            frame = estimator.frame(image)
            return frame, *estimator.between(first, frame, previous=known)

        (last, result, state), *spent = both_times(following)
        if number:
            alone, *whole = both_times(partial(estimator.estimate, *pair))
            errors = [
                np.nan if truth is None else float(endpoint_error(flow, truth).mean())
                for flow in (result.flow, alone.flow)
            ]
            found.append((errors[0], *spent, errors[1], *whole))
    return found


def main(
    photographs: tyro.conf.Positional[Path | None] = None,
    *,
    count: int = 8,
    frames: int = 4,
    presets: tuple[str, ...] = ("balanced", "fast"),
    videos: tuple[Path, ...] = (),
    start: int = 0,
) -> None:
    """Measure and print."""
    scenes: dict[str, list[tuple[Sequence[Pixels], Sequence[Flow | None]]]] = {}
    if photographs is not None:
        textures = load_textures(photographs)
        rendered = [render_sequence(CONFIG, k, textures, frames) for k in range(count)]
        scenes["rendered"] = [
            ([pairs[0].image0, *(pair.image1 for pair in pairs)], [pair.flow for pair in pairs])
            for pairs in rendered
        ]
    for path in videos:
        images = [frame.image for frame in open_frames(path).read(start, start + frames)]
        scenes[path.name] = [(images, [None] * (len(images) - 1))]
    for preset in presets:
        estimator = Estimator(preset)
        for name, sequences in scenes.items():
            first = sequences[0][0]
            estimator.estimate(*first[:2])  # what is loaded once does not count
            rows = np.array([row for one in sequences for row in measured(estimator, *one)])
            error, clock, processor, alone, whole, whole_processor = rows.mean(axis=0)
            errors = ""
            if not np.isnan(error):
                worst = rows[:, [0, 3]].max(axis=0)
                errors = (
                    f"{error:.3f} px in the video, {alone:.3f} px alone (worst {worst[0]:.2f}, "
                    f"{worst[1]:.2f}); "
                )
            print(
                f"{preset}, {name}: {errors}{clock / whole:.0%} of the time, "
                f"{processor / whole_processor:.0%} of the processor's",
                flush=True,
            )


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
