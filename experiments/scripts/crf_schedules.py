"""Compare schedules of the joint model: gap, error and time over pairs with known flow.

    python -m experiments.scripts.crf_schedules ROOT [--output FILE.csv]

ROOT is a folder of pairs. Every pair is solved at two scales with every schedule and the
hand-crafted descriptor. The CSV has a row for each; the means are printed as a Markdown table.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import tyro
from numpy.typing import NDArray

from experiments.bench._measure import timed
from hamflow import Window, crf, matching, pair_bits
from hamflow._scale import downsample, upsample_nearest
from hamflow.datasets import FlowPair
from hamflow.datasets.folder import FolderDataset
from hamflow.evaluation import epe_metrics

# (factor, D): the same displacements in pixels of full resolution.
SCALES = ((2, 128), (4, 64))
PAPER = "5×8 argmin (paper)"
SCHEDULES = {
    "1×2": {"outer": 1, "inner": 2},
    "1×4": {"outer": 1, "inner": 4},
    "1×8": {"outer": 1, "inner": 8},
    "2×1": {"outer": 2, "inner": 1},
    "2×2": {"outer": 2, "inner": 2},
    "2×4": {"outer": 2, "inner": 4},
    "2×8": {"outer": 2, "inner": 8},
    "3×2": {"outer": 3, "inner": 2},
    "3×4": {"outer": 3, "inner": 4},
    "5×8": {"outer": 5, "inner": 8},
    "2×4 argmin": {"outer": 2, "inner": 4, "rounding": "argmin"},
    "2×4 icm": {"outer": 2, "inner": 4, "rounding": "icm"},
    PAPER: {"outer": 5, "inner": 8, "rounding": "argmin"},
    "2×4 hierarchical": {"outer": 2, "inner": 4, "minorant": "hierarchical"},
    "3×3, stopped at .3 %": {"outer": 3, "inner": 3, "gap_tolerance": 0.003},
    "2×4, stopped at .3 % (default)": {"outer": 2, "inner": 4, "gap_tolerance": 0.003},
}
FIELDS = ("pair", "scale", "d", "schedule", "iterations", "seconds", "qq", "gap", "epe", "fl")


def main(
    root: tyro.conf.Positional[Path],
    *,
    output: Path = Path("experiments/results/crf_schedules.csv"),
) -> None:
    """Solve all pairs and print the means."""
    rows = list(_measure(FolderDataset(root)))
    with output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    _print_means(rows)


def _measure(pairs: FolderDataset) -> Iterator[dict[str, object]]:
    for pair in pairs:
        for factor, side in SCALES:
            image0, image1 = downsample(pair.image0, factor), downsample(pair.image1, factor)
            bits0, bits1 = pair_bits(image0), pair_bits(image1)
            window = Window.of(side)
            base = {"pair": pair.name, "scale": factor, "d": side}
            projection, qq = timed(partial(matching.min_projection, bits0, bits1, window))
            wta = _errors(projection.wta(), pair, factor)
            yield base | {"schedule": "WTA", "iterations": 0, "seconds": f"{qq:.4f}"} | wta
            for name, parameters in SCHEDULES.items():
                config = crf.CrfConfig(**{"gap_tolerance": 0.0} | parameters)
                solve = partial(crf.solve, bits0=bits0, bits1=bits1, image=image0, window=window)
                result, seconds = timed(partial(solve, config=config))
                yield (
                    base
                    | {
                        "schedule": name,
                        "iterations": len(result.history),
                        "seconds": f"{seconds:.4f}",
                        "qq": f"{seconds / qq:.2f}",
                        "gap": f"{result.gap:.6f}",
                    }
                    | _errors(result.flow, pair, factor)
                )
        print(pair.name, flush=True)


def _errors(flow: NDArray[np.float32], pair: FlowPair, factor: int) -> dict[str, object]:
    """Return the errors of a flow, in pixels of full resolution."""
    height, width = (factor * side for side in flow.shape[:2])
    full = factor * upsample_nearest(flow, factor, (height, width))
    metrics = epe_metrics(full, pair.flow[:height, :width])
    return {"epe": f"{metrics.epe_all:.4f}", "fl": f"{metrics.fl_all:.4f}"}


def _print_means(rows: list[dict[str, object]]) -> None:
    for factor, side in SCALES:
        print(f"\nScale 1/{factor}, D = {side}\n")
        print("| schedule | EPE | Fl | gap, median | pairs ≤ .3 % | time / QQ, median |")
        print("|---|---|---|---|---|---|")
        for name in ("WTA", *SCHEDULES):
            chosen = [r for r in rows if r["scale"] == factor and r["schedule"] == name]
            values = {
                key: np.array([float(str(r[key])) for r in chosen if key in r])
                for key in ("epe", "fl", "gap", "qq")
            }
            line = f"| {name} | {values['epe'].mean():.2f} | {values['fl'].mean():.1%} |"
            if values["gap"].size:
                gaps = values["gap"]
                line += f" {np.median(gaps):.2%} | {(gaps <= 0.003).sum()} of {gaps.size} |"
                line += f" {np.median(values['qq']):.1f} |"
            else:
                line += " | | 1 |"
            print(line)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
