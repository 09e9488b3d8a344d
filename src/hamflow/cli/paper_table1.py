"""``hamflow paper table1``: networks trained as FF, FQ and QQ, beside the paper's figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from hamflow.cli._console import named, pair_progress, say
from hamflow.cli._data import DataOptions, open_pairs
from hamflow.cli.train import run_training
from hamflow.crf import CrfConfig
from hamflow.datasets.registry import DatasetName
from hamflow.descriptors.architecture import Architecture
from hamflow.errors import InputError
from hamflow.evaluation.records import write_csv
from hamflow.io._atomic import check_writable, make_folder
from hamflow.learning.config import TrainConfig
from hamflow.paper import table1
from hamflow.paper.findings import Errors, findings, table_of
from hamflow.paper.published import TABLE1
from hamflow.paper.table1 import Network, Table1Config, parse_network, read_table1_config

_TITLES = {"trained": "WTA as trained", "qq": "WTA QQ", "crf_f": "CRF F", "crf_q": "CRF Q"}
_NAMES = tuple(network.name for network in table1.NETWORKS)
_DATA = DataOptions()
_CHECKPOINT = "checkpoint.safetensors"  # hamflow.learning.loop has it, but needs torch


def paper_table1(
    *,
    data: tuple[DatasetName, Path],
    weights: Path = Path("runs/table1"),
    config: Path | None = None,
    networks: tuple[str, ...] = _NAMES,
    train: bool = True,
    which: tyro.conf.OmitArgPrefixes[DataOptions] = _DATA,
    crf_file: Path | None = None,
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("evaluations/table1"),
    resume: bool = False,
    csv: Path | None = None,
) -> None:
    """Repeat the paper's Table 1: FF, FQ and QQ networks of 5, 7 and 9 layers.

    Networks that are not in the folder of weights are trained there first, all with the same
    settings and number of steps (hours, on a few cores); interrupted, the command continues where
    it was. Then each is evaluated in the local model (winner takes all), as it was trained and with
    bits (QQ), and in the joint model (CRF) with floats (F, for FF) and with bits (Q). Errors are
    means over visible pixels (noc) and, in brackets, over all, in pixels of full resolution, with
    the paper's figures beside them; at the end it says which of the paper's findings hold.

    Parameters
    ----------
    data
        Pairs to evaluate on: DATASET ROOT, as for hamflow evaluate.
    weights
        Folder with the networks, NAME/last.safetensors in it, where NAME is ff-5, fq-7 and so on.
    config
        TOML file: scale and window; the tables [evaluation] (pass, split, subset, disjoint_from)
        and [training], with the settings of hamflow train. recipes/table1.toml learns from
        rendered scenes, recipes/table1-sintel.toml from 20 % of Sintel, for the other 40 %.
    networks
        Which of them.
    train
        Train those that are missing; with --no-train, that is an error.
    which
        Which pairs of the data set.
    crf_file
        Parameters of the joint model (TOML) instead of the paper's.
    output
        Folder for the pairs that are done and for table1.csv.
    resume
        Go on with the evaluation in that folder.
    csv
        Where to write a line for each network, column and pair; by default in that folder.
    """
    dataset, root = data
    chosen = Table1Config() if config is None else read_table1_config(config, dataset, root)
    wanted = [parse_network(name) for name in networks]
    crf = CrfConfig.paper() if crf_file is None else CrfConfig.paper().updated(crf_file)
    pairs, described = open_pairs(dataset, root, _merged(which, chosen))
    target = output / "table1.csv" if csv is None else csv
    make_folder(output)
    check_writable(target)
    files = {
        network: _trained(network, weights / network.name, chosen.training, train)
        for network in wanted
    }
    console = Console(markup=False)
    _warn_of_budgets(files)
    with pair_progress(console) as bar:
        found = table1.run(
            pairs,
            files,
            chosen,
            crf=crf,
            data=described,
            logs=output,
            resume=resume,
            progress=lambda name: named(bar, name),
        )
    rows = table1.rows(found)
    write_csv(target, rows)
    console.print(_table(rows, len(pairs), chosen))
    for finding in findings(table_of(rows)):
        verdict = "holds" if finding.holds else "does not hold"
        say(f"{finding.statement}: {verdict} ({finding.figures}).")
    say(f"Wrote {target}.")


def _merged(which: DataOptions, config: Table1Config) -> DataOptions:
    """Return the pairs that the flags name, and the file where they do not."""
    own = config.evaluation
    share = () if own.subset is None else (str(own.subset),)
    disjoint = which.disjoint_from
    return replace(
        which,
        pass_=which.pass_ or own.pass_,
        split=which.split or own.split,
        subset=which.subset or share,
        disjoint_from=own.disjoint_from if disjoint is None else disjoint,
    )


def _trained(network: Network, folder: Path, common: TrainConfig, train: bool) -> Path:
    """Return the weights of a network, which is trained if it has to be."""
    weights = folder / table1.WEIGHTS
    checkpoint = folder / _CHECKPOINT
    if _unfinished(checkpoint):
        if not train:
            raise InputError(f"{folder}: its training is not finished; leave out --no-train.")
        from hamflow.learning.checkpoint import read_progress  # noqa: PLC0415  (torch)

        run_training(read_progress(checkpoint)[0], folder, resume=True)
    elif not weights.exists():
        if not train:
            raise InputError(
                f"{weights}: does not exist; name the folder with --weights, or leave out "
                "--no-train."
            )
        # What else the network has (m, channels) is the file's.
        architecture: Architecture = replace(common.network, layers=network.layers)
        settings = replace(common, network=architecture, model=network.train)  # type: ignore[arg-type]
        run_training(settings, folder, resume=False)
    return weights


def _unfinished(checkpoint: Path) -> bool:
    steps = _steps(checkpoint)
    return steps is not None and steps[0] < steps[1]


def _steps(checkpoint: Path) -> tuple[int, int] | None:
    """Return the steps that a run has taken and is to take; None if it cannot be known."""
    try:
        from hamflow.learning.checkpoint import read_progress  # noqa: PLC0415  (torch)
    except ImportError:
        return None
    if not checkpoint.exists():
        return None
    config, progress = read_progress(checkpoint)
    return progress.step, config.steps


def _warn_of_budgets(files: dict[Network, Path]) -> None:
    found = {n.name: _steps(path.with_name(_CHECKPOINT)) for n, path in files.items()}
    steps = {name: taken[0] for name, taken in found.items() if taken is not None}
    if len(set(steps.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in steps.items())
        say(f"The networks had different numbers of steps ({listed}): they cannot be compared.")


def _table(rows: list[dict[str, Any]], pairs: int, config: Table1Config) -> Table:
    table = Table(
        "network",
        "",
        *_TITLES.values(),
        title=(
            f"Endpoint error noc (all) in px; {pairs} pairs, scale 1/{config.scale}, "
            f"D = {config.window}"
        ),
    )
    for network, columns in table_of(rows).items():
        published = TABLE1[network.train.upper(), network.layers]
        name = f"{network.train.upper()}, {network.layers} layers"
        table.add_row(name, "here", *(_cell(columns.get(column)) for column in _TITLES))
        table.add_row("", "paper", *(_paper(published[column]) for column in _TITLES))
        table.add_section()
    return table


def _cell(errors: Errors | None) -> str:
    """Return noc (all) as the paper prints it."""
    if errors is None:
        return "–"
    shown = ["–" if errors[over] is None else f"{errors[over]:.2f}" for over in ("noc", "all")]
    return f"{shown[0]} ({shown[1]})"


def _paper(errors: tuple[float, float] | None) -> str:
    return _cell(None if errors is None else {"noc": errors[0], "all": errors[1]})
