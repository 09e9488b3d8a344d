"""How much memory and time images of several sizes take, and what `hamflow.plan` says before.

    python -m experiments.scripts.sizes FOLDER [--runs 1920x1080:600MB 8000x6000:4GB:files ...]
        [--preset balanced] [--window 256]

makes two images of each size in FOLDER (mosaics of rendered scenes, of which the second is moved by
a known vector), estimates their flow in a process of its own, and prints the planned and the
measured peak of its memory, the seconds, the time per pixel, and the share of pixels that are wrong
by more than a pixel. A run is WIDTHxHEIGHT, with the limit of memory if there is one. With `files`,
images are read and flow, backward flow, occlusion and confidence are written part by part (.npy);
with `flow`, the flow alone is. `--one RUN` measures in this process, and prints JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray

import hamflow
from hamflow._memory import peak_memory, show_memory
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.pipeline.box import cover

RUNS = ("1024x436", "1920x1080", "3840x2160", "1920x1080:600MB", "3840x2160:2GB", "8000x6000:4GB")
MOVED = (24, -14)
_TILE, _SCENES = (384, 512), 6


def main(
    folder: tyro.conf.Positional[Path],
    *,
    runs: tuple[str, ...] = RUNS,
    preset: str = "balanced",
    window: str = "256",
    one: str | None = None,
) -> None:
    """Measure and print."""
    labels: Any = window if window == "auto" else int(window)
    if one is not None:
        print(json.dumps(measure(folder, one, preset, labels)))
        return
    folder.mkdir(parents=True, exist_ok=True)
    print("| size | limit | tiles | planned | peak | seconds | µs per pixel | wrong |")
    print("|---|---|---|---|---|---|---|---|")
    for run in runs:
        words = [str(folder), "--one", run, "--preset", preset, "--window", window]
        make_images(folder, *size_of(run))
        command = [sys.executable, "-m", "experiments.scripts.sizes", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"| {run} | {done.stderr.strip().splitlines()[-1]} |", flush=True)
            continue
        found = json.loads(done.stdout)
        width, height = size_of(run)
        print(
            f"| {width}×{height} | {run.partition(':')[2] or '–'} | {found['tiles']} | "
            f"{show_memory(found['planned'])} | {show_memory(found['peak'])} | "
            f"{found['seconds']:.1f} | {1e6 * found['seconds'] / (width * height):.2f} | "
            f"{found['wrong']:.2%} |",
            flush=True,
        )


def size_of(run: str) -> tuple[int, int]:
    """Return width and height of a run."""
    width, _, height = run.partition(":")[0].partition("x")
    return int(width), int(height)


def make_images(folder: Path, width: int, height: int) -> None:
    """Write the two images of a size as .npy files, unless they exist."""
    names = [folder / f"{width}x{height}-{k}.npy" for k in range(2)]
    if all(name.exists() for name in names):
        return
    config = SyntheticConfig(height=_TILE[0], width=_TILE[1])
    scenes = SyntheticDataset(config, seed=1, size=_SCENES)
    tiles = np.stack([np.asarray(scene.image0) for scene in scenes])
    for name, (u, v) in zip(names, ((0, 0), MOVED), strict=True):
        image = np.lib.format.open_memmap(name, "w+", np.uint8, (height, width, 3))
        x = np.arange(width) - u + 10 * _TILE[1]
        for row in range(height):
            y = row - v + 10 * _TILE[0]
            which = (7 * (x // _TILE[1]) + 5 * (y // _TILE[0])) % _SCENES
            image[row] = tiles[which, y % _TILE[0], x % _TILE[1]]


def measure(folder: Path, run: str, preset: str, window: Any) -> dict[str, Any]:
    """Estimate the flow of one size in this process."""
    width, height = size_of(run)
    _, memory, files = (*run.split(":"), "", "")[:3]
    limit = memory or None
    plan = hamflow.plan(width, height, preset, window, max_memory=limit, files=bool(files))
    paths = [str(folder / f"{width}x{height}-{k}.npy") for k in range(2)]
    estimator = hamflow.Estimator(preset, window=window, max_memory=limit)
    flow: NDArray[np.float32]
    if files:
        fields = ["flow"] if files == "flow" else ["flow", "backward", "occlusion", "confidence"]
        targets = {name: folder / f"{width}x{height}-{name}.npy" for name in fields}
        start = time.perf_counter()
        hamflow.estimate_files(*paths, **targets, estimator=estimator)
        seconds, peak = time.perf_counter() - start, peak_memory()
        flow = np.load(targets["flow"], mmap_mode="r")
    else:
        images = [np.load(path) for path in paths]
        start = time.perf_counter()
        flow = estimator.estimate(*images).flow
        seconds, peak = time.perf_counter() - start, peak_memory()
    wrong = 0
    for box in cover((height, width), 2**22, 0, 1):
        wrong += int((np.abs(flow[box.slices] - np.float32(MOVED)).max(axis=2) > 1).sum())
    return {
        "planned": plan.peak,
        "peak": peak,
        "tiles": plan.tiles,
        "seconds": seconds,
        "wrong": wrong / (width * height),
    }


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
