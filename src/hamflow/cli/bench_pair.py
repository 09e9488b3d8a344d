"""``hamflow bench pair``: whole pairs, beside OpenCV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from hamflow.bench import pair as bench
from hamflow.bench.models import find_pairs
from hamflow.cli.bench import measure, write_json
from hamflow.errors import InputError
from hamflow.evaluation import opencv_methods
from hamflow.io._atomic import check_writable


def bench_pair(
    root: tyro.conf.Positional[Path | None] = None,
    *,
    presets: tuple[str, ...] = ("balanced", "fast"),
    peers: bool = True,
    only: tuple[str, ...] = (),
    rounds: int = 3,
    ablation: bool = False,
    json: Path | None = None,
) -> None:
    """Measure whole pairs: seconds per stage, and errors beside OpenCV's methods.

    Seconds are those of a rendered scene of 1024×436 pixels, the best of several runs taken in
    turns. With ROOT, mean endpoint errors over all valid pixels, averaged over the pairs of each
    folder, every pair at full resolution with one and the same preset.

    Parameters
    ----------
    root
        A tree of folders <group>/<pair>/ with frame1.png, frame2.png and flow.flo or flow.png.
    presets
        Presets, or TOML files that change one.
    peers
        Measure OpenCV's methods as well; needs the extra 'peers'.
    only
        Pairs or groups below that folder.
    rounds
        How many runs the seconds are the best of.
    ablation
        Also measure the first preset with each of its steps left out, on the pairs.
    json
        Where to write every figure as JSON.
    """
    if rounds < 1:
        raise InputError(f"rounds must be at least 1, but is {rounds}.")
    if json is not None:
        check_writable(json)
    pairs = None if root is None else find_pairs(root, only)
    others = list(opencv_methods()) if peers else []
    count = bench.steps(
        len(pairs or ()), len(presets), len(others), rounds, ablation=ablation and pairs is not None
    )
    console = Console(markup=False)
    report = measure(
        console,
        count,
        lambda progress: bench.run(
            pairs, presets, peers=others, rounds=rounds, ablation=ablation, progress=progress
        ),
    )
    console.print(_seconds(report))
    if report["rows"]:
        console.print(_groups(report))
        console.print(_pairs(report))
    if "ablation" in report:
        console.print(_ablation(report))
    if json is not None:
        write_json(json, report)
        console.print(f"Wrote {json}", highlight=False, soft_wrap=True)


def _seconds(report: dict[str, Any]) -> Table:
    stages = ["descriptors", "joint model", "filling", "refinement", "confidence"]
    base = report["seconds"].get("DeepFlow", {}).get("all")
    table = Table(
        "method", "seconds", "× DeepFlow", *stages, title="A rendered scene, 1024×436 pixels"
    )
    for name, times in report["seconds"].items():
        ratio = f"{times['all'] / base:.2f}" if base else "–"
        parts = (f"{times[stage]:.2f}" if stage in times else "" for stage in stages)
        table.add_row(name, f"{times['all']:.2f}", ratio, *parts)
    return table


def _groups(report: dict[str, Any]) -> Table:
    means = bench.by_group(report["rows"])
    methods = [*report["presets"], *report["peers"]]
    ause = bench.by_group(report["rows"], "ause")
    first = report["presets"][0]
    table = Table(
        "folder",
        *methods,
        f"{first} / best peer",
        "AUSE",
        title="Mean endpoint error in px over all valid pixels, mean over the pairs of a folder",
    )
    for group, errors in means.items():
        known = (errors[name] for name in report["peers"] if name in errors)
        best = min(known, default=None)
        table.add_row(
            group,
            *(f"{errors[name]:.3f}" if name in errors else "failed" for name in methods),
            "–" if best is None else f"{errors[first] / best:.2f}",
            f"{ause[group][first]:.3f}" if first in ause.get(group, {}) else "–",
        )
    return table


def _pairs(report: dict[str, Any]) -> Table:
    methods = [*report["presets"], *report["peers"]]
    table = Table("pair", *methods, title="The same, pair by pair")
    errors = {(row["pair"], row["method"]): row["epe"] for row in report["rows"]}
    for pair in dict.fromkeys(row["pair"] for row in report["rows"]):
        found = (errors[pair, name] for name in methods)
        table.add_row(pair, *("failed" if e is None else f"{e:.3f}" for e in found))
    return table


def _ablation(report: dict[str, Any]) -> Table:
    groups = list(report["ablation"])
    table = Table(f"{report['presets'][0]}", *groups, title="Steps left out")
    for step in bench.STEPS:
        table.add_row(step, *(f"{report['ablation'][group][step]:.3f}" for group in groups))
    return table
