"""Draw pictures of the documentation, into docs/pictures.

    python -m experiments.scripts.pictures [ROOT]

- sheet.png: the demo's scene, its true flow, the flows of Hamflow and of the best of OpenCV's
  methods, and their errors;
- with ROOT, a folder of pairs with known flow, also pairs.png: the flow of each pair and its error,
  without the frames; and sparsification.png: the mean error that is left when the least confident
  pixels are removed.
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
from hamflow.visualize import error_map, wheel_picture

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
Picture = NDArray[np.uint8]


def main() -> None:
    """Draw the scene, and the pairs if there are any."""
    estimator = hamflow.Estimator("balanced")
    draw_sheet(estimator)
    if len(sys.argv) > 1:
        draw_pairs(estimator, FolderDataset(sys.argv[1]))


def draw_sheet(estimator: hamflow.Estimator) -> None:
    """Draw the demo's scene: a column for the scene, one for Hamflow, one for OpenCV."""
    scene = demo_scene(height=288, width=512)
    flows = {"Hamflow": estimator.estimate(scene.image0, scene.image1).flow}
    flows |= {f"OpenCV {n}": m(scene.image0, scene.image1) for n, m in opencv_methods().items()}
    errors = {name: float(endpoint_error(f, scene.flow).mean()) for name, f in flows.items()}
    print(errors)
    best = min((name for name in flows if name != "Hamflow"), key=lambda name: errors[name])
    longest = float(np.linalg.norm(scene.flow, axis=2).max())

    def color(flow: NDArray[np.float32]) -> Picture:
        return hamflow.flow_to_color(flow, max_flow=longest)

    maps = {name: error_map(flows[name], scene.flow) for name in ("Hamflow", best)}
    room = maps[best].shape[0] - scene.flow.shape[0]
    key = _color_key(scene.flow.shape[1], room, f"direction and length, up to {longest:.0f} px")
    columns = [
        [("First frame", scene.image0), ("True flow", np.concatenate([color(scene.flow), key]))],
        *(
            [
                (f"{name}: mean error {errors[name]:.2f} px", color(flows[name])),
                (f"Error of {name}", maps[name]),
            ]
            for name in maps
        ),
    ]
    save("sheet.png", list(zip(*columns, strict=True)), font_size=23)


def _color_key(width: int, height: int, text: str) -> Picture:
    """Return a strip with the color wheel and what it means."""
    strip = Image.new("RGB", (width, height), "white")
    strip.paste(Image.fromarray(wheel_picture(height - 4)), (0, 4))
    font = ImageFont.load_default(16)
    ImageDraw.Draw(strip).text((height + 6, height / 2), text, "black", font, anchor="lm")
    return np.asarray(strip)


def draw_pairs(estimator: hamflow.Estimator, pairs: FolderDataset) -> None:
    """Draw the flow and the error of each pair, and the mean sparsification curve."""
    tiles, curves = [], []
    for pair in pairs:
        result = estimator.estimate(pair.image0, pair.image1)
        error = endpoint_error(result.flow, pair.flow)
        assert result.confidence is not None
        curves.append(sparsification(error, result.confidence))
        longest = float(np.nanmax(np.linalg.norm(pair.flow, axis=2)))
        name = f"{pair.name}: {float(np.nanmean(error)):.2f} px"
        tiles.append((name, _thumbnail(hamflow.flow_to_color(result.flow, max_flow=longest))))
        tiles.append(("", _thumbnail(error_map(result.flow, pair.flow))))
        print(name, f"AUSE {curves[-1].ause:.3f}", flush=True)
    save("pairs.png", [tiles[k : k + 6] for k in range(0, len(tiles), 6)], font_size=11)
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


def _thumbnail(picture: Picture, width: int = 280) -> Picture:
    image = Image.fromarray(picture)
    height = round(image.height * width / image.width)
    return np.asarray(image.resize((width, height), Image.Resampling.BOX))


def save(name: str, rows: list[list[tuple[str, Picture]]], font_size: int) -> None:
    """Write rows of pictures, each with a title above it."""
    font = ImageFont.load_default(font_size)
    gap, head = font_size // 2, 2 * font_size
    heights = [head + max(picture.shape[0] for _, picture in row) for row in rows]
    width = max(sum(picture.shape[1] + gap for _, picture in row) for row in rows) - gap
    sheet = Image.new("RGB", (width, sum(heights)), "white")
    draw = ImageDraw.Draw(sheet)
    top = 0
    for row, height in zip(rows, heights, strict=True):
        left = 0
        for title, picture in row:
            draw.text((left, top + head - font_size // 3), title, "black", font, anchor="ls")
            sheet.paste(Image.fromarray(picture), (left, top + head))
            left += picture.shape[1] + gap
        top += height
    sheet.save(PICTURES / name, optimize=True)


if __name__ == "__main__":
    main()
