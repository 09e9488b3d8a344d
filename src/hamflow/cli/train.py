"""``hamflow train``: learn descriptors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from hamflow._resume import LOG, read_log
from hamflow.cli._console import continuing
from hamflow.datasets.registry import DatasetName
from hamflow.errors import InputError
from hamflow.learning.config import WORK, TrainConfig, config_of, read_config

if TYPE_CHECKING:
    from hamflow.learning.loop import Step

_ABOUT = """Learn descriptors from synthetic scenes or from pairs with known flow.

    Without any option: the paper's 7-layer network, learned as FQ on scenes that are rendered
    meanwhile, from photographs if --data.root names a folder of them. The folder OUTPUT gets the
    best and the latest weights, a log of all steps (run.jsonl), the learning curve (CSV, picture,
    TensorBoard events) and a checkpoint. Ctrl-C (or SIGTERM) ends the run after the current step,
    with a checkpoint.

    The same command again continues an interrupted run; a folder with other settings or other files
    is refused; --overwrite begins anew. The settings need not be given again: the folder has them.

    All settings can stand in a TOML file (--config), named as the flags are, with a table for each
    group; flags count before the file. On several processes or machines:
    torchrun --nproc-per-node 2 -m hamflow train ... (to continue, all must see the folder OUTPUT).

    Parameters
    ----------
    output
        Folder of the run, new or empty.
    config
        TOML file with settings; see above.
    overwrite
        Begin anew: drop an earlier run in that folder.
    data_set
        Learn from pairs on the disk: DATASET ROOT, short for --data.dataset and --data.root.
        Datasets: sintel, kitti2012, kitti2015, middlebury, middlebury-stereo, chairs, things,
        spring, hd1k, each in its own layout, or folder (a tree <group>/<pair>/ with frame1.png,
        frame2.png, flow.flo or flow.png).
    subset
        Share of these pairs to learn from, evenly sampled; short for --data.subset.
    settings
        The run.
    """


def train_command(args: Sequence[str]) -> Callable[..., None]:
    """Return the command; its defaults are those of the ``--config`` file or of the earlier run."""
    default = _defaults(args)

    def train(
        output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
        *,
        config: Path | None = None,
        overwrite: bool = False,
        data_set: Annotated[tuple[DatasetName, Path] | None, tyro.conf.arg(name="data")] = None,
        subset: float | None = None,
        settings: Annotated[TrainConfig, tyro.conf.arg(name="")] = default,
    ) -> None:
        run_training(_chosen(settings, data_set, subset), output, overwrite=overwrite)

    train.__doc__ = _ABOUT
    return train


def run_training(settings: TrainConfig, output: Path, *, overwrite: bool = False) -> None:
    """Train with a progress bar, and say what came of it."""
    try:
        from hamflow.learning.loop import BEST, train  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            f"Training needs {error.name}; install it with: pip install 'hamflow[train]'."
        ) from error

    # Under torchrun, one of the processes speaks for all.
    console = Console(markup=False, quiet=os.environ.get("RANK", "0") != "0")
    columns = (
        TextColumn("{task.description:40}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    # Without a terminal, lines once in a while tell how it goes.
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task("preparing", total=settings.steps)
        shown = _Shown(console, bar, task, quiet)
        progress = train(settings, output, overwrite=overwrite, callback=shown)
    if shown.table.row_count:
        console.print(shown.table)
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


class _Shown:
    def __init__(self, console: Console, bar: Progress, task: TaskID, lines: bool) -> None:
        self._console = console
        self._bar = bar
        self._task = task
        self._lines = lines
        self._losses: list[float] = []
        self._started = False
        self.table = Table(
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
        if not self._started:
            # What a continued run had done before says nothing of how long the rest takes.
            total = self._bar.tasks[self._task].total
            self._bar.reset(self._task, completed=step.number - 1, total=total)
            self._started = True
        self._losses = [*self._losses[-49:], step.loss]
        loss = sum(self._losses) / len(self._losses)
        text = f"loss {loss:.3f}, constant bits {step.constant_bits:.0%}"
        self._bar.update(self._task, completed=step.number, description=text)
        if self._lines and (step.number % 50 == 0 or step.number == 1):
            line = f"step {step.number}: {text}, {step.seconds:.2f} s"
            self._console.print(line, highlight=False, soft_wrap=True)
        result = step.validation
        if result is not None:
            self.table.add_row(
                str(step.number),
                f"{result.loss:.3f}",
                f"{result.epe_qq:.2f}",
                f"{result.outlier_3px_qq:.1%}",
                f"{result.epe_trained:.2f}",
                f"{result.outlier_3px_trained:.1%}",
                f"{result.constant_bits:.0%}",
            )


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
    config = _named(words, "--config")
    if config is not None:
        return read_config(config)
    output = _named(words, "--output", "-o")
    log = Path(output or "", LOG)
    if "--overwrite" in words or output is None or not log.exists():
        return TrainConfig()
    values, steps = read_log(log, WORK)
    values.pop("processes", None)
    return config_of(values) if steps else TrainConfig()


def _named(words: Sequence[str], *options: str) -> str | None:
    """Return the last value that an option is given."""
    found = None
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in options and equals:
            found = value
        elif word in options and number + 1 < len(words):
            found = words[number + 1]
    return found
