"""How good frames in between, stabilization and masks of what moves are, on rendered films.

    python -m experiments.scripts.motion PHOTOGRAPHS [--count 20] [--preset fast]

prints

- interpolate: the PSNR of the middle one of three frames, made of the other two, over all pixels
  and over those that are hidden in one of them; besides that of the mean of the two frames, and of
  warping both by the flow without regard to occlusions. Films without effects, whose motion is
  steady;
- stabilize: the root mean square of the second difference of where a point of the scene is shown,
  in a film shaken by known homographies, before and after; and the error of the camera's motion;
- mask: the intersection over union of what is said and what is known to move by itself by more than
  1.5 pixels (0.5 to 1.5 pixels do not count), in films of which it covers 2 to 50 %: in the plane,
  where the background is what the camera moves, and in space. With all effects.

The films have 384×256 pixels. The photographs should be others than those of the training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import tyro
from numpy.typing import NDArray
from PIL import Image

from hamflow import Estimator, FlowResult, moving_mask, video
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticFilm, TextureSet, load_textures
from hamflow.datasets.synthetic.compose import owners
from hamflow.datasets.synthetic.patch import Patch
from hamflow.flow import warp
from hamflow.motion import camera_path, frames_between, smoothed, steady
from hamflow.motion.camera import apply

CONFIG = SyntheticConfig(height=256, width=384, min_displacement=1.0, elastic_share=0.0)
Floats = NDArray[np.floating]


def psnr(picture: Floats, truth: NDArray[np.uint8], where: NDArray[np.bool_]) -> float:
    """Return the peak signal-to-noise ratio in dB."""
    square = np.square(picture.astype(np.float64) - truth)[where].mean() if where.any() else np.nan
    return float(10 * np.log10(255**2 / max(square, 1e-9)))


def warped(first: Floats, second: Floats, result: FlowResult) -> Floats:
    """Warp both frames to the middle by the flow at the same pixel; from inside, if possible."""
    before, known = warp(first.astype(np.float32), -0.5 * result.flow, return_mask=True)
    after, there = warp(second.astype(np.float32), 0.5 * result.flow, return_mask=True)
    weights = [np.where(mask, 1.0, 1e-6)[..., None] for mask in (known, there)]
    return (weights[0] * before + weights[1] * after) / (weights[0] + weights[1])


def interpolation(estimator: Estimator, textures: TextureSet, count: int) -> None:
    """Leave out the middle frame."""
    rows = []
    for seed in range(count):
        config = replace(CONFIG, max_displacement=20, perspective_share=float(seed % 2), clean=True)
        film = SyntheticFilm(config, [5, seed], textures, 3)
        first, middle, second = film.images
        result = estimator.estimate(first, second)
        hidden = film.truth(1, 0)[1] | film.truth(1, 2)[1]
        pictures = {
            "mean of the frames": (first.astype(np.float64) + second) / 2,
            "warped, without occlusions": warped(first, second, result),
            "hamflow interpolate": next(frames_between(first, second, result, [0.5])),
        }
        rows.append(
            {n: [psnr(p, middle, m) for m in (hidden >= 0, hidden)] for n, p in pictures.items()}
        )
    for name in rows[0]:
        everywhere, behind = np.nanmean([row[name] for row in rows], axis=0)
        print(f"interpolate | {name} | {everywhere:.1f} dB | hidden {behind:.1f} dB", flush=True)


def shaken(scene: Image.Image, seed: int, frames: int = 40) -> Iterator[tuple[Floats, Floats]]:
    """Yield pictures by a shaking, slowly panning camera, and their homographies."""
    rng = np.random.default_rng(seed)
    width, height = CONFIG.width, CONFIG.height
    picture = scene.convert("RGB").resize((640, 440))
    center, half = np.array([width, height]) / 2, np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    for k in range(frames):
        angle, zoom = rng.normal(0, 0.01), 1 + rng.normal(0, 0.01)
        turn = zoom * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        matrix = np.eye(3)
        matrix[:2, :2] = turn
        matrix[:2, 2] = center - turn @ center + rng.normal(0, 4, 2) - (90 + 2 * k, 90)
        matrix[2, :2] = rng.normal(0, 1e-5, 2)
        back = half @ np.linalg.inv(matrix) @ np.linalg.inv(half)
        data = tuple((back / back[2, 2]).ravel()[:8].tolist())
        kind, filter_ = Image.Transform.PERSPECTIVE, Image.Resampling.BICUBIC
        yield np.asarray(picture.transform((width, height), kind, data, filter_)), matrix


def shake(matrices: list[Floats]) -> float:
    """Return the root mean square of the second difference of some points of the scene."""
    x, y = np.meshgrid([200.0, 280.0, 360.0], [150.0, 220.0, 290.0])
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    places = np.stack([apply(matrix, points) for matrix in matrices])
    return float(np.sqrt(np.square(np.diff(places, 2, axis=0)).sum(axis=-1).mean()))


def stabilization(estimator: Estimator, photographs: Path, count: int) -> None:
    """Shake photographs."""
    rows = []
    corners = np.array([[60.0, 50], [320, 50], [60, 200], [320, 200]])
    for seed, photograph in enumerate(sorted(photographs.iterdir())[:count]):
        images, matrices = zip(*shaken(Image.open(photograph), seed), strict=True)
        path = camera_path(video(images, estimator))
        true = [b @ np.linalg.inv(a) for a, b in pairwise(matrices)]
        off = [
            np.linalg.norm(apply(found, corners) - apply(known, corners), axis=1).mean()
            for found, known in zip(path.motions, true, strict=True)
        ]
        plan = smoothed(path)
        assert len(list(steady(images, plan))) == len(images)
        after = [warp_ @ matrix for warp_, matrix in zip(plan.matrices, matrices, strict=True)]
        rows.append([shake(list(matrices)), plan.kept * shake(after), np.mean(off), plan.kept])
    before, after, error, kept = np.mean(rows, axis=0)
    least = min(row[0] / row[1] for row in rows)
    print(
        f"stabilize | {len(rows)} photographs | shake {before:.2f} px → {after:.2f} px, "
        f"{before / after:.0f}× less, at least {least:.0f}× | error of the camera's motion "
        f"{error:.3f} px | {kept:.0%} of the width and height kept",
        flush=True,
    )


def camera_flow(film: SyntheticFilm, frame: int) -> Floats:
    """Return the flow that there would be if from a frame on only the camera moved."""
    x, y = film.canvas.x.astype(np.float64), film.canvas.y.astype(np.float64)
    owner = owners(film.canvas, film.surfaces, frame).ravel()
    moved = np.stack([x, y])
    for number, surface in enumerate(film.surfaces):
        mine = np.flatnonzero(owner == number)
        if isinstance(surface, Patch):
            own, shift = surface.motion.at(frame)
            turn, way = surface.view.motion.at(frame + 1)
            plane = turn @ own @ surface.plane
            plane[:, 2] += turn @ shift + way
            matrix = surface.view.intrinsics @ plane @ surface._pose(float(frame))[1]
            moved[:, mine] = apply(matrix, np.stack([x[mine], y[mine]], axis=1)).T
        else:
            there = film.surfaces[0].follow(
                frame, frame + 1, film.canvas.x[mine], film.canvas.y[mine]
            )
            moved[:, mine] = there[:2]
    shape = (2, film.canvas.height, film.canvas.width)
    return np.moveaxis((moved - np.stack([x, y])).reshape(shape), 0, -1)


def masks(estimator: Estimator, textures: TextureSet, count: int) -> None:
    """Compare with what is known to move."""
    found: dict[str, list[float]] = {"in the plane": [], "in space": []}
    for seed in range(2 * count):
        kind = list(found)[seed % 2]
        config = replace(
            CONFIG, max_displacement=30, perspective_share=float(seed % 2), still_share=0.4
        )
        film = SyntheticFilm(config, [6, seed], textures, 3)
        off = np.linalg.norm(film.truth(1, 2)[0] - camera_flow(film, 1), axis=2)
        moves = off > 1.5
        if not 0.02 < moves.mean() < 0.5 or len(found[kind]) == count:
            continue
        before, now = (item.result for item in video(film.images, estimator))
        said = moving_mask(now, previous=before).mask
        counts = moves | (off < 0.5)
        union = (said | moves) & counts
        found[kind].append(float((said & moves & counts).sum() / union.sum()))
    for kind, values in found.items():
        print(
            f"mask | {kind}, {len(values)} films | IoU mean {np.mean(values):.2f}, median "
            f"{np.median(values):.2f}",
            flush=True,
        )


def main(photographs: tyro.conf.Positional[Path], *, count: int = 20, preset: str = "fast") -> None:
    """Measure and print."""
    textures, estimator = load_textures(photographs), Estimator(preset)
    interpolation(estimator, textures, count)
    stabilization(estimator, photographs, max(1, count // 4))
    masks(estimator, textures, count)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
