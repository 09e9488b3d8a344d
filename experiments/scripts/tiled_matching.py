"""How near matching in tiles comes to matching the whole.

    python -m experiments.scripts.tiled_matching [--scenes 8] [--preset balanced] [--side 264]

estimates the flow of rendered scenes of 800×500 pixels, matched at half the size: once as a
whole, and once in tiles whose sides, with their surroundings, are at most so long. It prints for
each scene the share of pixels whose matches, and whose finished flow, differ by more than a pixel,
and the mean errors against the truth.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow import Estimator
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.pipeline.plan import Plan

SIZE = SyntheticConfig(height=500, width=800, max_displacement=60, min_displacement=10)
SCALE = 2


class TiledMatching(Estimator):
    """An estimator that matches in tiles, however much memory there is."""

    side = 264
    labels = 64

    def plan(self, shape: tuple[int, int], **places: bool) -> Plan:
        """Return the usual plan with fewer labels at a time."""
        found = super().plan(shape, **places)
        return replace(found, whole=False, matched_labels=self.side**2 * self.labels)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--scenes", type=int, default=8)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--side", type=int, default=264)
    parser.add_argument("--window", default="120")
    args = parser.parse_args()
    window: Any = args.window if args.window == "auto" else int(args.window)
    dataset = SyntheticDataset(SIZE, seed=5, size=args.first + args.scenes)
    print("| scene | matches | matches trusted by both | flow | error, whole | error, tiles |")
    print("|---|---|---|---|---|---|")
    for number in range(args.first, args.first + args.scenes):
        scene = dataset[number]
        results, matches = [], []
        for kind in (Estimator, TiledMatching):
            limit = None if kind is Estimator else "4GB"
            estimator = kind(args.preset, window=window, scale=SCALE, max_memory=limit)
            if isinstance(estimator, TiledMatching):
                estimator.side = args.side
                estimator.labels = sum(results[0].window.reduced(SCALE).as_tuple()[1::2])
            frames = [estimator.frame(image) for image in (scene.image0, scene.image1)]
            result, found = estimator.between(*frames)
            results.append(result)
            matches.append(found.directions[0])
        moved = apart(matches[0].flow, matches[1].flow)
        both = matches[0].trusted & matches[1].trusted
        errors = [np.linalg.norm(r.flow - scene.flow, axis=2).mean() for r in results]
        print(
            f"| {number} | {(moved > 1).mean():.2%} | {(moved[both] > 1).mean():.2%} | "
            f"{(apart(results[0].flow, results[1].flow) > 1).mean():.2%} | "
            f"{errors[0]:.3f} | {errors[1]:.3f} |",
            flush=True,
        )


def apart(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Return the largest difference of a component, for each pixel."""
    largest: NDArray[Any] = np.abs(one - other).max(axis=2)
    return largest


if __name__ == "__main__":
    main()
