"""The tree of commands."""

from __future__ import annotations

from collections.abc import Sequence

from tyro.extras import SubcommandApp

from hamflow.cli.bench import bench_kernels
from hamflow.cli.bench_crf import bench_crf
from hamflow.cli.bench_models import bench_models
from hamflow.cli.bench_pair import bench_pair
from hamflow.cli.bench_training import bench_training
from hamflow.cli.compare import compare_command
from hamflow.cli.convert import convert
from hamflow.cli.demo import demo
from hamflow.cli.doctor import doctor
from hamflow.cli.evaluate import evaluate_command
from hamflow.cli.export import export
from hamflow.cli.fit_crf import fit_crf
from hamflow.cli.pair import pair
from hamflow.cli.paper_figure import paper_figure
from hamflow.cli.paper_table1 import paper_table1
from hamflow.cli.paper_table2 import paper_table2
from hamflow.cli.paper_table3 import paper_table3
from hamflow.cli.submit import submit
from hamflow.cli.synth import synth
from hamflow.cli.train import train_command
from hamflow.cli.video import video
from hamflow.cli.viz import viz
from hamflow.cli.warp import warp_image


def build_app(args: Sequence[str]) -> SubcommandApp:
    """Return the tree of commands; some take their defaults from a file that `args` name."""
    app = SubcommandApp()
    app.command(name="pair")(pair)
    app.command(name="video")(video)
    app.command(name="viz")(viz)
    app.command(name="warp")(warp_image)
    app.command(name="convert")(convert)
    app.command(name="evaluate")(evaluate_command)
    app.command(name="compare")(compare_command)
    app.command(name="submit")(submit)
    app.command(name="demo")(demo)
    app.command(name="doctor")(doctor)
    app.command(name="export")(export)
    app.command(name="fit-crf")(fit_crf)
    app.command(name="synth")(synth)
    app.command(name="train")(train_command(args))
    benchmarks = SubcommandApp()
    benchmarks.command(name="kernels")(bench_kernels)
    benchmarks.command(name="crf")(bench_crf)
    benchmarks.command(name="models")(bench_models)
    benchmarks.command(name="pair")(bench_pair)
    benchmarks.command(name="training")(bench_training)
    app.command(benchmarks, name="bench", help="Measure speed and memory on this machine.")
    paper = SubcommandApp()
    paper.command(name="table1")(paper_table1)
    paper.command(name="table2")(paper_table2)
    paper.command(name="table3")(paper_table3)
    paper.command(name="figure")(paper_figure)
    app.command(paper, name="paper", help="Repeat the experiments of the paper.")
    return app
