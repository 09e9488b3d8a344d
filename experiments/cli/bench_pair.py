"""``bench pair``: options and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Column, Table

from experiments.bench import pair as bench
from experiments.bench.models import find_pairs
from experiments.bench.profile import Profile
from experiments.bench.profile import profile as profile_of
from experiments.bench.sequence import FEWEST, read_sequence, rendered_sequence
from experiments.cli._shared import measure, save_json
from hamflow.cli._console import cell
from hamflow.errors import InputError
from hamflow.estimator import Estimator
from hamflow.evaluation import opencv_methods
from hamflow.evaluation.methods import PEER, method_names
from hamflow.io._atomic import check_writable

_NO_PEERS = "Do not measure OpenCV's methods, which need the extra 'peers'."
_SMALLEST_SHARE = 0.005  # of the whole time; less is not shown


def bench_pair(
    root: tyro.conf.Positional[Path | None] = None,
    *,
    presets: tuple[str, ...] = ("balanced", "fast"),
    peers: Annotated[bool, tyro.conf.arg(help=_NO_PEERS)] = True,
    only: tuple[str, ...] = (),
    video: Path | None = None,
    width: int = 1024,
    height: int = 436,
    frames: int = 5,
    rounds: int = 3,
    ablation: bool = False,
    profile: bool = False,
    json: Path | None = None,
) -> None:
    """Measure whole pairs: seconds per stage, and errors, compared with OpenCV's methods.

    Times are measured on consecutive frames of a rendered scene: for the first pair alone, and for
    the pairs that follow it in the video. All methods run in turns, several times, and the best
    time counts. With ROOT, also mean endpoint errors over all valid pixels at full resolution,
    averaged over the pairs of each folder.

    Parameters
    ----------
    root
        A tree of folders <group>/<pair>/ with frame1.png, frame2.png and flow.flo or flow.png.
    presets
        Presets, or TOML files that change one.
    only
        Pairs or groups below that folder.
    video
        Measure times on the first frames of this video file or folder of frames instead.
    width
        Width of the rendered frames.
    height
        Height of the rendered frames.
    frames
        How many consecutive frames, at least 4.
    rounds
        Repetitions; the best time counts.
    ablation
        Also measure the first preset without each of its steps, on the pairs.
    profile
        Also show the time of each preset by stage and native function.
    json
        Where to write all measurements as JSON.
    """
    if rounds < 1 or frames < FEWEST:
        raise InputError(f"--rounds must be at least 1, and --frames at least {FEWEST}.")
    if ablation and root is None:
        raise InputError("--ablation needs pairs with known flow; give their folder, ROOT.")
    check_writable(json)
    pairs = None if root is None else find_pairs(root, only)
    others = [name for name in method_names() if name.startswith(PEER)] if peers else []
    if peers and not others:
        opencv_methods()  # raises an error that says what is missing
    console = Console(markup=False)

    def run(progress: bench.Progress) -> dict[str, Any]:
        progress("frames")
        shown = (
            rendered_sequence(height, width, frames)
            if video is None
            else read_sequence(video, frames)
        )
        report = bench.run(
            shown,
            presets,
            peers=others,
            pairs=pairs,
            rounds=rounds,
            ablation=ablation,
            progress=progress,
        )
        if profile:
            progress("profiles")
            report["profile"] = {
                name: profile_of(Estimator(name), *shown[:2], rounds) for name in presets
            }
        return report

    report = measure(console, run)
    where = "a rendered scene" if video is None else str(video)
    for table in _tables(report, where):
        console.print(table)
    save_json(console, json, report)


def _tables(report: dict[str, Any], where: str) -> list[Table]:
    tables = [_seconds(report, where), _stages(report)]
    if report["rows"]:
        tables += [_groups(report), _pairs(report)]
    if "ablation" in report:
        tables.append(_ablation(report))
    tables += [_profile(*item) for item in report.get("profile", {}).items()]
    return tables


def _profile(preset: str, found: tuple[Profile, float]) -> Table:
    stages, whole = found
    table = Table("stage", "function", "ms", "%", title=f"{preset}: {whole:.3f} s")
    for stage, functions in stages.items():
        for name, seconds in sorted(functions.items(), key=lambda item: -item[1]):
            share = seconds / whole
            if share >= _SMALLEST_SHARE:
                table.add_row(stage, name, f"{1000 * seconds:.1f}", f"{100 * share:.1f}")
    return table


def _seconds(report: dict[str, Any], where: str) -> Table:
    table = Table(
        "method", "seconds", title=f"{report['width']}×{report['height']} pixels of {where}"
    )
    for name, times in report["seconds"].items():
        table.add_row(name, cell(times.get("all"), ".2f") if times else "failed")
    return table


def _stages(report: dict[str, Any]) -> Table:
    presets = [report["seconds"][name] for name in report["presets"]]
    table = Table("seconds in", *map(_folded, report["presets"]))
    for stage in (stage for stage in presets[0] if stage != "all"):
        table.add_row(stage, *(cell(times.get(stage), ".2f") for times in presets))
    return table


def _folded(title: str) -> Column:
    """Return a column whose title is broken into lines, not cut, where there is no room."""
    return Column(title, overflow="fold")


def _groups(report: dict[str, Any]) -> Table:
    methods = [*report["presets"], *report["peers"]]
    ause = bench.by_group(report["rows"], "ause")
    table = Table(
        *map(_folded, ("folder", *methods, "AUSE")),
        title="Mean endpoint error in px over all valid pixels, mean over the pairs of a folder",
    )
    for group, errors in bench.by_group(report["rows"]).items():
        found = (cell(errors.get(name), ".3f") for name in methods)
        table.add_row(group, *found, cell(ause.get(group, {}).get(methods[0]), ".3f"))
    return table


def _pairs(report: dict[str, Any]) -> Table:
    methods = [*report["presets"], *report["peers"]]
    table = Table(*map(_folded, ("pair", *methods)), title="The same for each pair")
    errors = {(row["pair"], row["method"]): row["epe_all"] for row in report["rows"]}
    for pair in dict.fromkeys(row["pair"] for row in report["rows"]):
        found = (errors[pair, name] for name in methods)
        table.add_row(pair, *("failed" if e is None else f"{e:.3f}" for e in found))
    return table


def _ablation(report: dict[str, Any]) -> Table:
    groups = report["ablation"]
    table = Table(
        *map(_folded, (report["presets"][0], *groups)), title="Ablation: mean endpoint error in px"
    )
    for step in next(iter(groups.values())):
        table.add_row(step, *(cell(means.get(step), ".3f") for means in groups.values()))
    return table
