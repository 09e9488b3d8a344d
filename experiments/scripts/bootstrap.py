"""Draw learning curves of FQ with and without the true inner minimizer in the first steps.

    python -m experiments.scripts.bootstrap PHOTOGRAPHS [--no-train]

Runs four short trainings (7 layers) into runs/boot: with and without the true inner minimizer in
the first third, each with Hamflow's initialization and with torch's. Then draws
docs/pictures/bootstrap.png. Finished runs are not repeated; with --no-train none is started.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import tyro

from hamflow.datasets.synthetic import SyntheticConfig
from hamflow.descriptors.architecture import Architecture
from hamflow.learning import loop, network
from hamflow.learning.config import DataConfig, TrainConfig
from hamflow.learning.log import read_curve

ROOT = Path(__file__).parents[2]
RUNS = {
    "with": "true minimizer first",
    "without": "plain FQ",
    "with-torch": "true minimizer first, torch's initialization",
    "without-torch": "plain FQ, torch's initialization",
}


def main(photographs: tyro.conf.Positional[Path], *, train: bool = True) -> None:
    """Train what is missing, then draw."""
    folder = ROOT / "runs" / "boot"
    for name in RUNS:
        if train and not (folder / name).is_dir():
            run(photographs, folder / name)
    draw(folder, ROOT / "docs" / "pictures" / "bootstrap.png")


def run(photographs: Path, output: Path) -> None:
    """Run one of the four trainings; the name of its folder says which."""
    config = TrainConfig(
        network=Architecture(layers=7),
        window=48,
        bootstrap=0.0 if output.name.startswith("without") else 1 / 3,
        temperature=4.0,
        learning_rate=0.0015,
        steps=240,
        validate_every=40,
        validation_pairs=8,
        threads=1,
        seed=11,
        data=DataConfig(
            root=photographs,
            synthetic=SyntheticConfig(height=96, width=96, max_displacement=20.0),
        ),
    )
    initialize = network.DescriptorNetwork.initialize
    if output.name.endswith("torch"):
        network.DescriptorNetwork.initialize = lambda self, images: None
    try:
        loop.train(config, output)
    finally:
        network.DescriptorNetwork.initialize = initialize


def draw(folder: Path, output: Path) -> None:
    """Draw the outliers on the validation scenes, and the loss, over the steps."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  (after the choice of the backend)

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    for name, label in RUNS.items():
        rows = read_curve(folder / name / "curve.csv")
        steps = np.array([int(row["number"]) for row in rows])
        losses = np.array([float(row["loss"]) for row in rows])
        smooth = [losses[max(0, k - 19) : k + 1].mean() for k in range(len(losses))]
        style = ":" if "torch" in name else "-"
        color = "tab:blue" if label.startswith("true") else "tab:orange"
        left.plot(steps, smooth, style, color=color)
        checked = [
            (int(r["number"]), float(r["val_outlier_3px_qq"])) for r in rows if r["val_loss"]
        ]
        x, y = np.array(checked).T
        right.plot(x, 100 * y, style, color=color, marker=".", label=label)
    left.set(xlabel="step", ylabel="loss (mean of 20 steps)", ylim=(0, None))
    right.set(xlabel="step", ylabel="outliers above 3 px, %", ylim=(0, 100))
    right.legend(frameon=False, fontsize=8, loc="lower left")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(output, dpi=110)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
