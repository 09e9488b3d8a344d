"""``bench models``: options and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from experiments.bench import models as bench
from experiments.cli._shared import measure, save_json
from hamflow.crf import CrfConfig
from hamflow.errors import InputError
from hamflow.io._atomic import check_writable

_TITLES = {"wta": "WTA QQ", "crf_paper": "CRF Q", "crf_fitted": "CRF Q, τ = (4, 50)"}


def bench_models(
    root: tyro.conf.Positional[Path],
    *,
    models: tuple[str, ...] = ("fast", "default", "context"),
    only: tuple[str, ...] = ("sintel-clean",),
    scale: int = 2,
    window: int = 128,
    crf_file: Path | None = None,
    json: Path | None = None,
) -> None:
    """Measure descriptor models on pairs with known flow, compared with `pairs`.

    For each pair and model: the mean error, in pixels of full resolution, of winner takes all on
    bits (WTA QQ) and of the joint model (CRF Q), over visible pixels and, in brackets, over all
    pixels, as in the paper's Table 1. Then the geometric means of the ratios to the hand-crafted
    descriptor. Flows are in whole pixels of the reduced frames, without refinement.

    Parameters
    ----------
    root
        A tree of folders <group>/<pair>/ with frame1.png, frame2.png and flow.flo or flow.png.
    models
        Names of shipped models, or .safetensors files.
    only
        Pairs or groups below that folder.
    scale
        Reduce the frames by this whole factor first.
    window
        D, the side of the window at that scale.
    crf_file
        TOML file with parameters of the joint model, as fit-crf writes it, to measure as well.
    json
        Where to write all measurements as JSON.
    """
    if scale < 1:
        raise InputError(f"--scale must be at least 1, but is {scale}.")
    check_writable(json)
    configs = dict(bench.CONFIGS)
    if crf_file is not None:
        configs["file"] = CrfConfig().updated(crf_file)
    pairs = bench.find_pairs(root, only)
    console = Console(markup=False)
    report = measure(
        console,
        lambda progress: bench.run(
            pairs, models, scale=scale, window=window, configs=configs, progress=progress
        ),
    )
    console.print(_errors(report))
    console.print(_ratios(report))
    console.print(_coherence(report))
    save_json(console, json, report)


def _errors(report: dict[str, Any]) -> Table:
    titles = [_TITLES.get(method, method) for method in report["methods"]]
    table = Table(
        "pair",
        "model",
        *titles,
        title=f"Mean error in px, visible (all); scale 1/{report['scale']}, D = {report['window']}",
    )
    for pair in report["pairs"]:
        for row in report["rows"]:
            if row["pair"] == pair:
                table.add_row(pair, row["model"], *(_cell(row[m]) for m in report["methods"]))
        table.add_section()
    return table


def _cell(errors: dict[str, float | None]) -> str:
    noc = errors["noc"]
    return f"{'–' if noc is None else f'{noc:.2f}'} ({errors['all']:.2f})"


def _ratios(report: dict[str, Any]) -> Table:
    titles = [_TITLES.get(method, method) for method in report["methods"]]
    table = Table(
        "model",
        *titles,
        title="Error / error of the hand-crafted descriptor, geometric mean, visible (all)",
    )
    for name in report["models"]:
        ratios = report["ratios"][name]
        table.add_row(name, *(_ratio(ratios[m]) for m in report["methods"]))
    return table


def _coherence(report: dict[str, Any]) -> Table:
    table = Table(
        "model",
        "wrong",
        "wrong like the neighbor",
        "seconds per frame",
        title="WTA QQ: visible pixels with an error above 10 px, mean over the pairs",
    )
    for name in report["models"]:
        rows = [row for row in report["rows"] if row["model"] == name]
        wrong, alike = (
            sum(row["wta"][key] for row in rows) / len(rows)
            for key in ("wrong", "coherently_wrong")
        )
        seconds = min(row["describe_seconds"] for row in rows) / 2
        table.add_row(name, f"{wrong:.1%}", f"{alike:.1%}", f"{seconds:.3f}")
    return table


def _ratio(ratio: dict[str, float | None]) -> str:
    shown = ["–" if ratio[over] is None else f"{ratio[over]:.3f}" for over in ("noc", "all")]
    return f"{shown[0]} ({shown[1]})"
