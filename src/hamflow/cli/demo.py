"""``hamflow demo``: the main job on a scene that the package renders itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from hamflow import crf
from hamflow._runtime import get_isa, get_num_threads
from hamflow.datasets import Scene, demo_scene
from hamflow.descriptors import pair_bits
from hamflow.errors import FileError
from hamflow.estimator import Estimator
from hamflow.flow import endpoint_error, flow_to_color
from hamflow.io import write_flow, write_image
from hamflow.matching import min_projection
from hamflow.result import FlowResult
from hamflow.window import Window


def demo(
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("out"), seed: int = 0
) -> None:
    """Render a scene with known motion, match it, say how good the flow is, draw it.

    Parameters
    ----------
    output
        Folder for the two frames, the flow (.flo) and a picture.
    seed
        Another number, another scene.
    """
    console = Console(soft_wrap=True, markup=False)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as trouble:
        raise FileError(
            f"{output}: cannot be made a folder ({trouble.strerror}); choose another with -o."
        ) from trouble
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
    console.print(
        f"Rendered two {width}×{height} frames with motion up to "
        f"{np.linalg.norm(scene.flow, axis=2).max():.1f} px.\n"
        f"64-bit descriptors in {described - start:.3f} s; local model (winner takes all over "
        f"{window.du}×{window.dv} displacements, {entries / 1e9:.2f} G matching costs) in "
        f"{matched - described:.3f} s on {get_num_threads()} threads, level {get_isa()}.\n"
        f"Joint model in {solved - matched:.3f} s: energy {joint.energy:.0f}, and none is below "
        f"{joint.bound:.0f} (duality gap {joint.gap:.2%}).\n"
        f"The preset 'balanced' (learned descriptors, both directions, refinement) in "
        f"{estimated - solved:.3f} s.",
        highlight=False,
    )
    table = Table("model", "pixels", "share", "mean error", "median error", "within 1.5 px")
    for model, flow in (("local", local), ("joint", joint.flow), ("balanced", result.flow)):
        error = endpoint_error(flow, scene.flow)
        for name, mask in (("visible", ~scene.occluded), ("occluded", scene.occluded)):
            table.add_row(model, name, f"{mask.mean():.1%}", *_summary(error[mask]))
    console.print(table)

    files = {
        "frame1.png": scene.image0,
        "frame2.png": scene.image1,
        "demo.png": _sheet(scene, result),
    }
    for name, image in files.items():
        write_image(output / name, image)
    write_flow(output / "flow.flo", result.flow)
    console.print(
        f"Wrote {output}/flow.flo, the frames, and {output}/demo.png (the frames; truth and "
        "estimate; error and confidence).",
        highlight=False,
    )


def _summary(error: NDArray[np.float32]) -> tuple[str, str, str]:
    if error.size == 0:
        return ("-", "-", "-")
    return f"{error.mean():.2f} px", f"{np.median(error):.2f} px", f"{(error < 1.5).mean():.1%}"


def _sheet(scene: Scene, result: FlowResult) -> NDArray[np.uint8]:
    """Return both frames, truth and estimate, error (white is 8 px) and confidence: three rows."""
    scale = float(np.linalg.norm(scene.flow, axis=2).max())
    assert result.confidence is not None
    grays = endpoint_error(result.flow, scene.flow) / 8, result.confidence
    rows = [
        [scene.image0, scene.image1],
        [flow_to_color(flow, max_flow=scale) for flow in (scene.flow, result.flow)],
        [
            np.repeat(np.rint(255 * gray.clip(0, 1)).astype(np.uint8)[..., None], 3, axis=2)
            for gray in grays
        ],
    ]
    return np.concatenate([np.concatenate(row, axis=1) for row in rows], axis=0)
