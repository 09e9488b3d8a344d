"""Draw the pictures of the documentation.

    python -m experiments.scripts.pictures ROOT

ROOT is a tree of pairs with known flow. Writes to docs/pictures:

- sheet.png: a rendered scene, its truth, our flow, OpenCV's best, and the errors of both;
- pairs.png: for the pairs below ROOT our flow and its error, nothing of the frames themselves;
- sparsification.png: what remains of the error when the least confident pixels are taken away.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

import hamflow
from hamflow.datasets import demo_scene
from hamflow.datasets.folder import FolderDataset
from hamflow.evaluation import Sparsification, opencv_methods, sparsification
from hamflow.flow import endpoint_error
from hamflow.visualize import error_map

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
Picture = NDArray[np.uint8]


def main() -> None:
    """Draw all of them."""
    estimator = hamflow.Estimator("balanced")
    draw_sheet(estimator)
    draw_pairs(estimator, FolderDataset(sys.argv[1]))


def draw_sheet(estimator: hamflow.Estimator) -> None:
    """Draw a scene that Hamflow renders, beside OpenCV's best."""
    scene = demo_scene(height=300, width=480, seed=3)
    ours = estimator.estimate(scene.image0, scene.image1)
    others = {name: m(scene.image0, scene.image1) for name, m in opencv_methods().items()}
    errors = {name: float(endpoint_error(f, scene.flow).mean()) for name, f in others.items()}
    best = min(errors, key=lambda name: errors[name])
    longest = float(np.linalg.norm(scene.flow, axis=2).max())

    def color(flow: NDArray[np.float32]) -> Picture:
        return hamflow.flow_to_color(flow, max_flow=longest)

    own = float(endpoint_error(ours.flow, scene.flow).mean())
    assert ours.occlusion is not None
    hidden = np.repeat(ours.occlusion[..., None], 3, axis=2)
    tiles = [
        ("first frame", scene.image0),
        ("second frame", scene.image1),
        (f"true flow, up to {longest:.0f} px", color(scene.flow)),
        ("found to be hidden", (~hidden).astype(np.uint8) * np.uint8(255)),
        (f"Hamflow: {own:.2f} px", color(ours.flow)),
        (f"OpenCV's best, {best}: {errors[best]:.2f} px", color(others[best])),
        ("error of Hamflow", error_map(ours.flow, scene.flow)),
        (f"error of {best}", error_map(others[best], scene.flow)),
    ]
    save("sheet.png", [tiles[k : k + 2] for k in range(0, len(tiles), 2)])
    print({"hamflow": own} | errors)


def draw_pairs(estimator: hamflow.Estimator, pairs: FolderDataset) -> None:
    """Draw what we computed for real pairs: colors, errors, and curves of the confidence."""
    tiles, curves = [], []
    for pair in pairs:
        result = estimator.estimate(pair.image0, pair.image1)
        error = endpoint_error(result.flow, pair.flow)
        assert result.confidence is not None
        curves.append(sparsification(error, result.confidence))
        longest = float(np.nanmax(np.linalg.norm(pair.flow, axis=2)))
        shown = hamflow.flow_to_color(result.flow, max_flow=longest)
        name = f"{pair.name}: {float(np.nanmean(error)):.2f} px"
        tiles.append((name, _reduced(shown)))
        tiles.append(("", _reduced(error_map(result.flow, pair.flow))))
        print(name, f"AUSE {curves[-1].ause:.3f}", flush=True)
    save("pairs.png", [tiles[k : k + 6] for k in range(0, len(tiles), 6)])
    draw_curves(curves)


def draw_curves(curves: list[Sparsification]) -> None:
    """Draw the mean over the pairs, each relative to its own error."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  (after the choice of the backend)

    figure, axes = plt.subplots(figsize=(6, 3.6))
    removed = 100 * curves[0].removed
    error = np.mean([c.error for c in curves], axis=0)
    oracle = np.mean([c.oracle for c in curves], axis=0)
    axes.plot(removed, error, label="by confidence")
    axes.plot(removed, oracle, label="by the true error")
    ause = np.mean([c.ause for c in curves])
    axes.fill_between(removed, oracle, error, alpha=0.15, label=f"AUSE {ause:.3f}")
    axes.set(xlabel="pixels removed, %", ylabel="mean error, relative", xlim=(0, 99), ylim=(0, 1))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURES / "sparsification.png", dpi=120)
    print(f"mean AUSE {ause:.4f} over {len(curves)} pairs")


def _reduced(picture: Picture, width: int = 280) -> Picture:
    image = Image.fromarray(picture)
    height = round(image.height * width / image.width)
    return np.asarray(image.resize((width, height), Image.Resampling.BOX))


def save(name: str, rows: list[list[tuple[str, Picture]]]) -> None:
    """Write titled tiles in rows."""
    font = ImageFont.load_default(size=15 if len(rows[0]) < 4 else 11)
    drawn = [[_titled(title, tile, font) for title, tile in row] for row in rows]
    width = max(sum(t.shape[1] for t in row) for row in drawn)
    lines = []
    for row in drawn:
        height = max(t.shape[0] for t in row)
        line = np.full((height, width, 3), 255, np.uint8)
        x = 0
        for t in row:
            line[: t.shape[0], x : x + t.shape[1]] = t
            x += t.shape[1]
        lines.append(line)
    Image.fromarray(np.concatenate(lines)).save(PICTURES / name, optimize=True)


def _titled(title: str, tile: Picture, font: ImageFont.FreeTypeFont) -> Picture:
    top = 22
    canvas = Image.new("RGB", (tile.shape[1] + 4, tile.shape[0] + top + 2), "white")
    canvas.paste(Image.fromarray(tile), (2, top))
    ImageDraw.Draw(canvas).text((4, 3), title, fill="black", font=font)
    return np.asarray(canvas)


if __name__ == "__main__":
    main()
