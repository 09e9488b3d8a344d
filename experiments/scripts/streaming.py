"""What it costs to match with labels in files: time, memory, and whether the matches are the same.

    python -m experiments.scripts.streaming [--width 1600] [--height 1000] [--window auto]

estimates the flow of rendered scenes, matched at half the size: once without a limit, and once with
the smallest `max_memory` times `--times`. Each run is a process of its own. Printed are planned and
measured peaks, the bytes on the disk, the seconds of the matching, and the share of pixels whose
final flow differs by more than a pixel, as well as whether matches and gap are the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import hamflow
from hamflow._memory import peak_memory, show_memory
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset

SCALE = 2


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--width", type=int, default=1600)
    parser.add_argument("--height", type=int, default=1000)
    parser.add_argument("--window", default="auto")
    parser.add_argument("--preset", default="balanced")
    parser.add_argument("--photos", help="a folder of photographs for the scenes")
    parser.add_argument("--scenes", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--times", type=float, default=1.0)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run is not None:
        run(**json.loads(args.run))
        return
    print(
        "| scene | limit | planned | peak | disk | matching | flow off by > 1 px | same matches |"
    )
    print("|---|---|---|---|---|---|---|---|")
    window: Any = args.window if args.window == "auto" else int(args.window)
    size = (args.width, args.height, args.preset, window)
    least = hamflow.plan(*size, scale=SCALE).smallest
    config = SyntheticConfig(
        height=args.height, width=args.width, max_displacement=60, min_displacement=10
    )
    scenes = SyntheticDataset(config, args.photos, seed=2, size=max(args.scenes) + 1)
    for number in args.scenes:
        with tempfile.TemporaryDirectory() as folder:
            np.savez(Path(folder) / "scene.npz", a=scenes[number].image0, b=scenes[number].image1)
            found = []
            for limit in (None, int(args.times * least)):
                plan = hamflow.plan(*size, scale=SCALE, max_memory=limit)
                what = {"preset": args.preset, "window": window, "limit": limit, "folder": folder}
                words = [sys.executable, "-m", "experiments.scripts.streaming"]
                subprocess.run([*words, "--run", json.dumps(what)], check=True)
                found.append(dict(np.load(Path(folder) / f"{limit}.npz")))
                say(number, plan, found)


def say(number: int, plan: hamflow.Plan, found: list[dict[str, Any]]) -> None:
    """Print a row of the table."""
    first, last = found[0], found[-1]
    off = np.abs(first["flow"] - last["flow"]).max(axis=2) > 1
    same = all(np.array_equal(first[k], last[k]) for k in ("matches", "completed", "gap"))
    limit = "-" if plan.max_memory is None else show_memory(plan.max_memory)
    print(
        f"| {number} | {limit} | {show_memory(plan.peak)} | {show_memory(int(last['peak']))} | "
        f"{show_memory(plan.disk)} | {float(last['seconds']):.1f} s | {off.mean():.2%} | "
        f"{'yes' if same else 'no'} |",
        flush=True,
    )


def run(preset: str, window: Any, limit: int | None, folder: str) -> None:
    """Estimate once, and write what there is to compare."""
    images = np.load(Path(folder) / "scene.npz")
    estimator = hamflow.Estimator(preset, window=window, scale=SCALE, max_memory=limit)
    frames = estimator.frame(images["a"]), estimator.frame(images["b"])
    result, matches = estimator.between(*frames)
    peak = peak_memory()
    np.savez(
        Path(folder) / f"{limit}.npz",
        flow=result.flow,
        matches=np.stack([d.flow for d in matches.directions]),
        completed=np.stack([d.completed for d in matches.directions]),
        gap=np.float64(np.nan if result.gap is None else result.gap),
        peak=np.int64(peak or 0),
        seconds=np.float64(result.timings["matching"]),
    )


if __name__ == "__main__":
    main()
