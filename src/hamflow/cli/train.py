"""``hamflow train``: train descriptors."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console

from hamflow._resume import LOG, read_log
from hamflow._types import CountProgress
from hamflow.cli._console import cell, continuing, progress_bar, table_of
from hamflow.cli._options import OptionalFile, OutputFolder, option
from hamflow.datasets.registry import DATASETS, DatasetName
from hamflow.errors import InputError
from hamflow.learning.config import WORK, TrainConfig, config_of, read_config
from hamflow.learning.state import BEST

if TYPE_CHECKING:
    from hamflow.learning.loop import Step

_ABOUT = """Train descriptors on rendered scenes or on pairs with known flow.

    For example:

        hamflow train -o run --data.root photographs/
        hamflow train -o run --data sintel MPI-Sintel-complete --subset 0.2

    By default this trains the paper's network with 7 layers as FQ, on scenes that are rendered
    during the training. Name a folder of photographs with --data.root to render scenes from them.
    The folder OUTPUT gets the best and the latest weights, a log of all steps (run.jsonl), the
    learning curve (CSV, picture, TensorBoard events) and a checkpoint.

    Ctrl-C (or SIGTERM) stops the run after the current step, with a checkpoint. The same command
    continues an interrupted run; a folder with other settings or other files is refused;
    --overwrite starts again. The settings need not be repeated, because the folder has them.

    All settings can be in a TOML file (--config) under the names of the options, with a table for
    each group; options on the command line take precedence. On several processes or machines:
    torchrun --nproc-per-node 2 -m hamflow train ... (to continue, all must share the folder
    OUTPUT).

    Parameters
    ----------
    output
        Folder of the run, new or empty.
    config
        TOML file with settings.
    overwrite
        Start again: remove an earlier run in that folder.
    subset
        Share of these pairs to train on, evenly sampled; short for --data.subset.
    settings
        The settings of the run.
    """
_DATA = tyro.conf.arg(
    name="data",
    metavar="DATASET ROOT",
    help="Train on pairs on the disk; short for --data.dataset and --data.root. DATASET is one of "
    f"{', '.join(name for name in DATASETS if name != 'synthetic')}; ROOT is its folder, laid out "
    "as it is published.",
)


def train_command(args: Sequence[str]) -> Callable[..., None]:
    """Return the command, with the defaults of the ``--config`` file or of the earlier run."""
    default = _defaults(args)

    def train(
        output: OutputFolder,
        *,
        config: OptionalFile = None,
        data_set: Annotated[tuple[DatasetName, Path] | None, _DATA] = None,
        subset: Annotated[float | None, option("SHARE")] = None,
        overwrite: bool = False,
        settings: Annotated[TrainConfig, tyro.conf.arg(name="")] = default,
    ) -> None:
        run_training(_chosen(settings, data_set, subset), output, overwrite=overwrite)

    train.__doc__ = _ABOUT
    return train


def run_training(settings: TrainConfig, output: Path, *, overwrite: bool = False) -> None:
    """Train with a progress bar, and print the results."""
    try:
        from hamflow.learning.loop import train  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InputError(
            f"Training needs {error.name}; install it with: pip install 'hamflow[train]'."
        ) from error

    # Under torchrun, only the first process prints.
    console = Console(markup=False, quiet=os.environ.get("RANK", "0") != "0")
    with progress_bar(console, "preparing") as show:
        shown = _Shown(console, show, settings.steps)
        progress = train(settings, output, overwrite=overwrite, callback=shown)
    if shown.table.row_count:
        console.print(shown.table)
    if shown.table.row_count and not shown.counted:
        console.print(NOTHING_COUNTED, highlight=False, soft_wrap=True)
    if progress.best_step:
        console.print(
            f"Best at step {progress.best_step}: {progress.best:.3f} px, in {output / BEST}",
            highlight=False,
            soft_wrap=True,
        )
    if progress.step < settings.steps:
        sentence = f"Stopped at step {progress.step}; {continuing(overwrite)}."
        console.print(sentence, highlight=False)
        raise KeyboardInterrupt


NOTHING_COUNTED = (
    "No pixel of the validation pairs counts, so there is no error and no best.safetensors: each "
    "is unknown, occluded, or moves out of the window; give a larger --window, or other pairs to "
    "validate on (a table [validation] in the file of --config)."
)
"""What is said instead of errors that are not numbers."""


class _Shown:
    """Shows every step: in a bar on a terminal, otherwise in a line now and then."""

    def __init__(self, console: Console, show: CountProgress, steps: int) -> None:
        self._console, self._show, self._steps = console, show, steps
        self._losses: list[float] = []
        self.counted = False  # whether any pixel of the validation pairs did
        self.table = table_of(
            "step",
            "loss",
            "EPE QQ",
            "outliers QQ",
            "EPE as trained",
            "outliers as trained",
            "constant bits",
            title="Validation: winner takes all on visible pixels",
        )

    def __call__(self, step: Step) -> None:
        self._losses = [*self._losses[-49:], step.loss]
        loss = sum(self._losses) / len(self._losses)
        text = f"loss {loss:.3f}, constant bits {step.constant_bits:.0%}"
        self._show(text, step.number, self._steps)
        if not self._console.is_terminal and (step.number % 50 == 0 or step.number == 1):
            line = f"step {step.number}: {text}, {step.seconds:.2f} s"
            self._console.print(line, highlight=False, soft_wrap=True)
        result = step.validation
        if result is not None:
            self.table.add_row(
                str(step.number),
                cell(result.loss, ".3f"),
                cell(result.epe_qq, ".2f"),
                cell(result.outlier_3px_qq, ".1%"),
                cell(result.epe_trained, ".2f"),
                cell(result.outlier_3px_trained, ".1%"),
                cell(result.constant_bits, ".0%"),
            )
            self.counted |= not math.isnan(result.epe_trained)


def _chosen(
    settings: TrainConfig, data_set: tuple[DatasetName, Path] | None, subset: float | None
) -> TrainConfig:
    data = settings.data
    if data_set is not None:
        name, root = data_set
        data = replace(data, dataset=name, root=root)
    if subset is not None:
        data = replace(data, subset=subset)
    return replace(settings, data=data)


def _defaults(words: Sequence[str]) -> TrainConfig:
    """Return the settings of the file or of the earlier run that the command line names."""
    parser = argparse.ArgumentParser(prog="hamflow train", add_help=False, allow_abbrev=False)
    parser.add_argument("--config")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--overwrite", action="store_true")
    given, _ = parser.parse_known_args(words)
    if given.config is not None:
        return read_config(given.config)
    if given.overwrite or given.output is None or not (given.output / LOG).exists():
        return TrainConfig()
    values, steps = read_log(given.output / LOG, WORK)
    values.pop("processes", None)
    return config_of(values) if steps else TrainConfig()
