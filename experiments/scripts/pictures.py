"""Draw pictures of the documentation, into docs/pictures.

    python -m experiments.scripts.pictures [ROOT]

- sheet.png: the demo's scene, its true flow, the flows of Hamflow and of the best of OpenCV's
  methods, and their errors;
- closer.png: a part of that scene, larger: borders and thin things without and with a closer look;
- styles.png: the flow of that scene in all styles of `hamflow.visualize.render`;
- scale.png: how a video that begins at rest looks with the scale of its first frame, and with a
  running one; and a turning disk with vectors beyond full color darkened, and clamped;
- with ROOT, a folder of pairs with known flow, also pairs.png: the flow of each pair and its error,
  without the frames; and sparsification.png: the mean error that is left when the least confident
  pixels are removed.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import tyro
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

import hamflow
from hamflow.datasets import demo_scene
from hamflow.datasets.folder import FolderDataset
from hamflow.evaluation import Sparsification, opencv_methods, sparsification
from hamflow.flow import endpoint_error
from hamflow.visualize import STYLES, RunningScale, error_map, typical_length, wheel_picture

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
Picture = NDArray[np.uint8]


def main(root: tyro.conf.Positional[Path | None] = None) -> None:
    """Draw the scene, and the pairs if there are any."""
    estimator = hamflow.Estimator("balanced")
    draw_sheet(estimator)
    draw_closer()
    draw_styles(estimator)
    draw_scale()
    if root is not None:
        draw_pairs(estimator, FolderDataset(root))


def draw_sheet(estimator: hamflow.Estimator) -> None:
    """Draw the demo's scene: a column for the scene, one for Hamflow, one for OpenCV."""
    scene = demo_scene(height=288, width=512)
    flows = {"Hamflow": estimator.estimate(scene.image0, scene.image1).flow}
    flows |= {f"OpenCV {n}": m(scene.image0, scene.image1) for n, m in opencv_methods().items()}
    errors = {name: float(endpoint_error(f, scene.flow).mean()) for name, f in flows.items()}
    print(errors)
    best = min((name for name in flows if name != "Hamflow"), key=lambda name: errors[name])
    longest = typical_length(scene.flow)

    def color(flow: NDArray[np.float32]) -> Picture:
        return hamflow.flow_to_color(flow, max_flow=longest)

    maps = {name: error_map(flows[name], scene.flow) for name in ("Hamflow", best)}
    room = maps[best].shape[0] - scene.flow.shape[0]
    key = _color_key(
        scene.flow.shape[1], room, f"direction and length; full color is {longest:.0f} px"
    )
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


def draw_closer() -> None:
    """Draw what the preset `fine` adds to `balanced`."""
    scene, part = demo_scene(height=436, width=768), np.s_[130:330, 80:340]
    longest = typical_length(scene.flow)

    def enlarged(picture: Picture) -> Picture:
        return picture[part].repeat(2, axis=0).repeat(2, axis=1)

    panels = [("First frame", enlarged(scene.image0))]
    flows = {"True flow": scene.flow}
    for preset in ("balanced", "fine"):
        flow = hamflow.estimate(scene.image0, scene.image1, preset).flow
        error = float(endpoint_error(flow, scene.flow).mean())
        flows[f"{preset}: mean error {error:.2f} px"] = flow
    for name, flow in flows.items():
        panels.append((name, enlarged(hamflow.flow_to_color(flow, max_flow=longest))))
    save("closer.png", [panels[:2], panels[2:]], font_size=20)


def draw_styles(estimator: hamflow.Estimator) -> None:
    """Draw the demo's scene in all styles."""
    scene = demo_scene(height=288, width=512)
    result = estimator.estimate(scene.image0, scene.image1)
    panels = []
    for style in STYLES:
        picture = result.render(scene.image0, style)
        panels.append((f'"{style}"', _thumbnail(picture, 512)))
    save("styles.png", [panels[:2], panels[2:]], font_size=18)


def draw_scale() -> None:
    """Draw what the rule of scale is good for: no dark frames, no false edges."""
    y, x = np.mgrid[-1:1:160j, -1.4:1.4:224j].astype(np.float32)
    disk = (np.hypot(x, y) < 0.9)[:, :, None]
    turning = np.where(disk, np.stack([-y, x], axis=2), np.float32(0))
    speeds = [0.2, 0.2, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8]
    lengths = [typical_length(speed * turning) for speed in speeds]
    scale = RunningScale()
    running = [scale.add(length) for length in lengths]
    rows = []
    for title, scales, color in (
        ("first frame's scale, darkened beyond", [lengths[0]] * len(speeds), _darkened),
        ("running scale, clamped", running, hamflow.flow_to_color),
    ):
        shown = [
            (
                f"frame {k + 1}: {scales[k]:.1f} px" if k else title,
                color(speeds[k] * turning, max_flow=scales[k]),
            )
            for k in (0, 2, 5, 8, 11)
        ]
        rows.append(shown)
    save("scale.png", rows, font_size=13)


def _darkened(flow: NDArray[np.float32], max_flow: float) -> Picture:
    """Return the colors with vectors beyond full color at 75 %, as the package flow_vis has it."""
    picture = hamflow.flow_to_color(flow, max_flow=max_flow)
    beyond = np.linalg.norm(flow, axis=2) > max_flow
    picture[beyond] = (0.75 * picture[beyond]).astype(np.uint8)
    return picture


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
        longest = typical_length(pair.flow)
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
    tyro.cli(main, description=__doc__)
