"""``hamflow demo``: the flow of a scene that Hamflow renders itself."""

from __future__ import annotations

import time
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console

from hamflow import crf
from hamflow._check import to_rgb
from hamflow._runtime import get_isa, get_num_threads
from hamflow.cli._console import say, table_of
from hamflow.cli._options import Number, OutputFolder
from hamflow.datasets import SyntheticScene, demo_scene
from hamflow.descriptors import pair_bits
from hamflow.estimator import Estimator
from hamflow.flow import endpoint_error
from hamflow.io import write_flow, write_image
from hamflow.io._atomic import make_folder
from hamflow.matching import min_projection
from hamflow.result import FlowResult
from hamflow.visualize import add_key, error_map, flow_to_color, typical_length
from hamflow.window import Window


def demo(output: OutputFolder = Path("out"), seed: Number = 0) -> None:
    """Render a scene with known motion, estimate its flow, and show how good the result is.

    Parameters
    ----------
    output
        Folder for the two frames, the flow (.flo), and a picture of everything; existing files of
        these names are replaced.
    seed
        Each number gives another scene.
    """
    make_folder(output)
    scene = demo_scene(seed=seed)
    height, width = scene.flow.shape[:2]
    window = Window.of(96)

    start = time.perf_counter()
    bits0, bits1 = pair_bits(scene.image0), pair_bits(scene.image1)
    described = time.perf_counter()
    local = min_projection(bits0, bits1, window).wta()
    matched = time.perf_counter()
    joint = crf.solve(bits0=bits0, bits1=bits1, image=scene.image0, window=window)
    solved = time.perf_counter()
    result = Estimator("balanced").estimate(scene.image0, scene.image1)
    estimated = time.perf_counter()

    entries = height * width * window.du * window.dv
    say(
        f"Rendered two {width}×{height} frames with motion up to "
        f"{np.linalg.norm(scene.flow, axis=2).max():.1f} px.\n"
        f"64-bit descriptors in {described - start:.3f} s; local model (winner takes all over "
        f"{window.du}×{window.dv} displacements, {entries / 1e9:.2f} G matching costs) in "
        f"{matched - described:.3f} s on {get_num_threads()} threads, level {get_isa()}.\n"
        f"Joint model in {solved - matched:.3f} s: energy {joint.energy:.0f}; no labeling can have "
        f"one below {joint.bound:.0f} (duality gap {joint.gap:.2%}).\n"
        f"The preset 'balanced' (learned descriptors, bidirectional, refined) in "
        f"{estimated - solved:.3f} s."
    )
    table = table_of("model", "pixels", "share", "mean error", "median error", "within 1.5 px")
    for model, flow in (("local", local), ("joint", joint.flow), ("balanced", result.flow)):
        error = endpoint_error(flow, scene.flow)
        for name, mask in (("visible", ~scene.occluded), ("occluded", scene.occluded)):
            table.add_row(model, name, f"{mask.mean():.1%}", *_summary(error[mask]))
    Console(markup=False).print(table)

    files = {
        "frame1.png": scene.image0,
        "frame2.png": scene.image1,
        "demo.png": np.asarray(_sheet(scene, result)),
    }
    for name, image in files.items():
        write_image(output / name, image)
    write_flow(output / "flow.flo", result.flow)
    say(
        f"Wrote {output}/flow.flo, the frames, and {output}/demo.png (the frames, the true and the "
        "estimated flow, its errors and its confidence)."
    )


def _summary(error: NDArray[np.float32]) -> tuple[str, str, str]:
    if error.size == 0:
        return ("-", "-", "-")
    return f"{error.mean():.2f} px", f"{np.median(error):.2f} px", f"{(error < 1.5).mean():.1%}"


def _sheet(scene: SyntheticScene, result: FlowResult) -> Image.Image:
    """Return a picture of both frames, both flows, the errors and the confidence."""
    longest = typical_length(scene.flow)
    colors = [flow_to_color(flow, max_flow=longest) for flow in (scene.flow, result.flow)]
    assert result.confidence is not None
    return _grid(
        [
            [("first frame", scene.image0), ("second frame", scene.image1)],
            [
                ("true flow", add_key(colors[0], longest)),
                ("estimated flow", colors[1]),
            ],
            [
                ("error of the estimated flow", error_map(result.flow, scene.flow)),
                ("confidence (white is certain)", to_rgb(result.confidence)),
            ],
        ]
    )


def _grid(rows: list[list[tuple[str, NDArray[np.uint8]]]]) -> Image.Image:
    """Return pictures in rows, each below its title."""
    line, gap = 24, 8
    width = max(picture.shape[1] for row in rows for _, picture in row) + gap
    heights = [max(picture.shape[0] for _, picture in row) + line + gap for row in rows]
    size = (gap + width * max(len(row) for row in rows), sum(heights))
    sheet = Image.new("RGB", size, "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(15)
    for row, top in zip(rows, accumulate(heights, initial=0), strict=False):
        for column, (title, picture) in enumerate(row):
            left = gap + column * width
            draw.text((left, top + line - 4), title, "black", font, anchor="ls")
            sheet.paste(Image.fromarray(picture), (left, top + line))
    return sheet
