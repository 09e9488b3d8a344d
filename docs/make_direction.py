"""Draw docs/pictures/direction.png: which way flow points, and what warping does.

``python docs/make_direction.py [OUTPUT]``; needs matplotlib. Two images and their true flow are
drawn here, so the picture shows the convention and not an estimate.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray

import hamflow

HEIGHT, WIDTH = 150, 220
START, STEP, RADIUS = np.array([70.0, 55.0]), np.array([70.0, 34.0]), 24
ORANGE = "#D55E00"


def scene(center: NDArray[np.float64]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return an image of a ball on striped ground, and where the ball is."""
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(float)
    ground = 0.72 + 0.08 * np.sin(x / 5) * np.sin(y / 7)
    image = np.stack([ground, ground + 0.06, ground - 0.05], axis=2)
    dx, dy = x - center[0], y - center[1]
    ball = np.hypot(dx, dy) < RADIUS
    checks = 0.5 + 0.35 * np.sign(np.sin(dx / 5) * np.sin(dy / 5))
    image[ball] = np.stack([0.15 * checks, 0.35 * checks, 0.75 * checks], axis=2)[ball]
    return (255 * np.clip(image, 0, 1)).astype(np.uint8), ball


def draw(path: Path) -> None:
    """Draw the picture."""
    first, ball = scene(START)
    second, ball_later = scene(START + STEP)
    flow = np.where(ball[..., None], STEP, 0).astype(np.float32)
    warped = hamflow.warp(second, flow)
    hidden = ball_later & ~ball

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.6), layout="constrained")
    for axis, image, title in (
        (axes[0, 0], first, "first image"),
        (axes[0, 1], second, "second image"),
        (axes[1, 0], hamflow.flow_to_color(flow), "flow of the first image, in colors"),
        (axes[1, 1], warped, "warp(second, flow): looks like the first"),
    ):
        axis.imshow(image)
        axis.set(title=title, xlabel="x → (u)", ylabel="y ↓ (v)")
        axis.tick_params(labelsize=7)
    for axis in (axes[0, 0], axes[0, 1]):
        arrow = {"arrowstyle": "-|>", "color": ORANGE, "lw": 2.2}
        axis.annotate("", START + STEP, START, arrowprops=arrow)
    label = f"flow[{START[1]:.0f}, {START[0]:.0f}] = ({STEP[0]:.0f}, {STEP[1]:.0f})"
    box = {"boxstyle": "round", "fc": "white", "ec": ORANGE}
    axes[0, 0].text(112, 48, label, fontsize=9, bbox=box)
    axes[0, 0].text(44, 22, "(x, y) = (70, 55)", fontsize=9)
    axes[0, 1].text(96, 130, "(x + u, y + v) = (140, 89)", fontsize=9)
    axes[1, 1].contour(hidden, [0.5], colors=ORANGE, linewidths=1.8)
    axes[1, 1].text(112, 50, "occluded: hidden by\nthe ball in the second", fontsize=9, bbox=box)
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    picture = Path(__file__).parent / "pictures" / "direction.png"
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else picture)
