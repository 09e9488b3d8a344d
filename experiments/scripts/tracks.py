"""How well points are tracked through rendered films, by Hamflow and by OpenCV's Lucas-Kanade.

    python -m experiments.scripts.tracks PHOTOGRAPHS [--count 12] [--frames 12]
        [--presets fast balanced] [--displacements 8 64]

Points on a grid of 12 pixels are tracked through films of 384×256 pixels, half of them in space,
with all effects. A column is a mean over the films:

- error: of the position, in pixels, of points that are truly visible, whether or not the tracker
  says so, cut at 100; after 1 frame, in the middle and at the end, and over all frames;
- < 2 px, < 8 px: the share of truly visible points with such an error;
- lost: the share of truly visible points that the tracker says are hidden;
- false: the share of truly hidden points that the tracker says are visible;
- occlusion: the share of points whose visibility is said correctly;
- reappeared: the share of the points that are visible again after having been hidden which the
  tracker says are visible, at most 8 px off;
- seconds: for each frame.

The photographs should be others than those of the training. Lucas-Kanade has 5 levels, windows of
21×21 pixels and a forward-backward check of 1 pixel; a point that fails it is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import tyro
from numpy.typing import NDArray

from hamflow import Estimator, track
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticFilm, load_textures
from hamflow.motion.tracks import ANCHOR, grid_points

CONFIG = SyntheticConfig(height=256, width=384, min_displacement=1.0, curved_share=0.3)
GRID = 12
_Arrays = tuple[NDArray[np.float64], NDArray[np.bool_]]
_Method = Callable[[list[NDArray[np.uint8]], NDArray[np.float64]], _Arrays]


def truth(film: SyntheticFilm, points: NDArray[np.float64]) -> _Arrays:
    """Return where the points are in all frames, and whether they are visible."""
    x, y = points.astype(int).T
    pairs = [film.truth(0, k) for k in range(len(film.images))]
    places = np.stack([points + flow[y, x] for flow, _ in pairs])
    return places, np.stack([~occluded[y, x] for _, occluded in pairs])


def lucas_kanade(images: list[NDArray[np.uint8]], points: NDArray[np.float64]) -> _Arrays:
    """Track by OpenCV, with a check of the way back."""
    gray = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in images]
    here, alive = points.astype(np.float32)[:, None], np.ones(len(points), bool)
    places, visible = [points], [alive]
    options = {"winSize": (21, 21), "maxLevel": 4}
    height, width = gray[0].shape
    for first, second in pairwise(gray):
        there, found, _ = cv2.calcOpticalFlowPyrLK(first, second, here, None, **options)
        back, again, _ = cv2.calcOpticalFlowPyrLK(second, first, there, None, **options)
        within = ((there >= 0) & (there <= [width - 1, height - 1])).all(axis=(1, 2))
        apart = np.linalg.norm(back - here, axis=2)[:, 0]
        alive = alive & (found[:, 0] > 0) & (again[:, 0] > 0) & (apart < 1) & within
        here = there
        places.append(there[:, 0].astype(np.float64))
        visible.append(alive)
    return np.stack(places), np.stack(visible)


def by_flow(preset: str, anchor: int = ANCHOR) -> _Method:
    """Return what tracks by Hamflow."""
    estimator = Estimator(preset)

    def method(images: list[NDArray[np.uint8]], points: NDArray[np.float64]) -> _Arrays:
        tracks = track(images, points, estimator, anchor=anchor)
        return tracks.positions.astype(np.float64), tracks.visible

    return method


def scores(found: _Arrays, known: _Arrays) -> dict[str, float]:
    """Return the columns of the table for one film."""
    places, says = (array[1:] for array in found)
    where, seen = (array[1:] for array in known)
    error = np.minimum(np.linalg.norm(places - where, axis=2), 100)
    again = seen & (np.cumsum(~seen, axis=0) > 0)
    times = {"1": 0, "middle": len(error) // 2, "end": len(error) - 1}

    def share(true: NDArray[np.bool_], of: NDArray[np.bool_]) -> float:
        return float(true[of].mean()) if of.any() else np.nan

    return {
        **{f"error {name}": float(error[k][seen[k]].mean()) for name, k in times.items()},
        "error": float(error[seen].mean()),
        "< 2 px": share(error < 2, seen),
        "< 8 px": share(error < 8, seen),
        "lost": share(~says, seen),
        "false": share(says, ~seen),
        "occlusion": float((says == seen).mean()),
        "reappeared": share(says & (error < 8), again),
    }


def main(
    photographs: tyro.conf.Positional[Path],
    *,
    count: int = 12,
    frames: int = 12,
    presets: tuple[str, ...] = ("fast", "balanced"),
    displacements: tuple[float, ...] = (8.0, 64.0),
) -> None:
    """Measure and print."""
    textures = load_textures(photographs)
    methods: dict[str, _Method] = {"Lucas-Kanade": lucas_kanade}
    methods |= {preset: by_flow(preset) for preset in presets}
    methods |= {f"{presets[0]}, anchor=0": by_flow(presets[0], 0)}
    for displacement in displacements:
        table: dict[str, list[dict[str, float]]] = {}
        for seed in range(count):
            config = replace(
                CONFIG, max_displacement=displacement, perspective_share=float(seed % 2)
            )
            film = SyntheticFilm(config, [17, seed], textures, frames)
            points = grid_points(film.images[0].shape, GRID)
            known = truth(film, points)
            for name, method in methods.items():
                began = time.perf_counter()
                found = method(film.images, points)
                seconds = (time.perf_counter() - began) / len(film.images)
                row = {**scores(found, known), "seconds": seconds}
                table.setdefault(name, []).append(row)
        print(f"\nMotion up to {displacement:g} px\n")
        columns = list(table["Lucas-Kanade"][0])
        print("| method | " + " | ".join(columns) + " |")
        print("|---" * (len(columns) + 1) + "|")
        for name, rows in table.items():
            means = [np.nanmean([row[column] for row in rows]) for column in columns]
            cells = [
                f"{m:.2f}" if c.startswith(("error", "seconds")) else f"{m:.1%}"
                for c, m in zip(columns, means, strict=True)
            ]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
