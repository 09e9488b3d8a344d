"""``hamflow bench``: progress while it runs, a table at the end, JSON on request."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hamflow._runtime import get_isa
from hamflow.bench import kernels
from hamflow.errors import InputError
from hamflow.io._atomic import atomic_write, check_writable
from hamflow.window import MAX_LABELS

# What each ratio should be; on AVX-512 the kernel has instructions that AVX2 lacks.
BARS = {
    "QQ / register peak": {"avx512": (">=", 0.75), "": (">=", 0.50)},
    "QQ / faiss hammings": {"": (">=", 8.0)},
    "QQ / OpenCV BFMatcher": {"": (">=", 50.0)},
    "message int16 / QQ time": {"": ("<=", 1.3)},
    "message float32 / QQ time": {"": ("<=", 1.3)},
    "FF / sgemm": {"": (">=", 0.65)},
    "FQ / QQ time": {"": ("<=", 15.0)},
}


def bench_kernels(
    json: Path | None = None,
    width: int = 1024,
    height: int = 436,
    d: int = 128,
    rounds: int = 5,
) -> None:
    """Measure the matching kernels against this machine's limits and against peers.

    Everything is measured in one run on random descriptors: the kernels, the register-resident
    peak of their instruction mix, numpy's sgemm, plain copies, and (with the extra 'peers')
    faiss and OpenCV. Takes about a minute and a half on two cores, and 3 GB.

    Parameters
    ----------
    json
        Where to write every figure as JSON.
    width
        Width of the images.
    height
        Height of the images.
    d
        Side of the square window of displacements, a multiple of 8.
    rounds
        Repetitions, of which the best counts.
    """
    check_bench(width, height, d, rounds)
    if json is not None:
        check_writable(json)
    console = Console(markup=False)
    report = measure(
        console,
        kernels.steps(rounds),
        lambda progress: kernels.run(width, height, d, rounds, progress),
    )
    for table in _tables(report):
        console.print(table)
    if json is not None:
        write_json(json, report)
        console.print(f"Wrote {json}", highlight=False, soft_wrap=True)


def check_bench(width: int, height: int, d: int, rounds: int) -> None:
    """Raise at once where nothing can be measured."""
    if min(width, height, rounds) < 1 or d < 8 or d % 8 or 2 * d > MAX_LABELS:
        raise InputError(
            f"The sizes and rounds must be positive, and D a multiple of 8 up to {MAX_LABELS // 2}."
        )
    if get_isa() == "reference":
        raise InputError("The level 'reference' has no benchmark; choose another with HAMFLOW_ISA.")


def measure(
    console: Console,
    steps: int,
    run: Callable[[Callable[[str], None]], dict[str, Any]],
    first: str = "descriptors",
) -> dict[str, Any]:
    """Return what `run` finds, with a bar that moves on as it names its steps after the first."""
    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn())
    with Progress(TextColumn("{task.description:36}"), *columns, console=console) as bar:
        task = bar.add_task(first, total=steps)
        report = run(lambda step: bar.update(task, description=step, advance=1))
        bar.update(task, description="done", completed=steps)
    return report


def mark(reached: bool) -> str:
    """Return the verdict on a bar."""
    return "reached" if reached else "missed"


def write_json(path: Path, report: dict[str, Any]) -> None:
    """Write every figure."""
    with atomic_write(path) as file:
        file.write((json.dumps(report, indent=2) + "\n").encode())


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

    rates = Table("limit or peer", "rate")
    for name, rate in report["per second"].items():
        unit = "GMAC/s" if "sgemm" in name or "multiply" in name else "G entries/s"
        rates.add_row(name, f"{rate / 1e9:.2f} {unit}")
    for name, rate in report["copy bytes per second"].items():
        rates.add_row(f"copy, {name}", f"{rate / 1e9:.1f} GB/s")
    for name, rate in report["fq gathered bytes per second"].items():
        rates.add_row(f"FQ {name}", f"{rate / 1e9:.1f} GB/s")

    ratios = Table("ratio", "measured", "bar", "")
    for name, value in report["ratios"].items():
        bar, reached = _judge(name, value, where["level"])
        ratios.add_row(name, f"{value:.2f}", bar, reached)
    for name, value in report["growth"].items():
        ratios.add_row(name, f"{value:.2f}", "<= 4.4", mark(value <= 4.4))

    memory = Table("memory beyond inputs and outputs", "MB")
    for group in ("extra bytes", "extra bytes by d"):
        for name, size in report[group].items():
            memory.add_row(name, "unknown" if size is None else f"{size / 1e6:.1f}")
    return [times, rates, ratios, memory]


def _judge(name: str, value: float, level: str) -> tuple[str, str]:
    if name not in BARS:
        return "", ""
    sign, bar = BARS[name].get(level, BARS[name][""])
    return f"{sign} {bar:g}", mark(value >= bar if sign == ">=" else value <= bar)
