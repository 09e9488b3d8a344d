"""How good and how fast the next pair of a video is, compared with the same pair alone.

    python -m experiments.scripts.videos PHOTOGRAPHS [--count 8] [--frames 4]
        [--presets balanced fast]

renders sequences in which all motions go on, up to 40 pixels from one frame to the next, half of
them scenes in space, and prints for each preset the mean endpoint errors over all pairs but the
first of each sequence, and the share of the time. The photographs should be others than those of
the training.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from experiments.bench._measure import timed
from hamflow import Estimator
from hamflow.datasets.synthetic import (
    SyntheticConfig,
    SyntheticScene,
    load_textures,
    render_sequence,
)
from hamflow.flow import endpoint_error

CONFIG = SyntheticConfig(height=436, width=768, max_displacement=40, perspective_share=0.5)


def measured(estimator: Estimator, pairs: list[SyntheticScene]) -> list[tuple[float, ...]]:
    """Return errors and seconds of each pair but the first: (video, alone, seconds, seconds)."""
    found: list[tuple[float, ...]] = []
    last, state = estimator.frame(pairs[0].image0), None
    for number, pair in enumerate(pairs):

        def following(pair: SyntheticScene = pair, first=last, known=state):  # type: ignore[no-untyped-def]
            frame = estimator.frame(pair.image1)
            return frame, *estimator.between(first, frame, previous=known)

        (last, result, state), spent = timed(following)
        if number:
            alone, whole = timed(partial(estimator.estimate, pair.image0, pair.image1))
            errors = (
                float(endpoint_error(flow, pair.flow).mean()) for flow in (result.flow, alone.flow)
            )
            found.append((*errors, spent, whole))
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("photographs", help="a folder of photographs")
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--frames", type=int, default=4)
    parser.add_argument("--presets", nargs="+", default=["balanced", "fast"])
    args = parser.parse_args()
    textures = load_textures(args.photographs)
    sequences = [render_sequence(CONFIG, k, textures, args.frames) for k in range(args.count)]
    for preset in args.presets:
        estimator = Estimator(preset)
        rows = np.array([row for pairs in sequences for row in measured(estimator, pairs)])
        video, alone, spent, whole = rows.mean(axis=0)
        print(
            f"{preset}: {video:.3f} px in the video, {alone:.3f} px alone (worst "
            f"{rows[:, 0].max():.2f}, {rows[:, 1].max():.2f}); {spent / whole:.0%} of the time",
            flush=True,
        )


if __name__ == "__main__":
    main()
