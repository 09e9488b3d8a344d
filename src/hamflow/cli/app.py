"""The tree of commands."""

from __future__ import annotations

from tyro.extras import SubcommandApp

from hamflow.cli.bench import bench_kernels
from hamflow.cli.bench_crf import bench_crf
from hamflow.cli.demo import demo
from hamflow.cli.doctor import doctor
from hamflow.cli.fit_crf import fit_crf
from hamflow.cli.pair import pair


def build_app() -> SubcommandApp:
    """Return the tree of commands."""
    app = SubcommandApp()
    app.command(name="pair")(pair)
    app.command(name="demo")(demo)
    app.command(name="doctor")(doctor)
    app.command(name="fit-crf")(fit_crf)
    benchmarks = SubcommandApp()
    benchmarks.command(name="kernels")(bench_kernels)
    benchmarks.command(name="crf")(bench_crf)
    app.command(benchmarks, name="bench", help="Measure speed and memory on this machine.")
    return app
