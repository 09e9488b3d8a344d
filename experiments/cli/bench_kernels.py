"""``bench kernels``: options and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.bench import kernels
from experiments.cli._shared import check_bench, measure, save_json
from hamflow.io._atomic import check_writable


def bench_kernels(
    json: Path | None = None,
    width: int = 1024,
    height: int = 436,
    d: int = 128,
    rounds: int = 5,
) -> None:
    """Compare the matching kernels with the limits of this machine and with other libraries.

    One run on random descriptors measures the kernels, the peak rate of their instructions on
    registers alone, numpy's sgemm, plain copies, and (with the extra 'peers') faiss and OpenCV. It
    takes about a minute and a half on two cores, and 3 GB.

    Parameters
    ----------
    json
        Where to write all measurements as JSON.
    width
        Width of the images.
    height
        Height of the images.
    d
        Side of the square window of displacements, a multiple of 8.
    rounds
        Repetitions; the best time counts.
    """
    check_bench(width, height, d, rounds)
    check_writable(json)
    console = Console(markup=False)
    report = measure(console, lambda progress: kernels.run(width, height, d, rounds, progress))
    for table in _tables(report):
        console.print(table)
    save_json(console, json, report)


def _tables(report: dict[str, Any]) -> list[Table]:
    where = report["machine"]
    entries = report["entries inside"]
    times = Table(
        "kernel",
        "seconds",
        "G entries/s",
        title=(
            f"{report['width']}×{report['height']}, D = {report['d']}, level {where['level']}, "
            f"{where['threads']} threads"
        ),
    )
    for name, seconds in report["seconds"].items():
        per_second = "" if name in ("gather", "FQ backward") else f"{entries / seconds / 1e9:.2f}"
        times.add_row(name, f"{seconds:.3f}", per_second)

    rates = Table("limit or library", "rate")
    for name, rate in report["per second"].items():
        unit = "GMAC/s" if "sgemm" in name or "multiply" in name else "G entries/s"
        rates.add_row(name, f"{rate / 1e9:.2f} {unit}")
    for name, rate in report["copy bytes per second"].items():
        rates.add_row(f"copy, {name}", f"{rate / 1e9:.1f} GB/s")
    for name, rate in report["fq gathered bytes per second"].items():
        rates.add_row(f"FQ {name}", f"{rate / 1e9:.1f} GB/s")

    ratios = Table("ratio", "measured")
    for group in ("ratios", "growth"):
        for name, value in report[group].items():
            ratios.add_row(name, f"{value:.2f}")

    memory = Table("memory beyond inputs and outputs", "MB")
    for group in ("extra bytes", "extra bytes by d"):
        for name, size in report[group].items():
            memory.add_row(name, "unknown" if size is None else f"{size / 1e6:.1f}")
    return [times, rates, ratios, memory]
