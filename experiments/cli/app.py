"""The names of the commands; `hamflow.cli.app` starts them."""

from __future__ import annotations

from collections.abc import Sequence

from hamflow.cli.app import grouped
from hamflow.cli.main import run_main

DESCRIPTION = "Hamflow's own benchmarks and experiments; experiments/README.md describes them."

COMMANDS = (
    *grouped(
        "Benchmarks",
        ("bench kernels", "the matching kernels", "experiments.cli.bench_kernels:bench_kernels"),
        ("bench crf", "the joint model's solver", "experiments.cli.bench_crf:bench_crf"),
        ("bench models", "the descriptors", "experiments.cli.bench_models:bench_models"),
        (
            "bench pair",
            "whole pairs, compared with OpenCV",
            "experiments.cli.bench_pair:bench_pair",
        ),
        ("bench training", "a training step", "experiments.cli.bench_training:bench_training"),
    ),
    *grouped(
        "The paper",
        ("paper table1", "FF, FQ, QQ networks", "experiments.cli.paper_table1:paper_table1"),
        ("paper table2", "timings and memory", "experiments.cli.paper_table2:paper_table2"),
        (
            "paper table3",
            "comparison with other methods",
            "experiments.cli.paper_table3:paper_table3",
        ),
        ("paper figure", "the sample figure", "experiments.cli.paper_figure:paper_figure"),
    ),
    *grouped(
        "Fits",
        ("fit-crf", "the joint model's parameters", "experiments.cli.fit_crf:fit_crf"),
    ),
)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; errors become one sentence and a non-zero exit code."""
    return run_main(COMMANDS, args, "python -m experiments", DESCRIPTION)
