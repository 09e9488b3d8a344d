"""``bench training``: options and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.cli._shared import check_bench, measure, save_json
from hamflow.errors import InputError
from hamflow.io._atomic import check_writable
from hamflow.learning.config import Scheme


def bench_training(
    *,
    json: Path | None = None,
    size: int = 256,
    layers: int = 7,
    d: int = 128,
    model: Scheme = "fq",
    rounds: int = 3,
    steps: int = 8,
    memory: bool = False,
) -> None:
    """Measure a training step: network, matching, loss, optimizer, data; needs the extra 'train'.

    Times the parts of one step on a pair of synthetic frames. Then runs the training loop for a few
    steps, while another process renders the scenes, and reports the steps per second and how long
    the loop waits for data. Takes about half a minute on two cores; with --memory a minute more,
    and several GB.

    Parameters
    ----------
    json
        Where to write all measurements as JSON.
    size
        Height and width of the frames.
    layers
        Layers of the paper's network.
    d
        Side of the square window of displacements, a multiple of 8.
    model
        How descriptors are matched in training: ff, fq or qq.
    rounds
        Repetitions of the step's parts; the best times count.
    steps
        Steps of the training loop.
    memory
        Also measure the memory of a step at full resolution (1024×436).
    """
    check_bench(size, size, d, min(rounds, steps))
    check_writable(json)
    try:
        from experiments.bench import training  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            f"Training needs {error.name}; install it with: pip install 'hamflow[train]'."
        ) from error
    config = training.bench_config(layers, (size, size), d, model)
    console = Console(markup=False)
    report = measure(
        console,
        lambda progress: training.run(config, rounds, steps, memory=memory, progress=progress),
    )
    for table in _tables(report):
        console.print(table)
    save_json(console, json, report)


def _tables(report: dict[str, Any]) -> list[Table]:
    where = report["machine"]
    times = Table(
        "part",
        "seconds",
        title=(
            f"{report['model'].upper()}, {report['layers']} layers, "
            f"{report['width']}×{report['height']}, D = {report['d']}, level {where['level']}, "
            f"{where['threads']} threads"
        ),
    )
    for name, time in report["seconds"].items():
        times.add_row(name, f"{time:.3f}")

    loop = Table("the loop", f"{report['loop']['steps']} steps")
    for name in ("steps per second", "seconds per step", "seconds waited per step", "longest wait"):
        loop.add_row(name, f"{report['loop'][name]:.3f}")

    ratios = Table("ratio", "measured")
    for name, value in report["ratios"].items():
        ratios.add_row(name, f"{value:.3f}")
    if "memory" in report:
        memory = report["memory"]
        used = memory["peak bytes"]
        name = f"GB of a step at {memory['width']}×{memory['height']}"
        ratios.add_row(name, "unknown" if used is None else f"{used / 1e9:.2f}")
    return [times, loop, ratios]
