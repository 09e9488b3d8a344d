"""Scenes for which evidence and errors are known: what confidence and occlusion are learned from.

Beside photographs the scenes show what a flow cannot be seen on: plain and black areas, gradients
as in a sky, pictures that are out of focus, overexposed or mostly in the shadow.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

import hamflow
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.refinement.confidence import assessed_at, evidence

Maker = Callable[[Image.Image, np.random.Generator], NDArray[Any]]
PRESETS = ("balanced", "fast", "realtime")
_LONGEST = 800  # pixels of the pictures made here
_SIZE = {"height": 384, "width": 512}
_LARGE = {"height": 448, "width": 640}  # too large for a closer look of `balanced`
_SPACE = {"perspective_share": 1.0, "curved_share": 0.3}
_EMPTY: dict[str, Any] = {
    "max_displacement": 60,
    "min_displacement": 1,
    "min_layers": 0,
    "max_layers": 2,
    "procedural_share": 0,
    "thin_share": 0,
}
# From which folder of pictures they are, and what the scenes are like.
KINDS: dict[str, tuple[str, SyntheticConfig]] = {
    "flat": ("photographs", SyntheticConfig(**_SIZE, articulated_share=0.2)),
    "space": ("photographs", SyntheticConfig(**_SIZE, **_SPACE, specular=0.2)),
    "plain": ("plain", SyntheticConfig(**_SIZE, max_displacement=40, procedural_share=0)),
    "plain space": (
        "plain",
        SyntheticConfig(**_SIZE, **_SPACE, max_displacement=40, procedural_share=0),
    ),
    "blank": ("blank", SyntheticConfig(height=320, width=448, **_EMPTY)),
    "large blank": ("blank", SyntheticConfig(**_LARGE, **_EMPTY)),
    "small": (
        "photographs",
        SyntheticConfig(
            **_SIZE, max_displacement=8, small_share=0.5, still_share=0.4, perspective_share=0.3
        ),
    ),
    "wild": (
        "photographs",
        SyntheticConfig(
            height=384,
            width=768,
            max_displacement=150,
            min_displacement=10,
            camera_share=0.4,
            perspective_share=0.5,
            motion_blur=0.7,
            shutter=0.8,
            max_blur=0.25,
            fog=0.5,
            dull_share=0.4,
        ),
    ),
    "clean": (
        "photographs",
        SyntheticConfig(
            height=320,
            width=384,
            max_displacement=60,
            perspective_share=0.5,
            curved_share=0.2,
            clean=True,
        ),
    ),
    "large": (
        "photographs",
        SyntheticConfig(
            height=436, width=1024, max_displacement=100, perspective_share=0.6, curved_share=0.2
        ),
    ),
}


@dataclass(frozen=True, eq=False)
class Judged:
    """A pair that was estimated, with what is known of every pixel and what is true of it.

    Attributes
    ----------
    kind, preset : str
        Of the scene, and of the estimator.
    evidence : (H, W, N) array of float32
        As `hamflow.refinement.confidence.evidence` returns it.
    unit : int
        Size of its pixels in those of the image.
    error : (H, W) array of float32
        Endpoint error; NaN where the true flow is unknown.
    hidden : (H, W) array of bool, or None
        The true occlusion.
    result : FlowResult
        The estimate.
    """

    kind: str
    preset: str
    evidence: NDArray[np.float32]
    unit: int
    error: NDArray[np.float32]
    hidden: NDArray[np.bool_] | None
    result: hamflow.FlowResult


def rendered(photographs: Path, scratch: Path, count: int, seed: int) -> Iterator[tuple[str, Any]]:
    """Yield scenes and their kinds in turns; `scratch` is a folder for their pictures."""
    folders = {"photographs": photographs, "plain": scratch / "plain", "blank": scratch / "blank"}
    write_plain(photographs, folders["plain"], seed)
    write_pictures(photographs, folders["blank"], _BLANK, 24, seed)
    data = [
        (name, SyntheticDataset(config, folders[folder], seed=seed))
        for name, (folder, config) in KINDS.items()
    ]
    rng = np.random.default_rng(seed)
    for k in range(count):
        kind = k % (len(data) + 1)
        if kind == len(data):
            yield "nothing", nothing_to_see(rng)
        else:
            name, scenes = data[kind]
            yield name, scenes[k]


def nothing_to_see(rng: np.random.Generator) -> SimpleNamespace:
    """Return two frames of one color that the camera moves over, 1 to 60 pixels far."""
    # Small ones are matched at full size, large ones at half and a quarter of it.
    height, width = (int(96 * 12**share) for share in rng.random(2))
    image = np.full((height, width, 3), rng.choice([0, 255, *rng.integers(0, 256, 2)]), np.uint8)
    length, angle = np.exp(rng.uniform(0, np.log(60))), rng.uniform(0, 2 * np.pi)
    motion = np.float32([length * np.cos(angle), length * np.sin(angle)])
    y, x = np.mgrid[:height, :width]
    there = np.stack([x, y], axis=2) + motion
    hidden = ((there < 0) | (there > [width - 1, height - 1])).any(axis=2)
    flow = np.broadcast_to(motion, (height, width, 2))
    return SimpleNamespace(image0=image, image1=image, flow=flow, occluded=hidden)


def judged(estimators: dict[str, hamflow.Estimator], kind: str, pair: Any) -> Iterator[Judged]:
    """Estimate a pair with all presets."""
    for preset, estimator in estimators.items():
        frames = estimator.frame(pair.image0), estimator.frame(pair.image1)
        result, matches = estimator.between(*frames)
        assert result.backward is not None
        scale = matches.scale
        finest = assessed_at(getattr(estimator.config.refinement, "finest", 1), scale)
        bits = frames[0].bits(scale), frames[1].bits(scale)
        known = evidence(
            frames, (result.flow, result.backward), bits, matches.directions, scale, finest=finest
        )
        error = np.linalg.norm(result.flow - pair.flow, axis=2).astype(np.float32)
        yield Judged(kind, preset, known, min(finest, scale), error, pair.occluded, result)


def write_plain(photographs: Path, folder: Path, seed: int) -> None:
    """Make pictures of which two thirds have little or no texture."""
    write_pictures(photographs, folder, _PLAIN, 40, seed)
    for k, path in enumerate(sorted(photographs.iterdir())[:20]):
        shutil.copy(path, folder / f"photograph{k:03d}{path.suffix}")


def write_pictures(
    photographs: Path, folder: Path, makers: Sequence[Maker], count: int, seed: int
) -> None:
    """Make pictures with little or no texture of photographs."""
    rng = np.random.default_rng(seed)
    paths = sorted(path for path in photographs.iterdir() if path.suffix in (".jpg", ".png"))
    folder.mkdir()
    for k in range(count):
        picture = Image.open(paths[int(rng.integers(len(paths)))]).convert("RGB")
        picture.thumbnail((_LONGEST, _LONGEST))
        pixels = makers[k % len(makers)](picture, rng)
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(folder / f"{k:03d}.png")


def _pixels(picture: Image.Image) -> NDArray[np.float32]:
    return np.asarray(picture, np.float32)


def _one_color(picture: Image.Image, rng: np.random.Generator) -> NDArray[Any]:
    return np.broadcast_to(rng.uniform(0, 255, 3), _pixels(picture).shape)


def _black_or_white(picture: Image.Image, rng: np.random.Generator) -> NDArray[Any]:
    return np.full(_pixels(picture).shape, rng.choice([0, 0, 5, 255]))


def _gradient(picture: Image.Image, rng: np.random.Generator) -> NDArray[Any]:
    down = np.linspace(0, 1, picture.height)[:, None, None]
    above, below = rng.uniform(0, 255, (2, 3))
    return above * (1 - down) + below * down + np.zeros_like(_pixels(picture))


def _sky(picture: Image.Image, rng: np.random.Generator) -> NDArray[Any]:
    clouds = _pixels(picture.filter(ImageFilter.GaussianBlur(30)))
    return 0.7 * _gradient(picture, rng) + 60 + 0.1 * (clouds - clouds.mean(axis=(0, 1)))


def _out_of_focus(picture: Image.Image, rng: np.random.Generator) -> NDArray[Any]:
    return _pixels(picture.filter(ImageFilter.GaussianBlur(float(rng.uniform(8, 25)))))


def _overexposed(picture: Image.Image, rng: np.random.Generator) -> NDArray[Any]:
    return _pixels(picture) * rng.uniform(2.5, 5)


def _in_the_shadow(picture: Image.Image, rng: np.random.Generator) -> NDArray[Any]:
    return _pixels(picture) * rng.uniform(0.5, 1.2) - rng.uniform(60, 140)


def _partly_painted(picture: Image.Image, rng: np.random.Generator) -> NDArray[Any]:
    pixels = _pixels(picture)
    gray = pixels.mean(axis=2, keepdims=True)
    return np.where(gray > np.quantile(gray, rng.uniform(0.3, 0.6)), rng.uniform(0, 255, 3), pixels)


_BLANK = (_one_color, _black_or_white, _gradient, _sky)
_PLAIN = (*_BLANK, _out_of_focus, _overexposed, _in_the_shadow, _partly_painted)
