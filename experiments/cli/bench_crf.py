"""``bench crf``: options and tables."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.bench import crf
from experiments.cli._shared import check_bench, measure, save_json
from hamflow.crf import CrfConfig, CrfStep, plot_convergence
from hamflow.crf.plot import check_plot
from hamflow.errors import InputError
from hamflow.io._atomic import check_writable

PAPER_SECONDS = 3.2
"""The time of the joint model in the paper, on a GPU (Titan X)."""


def bench_crf(
    *,
    json: Path | None = None,
    data: Path | None = None,
    plot: Path | None = None,
    width: int = 1024,
    height: int = 436,
    d: int = 128,
    rounds: int = 2,
    full: bool = False,
) -> None:
    """Measure the joint model's solver: time, memory, gap and error.

    One run measures QQ and the messages, a plain copy, the paper's schedule and the default one
    with their gaps and errors, single chain passes, the memory of a whole solve, float descriptors
    compared with bits, and the influence of threads, sizes and inner iterations. It takes about two
    and a half minutes on two cores, and 2 GB.

    Parameters
    ----------
    json
        Where to write all measurements as JSON.
    data
        Folder with sintel-clean/market_5_0002, cave_2_0002 and alley_1_0001 (each with frame1.png,
        frame2.png and flow.flo), to measure the default schedule on them, too. Some may be missing.
    plot
        Where to write a plot of eight outer iterations on the rendered scene (.png, .svg or .pdf;
        needs the extra 'plot').
    width
        Width of the rendered scene.
    height
        Height of the rendered scene.
    d
        Side of the square window of displacements, a multiple of 8.
    rounds
        Repetitions of kernels, schedules and single iterations; the best time counts.
    full
        Also run the whole schedule of the paper on float descriptors, for a minute and a half.
    """
    check_bench(width, height, d, rounds)
    if min(width, height) < 64:
        raise InputError(f"The rendered scene must be at least 64×64, not {width}×{height}.")
    check_writable(json)
    if plot is not None:
        check_plot(plot)
    real = [] if data is None else crf.real_cases(data)
    console = Console(markup=False)
    report = measure(
        console,
        lambda progress: crf.run(
            width,
            height,
            d,
            rounds,
            real=real,
            full=full,
            converge=plot is not None,
            progress=progress,
        ),
    )
    console.print(
        f"{width}×{height}, D = {d}, level {report['machine']['level']}, "
        f"{_threads(report['machine']['threads'])}",
        highlight=False,
    )
    for table in (_kernels, _passes, _schedules, _parts, _inner, _memory, _ratios):
        console.print(table(report))
    console.print(_against_paper(report), highlight=False)
    save_json(console, json, report)
    if plot is not None:
        shown = report["convergence"]
        title = f"{shown['scene']}, {shown['width']}×{shown['height']}, D = {d}"
        plot_convergence([CrfStep(**step) for step in shown["history"]], plot, title)
        console.print(f"Wrote {plot}", highlight=False, soft_wrap=True)


def _kernels(report: dict[str, Any]) -> Table:
    table = Table("kernel", "")
    for name, seconds in report["seconds"].items():
        table.add_row(name, f"{seconds:.3f} s")
    best, worst = report["copy bytes per second"], min(report["each copy bytes per second"])
    table.add_row("copy, memory", f"{best / 1e9:.1f} GB/s (slowest {worst / 1e9:.1f})")
    return table


def _passes(report: dict[str, Any]) -> Table:
    table = Table("chain pass", "ms", "GB/s", "of copy")
    for name, entry in report["passes"].items():
        rate = entry["bytes per second"] / 1e9
        table.add_row(
            name, f"{1e3 * entry['seconds']:.1f}", f"{rate:.1f}", f"{entry['share of copy']:.0%}"
        )
    return table


def _schedules(report: dict[str, Any]) -> Table:
    table = Table("schedule", "s", "in QQ", "outer", "gap", "EPE", "EPE of WTA")
    rendered = report["default schedule"][crf.RENDERED]["epe of WTA"]
    rows = {f"paper, {crf.RENDERED}": report["paper schedule"] | {"epe of WTA": rendered}}
    rows |= {
        f"default, {_short(name)}": entry for name, entry in report["default schedule"].items()
    }
    for name, entry in rows.items():
        table.add_row(
            name,
            f"{entry['seconds']['total']:.2f}",
            f"{entry['times QQ']:.1f}",
            f"{entry['iterations']}",
            f"{entry['gap']:.2%}",
            f"{entry['epe']:.2f}",
            f"{entry['epe of WTA']:.2f}",
        )
    return table


def _parts(report: dict[str, Any]) -> Table:
    columns = ("messages", "passes", "rounding", "last fusion", "rest", "total")
    table = Table("seconds in", *columns)
    rows = {f"paper, {crf.RENDERED}": report["paper schedule"]["seconds"]}
    for name, entry in report["default schedule"].items():
        rows[f"default, {_short(name)}"] = entry["seconds"]
    for name, parts in report["F against Q"].items():
        if isinstance(parts, dict):
            rows[name] = parts
    for name, parts in report["one outer iteration"].items():
        rows[f"1×{CrfConfig().inner}, {name}"] = parts
    for name, parts in rows.items():
        table.add_row(name, *(f"{parts[column]:.2f}" for column in columns))
    return table


def _inner(report: dict[str, Any]) -> Table:
    table = Table("2 outer, inner", "bound", "energy", "gap", "EPE", "s")
    for inner, entry in report["inner"].items():
        table.add_row(
            inner,
            f"{entry['bound']:,.0f}",
            f"{entry['energy']:,.0f}",
            f"{entry['gap']:.2%}",
            f"{entry['epe']:.2f}",
            f"{entry['seconds']['total']:.2f}",
        )
    return table


def _memory(report: dict[str, Any]) -> Table:
    table = Table("memory beyond the inputs", "MB", "volumes of int16")
    for side, entry in report["extra bytes"].items():
        size = entry["bytes"]
        known = size is not None
        table.add_row(
            f"D = {side}",
            f"{size / 1e6:.0f}" if known else "unknown",
            f"{size / entry['volume']:.2f}" if known else "",
        )
    return table


def _ratios(report: dict[str, Any]) -> Table:
    table = Table("ratio", "measured")
    for schedule in ("1×8", "5×8"):
        ratio = report["F against Q"].get(f"ratio {schedule}")
        if ratio is not None:
            table.add_row(f"F / Q time, {schedule}", f"{ratio:.1f}")
    sizes = {side: entry["bytes"] for side, entry in report["extra bytes"].items()}
    for (smaller, before), (side, size) in pairwise(sizes.items()):
        if before and size is not None:
            table.add_row(f"memory, D = {side} / {smaller}", f"{size / before:.2f}")
    outer, d = report["one outer iteration"], report["d"]
    threads = _threads(report["machine"]["threads"])
    for other in ("1 thread", "half the rows", f"D = {d // 2}"):
        if other != threads:
            for part in ("messages", "passes"):
                ratio = outer[threads][part] / outer[other][part]
                table.add_row(f"{part}, time / time with {other}", f"{ratio:.2f}")
    return table


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _against_paper(report: dict[str, Any]) -> str:
    times = [entry["seconds"]["total"] for entry in report["default schedule"].values()]
    spread = f"{min(times):.1f}" if len(times) == 1 else f"{min(times):.1f} to {max(times):.1f}"
    threads = _threads(report["machine"]["threads"])
    return (
        f"The paper reports {PAPER_SECONDS} s on a Titan X; here, on {threads}, the default "
        f"schedule takes {spread} s, the paper's "
        f"{report['paper schedule']['seconds']['total']:.1f} s (descriptors not included)."
    )
