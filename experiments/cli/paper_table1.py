"""``paper table1``: options, training and table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from experiments.cli._shared import DataWords, evaluating, parse_data
from experiments.paper import table1
from experiments.paper.budget import difference, settings_of
from experiments.paper.findings import findings, known_over, shown, table_of
from experiments.paper.logs import check_logs
from experiments.paper.published import TABLE1
from experiments.paper.runs import Found, find_network, restore_weights
from experiments.paper.table1 import (
    TITLES,
    Network,
    Table1Config,
    parse_networks,
    read_table1_config,
)
from hamflow.cli._console import named, say
from hamflow.cli._data import DataOptions, open_pairs
from hamflow.cli._options import check_targets
from hamflow.cli.train import run_training
from hamflow.crf import CrfConfig
from hamflow.errors import InputError
from hamflow.io._atomic import check_writable, make_folder
from hamflow.io._text import write_csv
from hamflow.learning.state import CHECKPOINT

_NAMES = tuple(network.name for network in table1.NETWORKS)
_DATA = DataOptions()
_NO_TRAIN = "Do not train missing networks: a missing network is an error."


def paper_table1(
    *,
    data: DataWords,
    weights: Path = Path("runs/table1"),
    config: Path | None = None,
    networks: tuple[str, ...] = _NAMES,
    train: Annotated[bool, tyro.conf.arg(help=_NO_TRAIN)] = True,
    unequal: bool = False,
    which: tyro.conf.OmitArgPrefixes[DataOptions] = _DATA,
    crf_file: Path | None = None,
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("evaluations/table1"),
    resume: bool = False,
    csv: Path | None = None,
) -> None:
    """Repeat the paper's Table 1: FF, FQ and QQ networks of 5, 7 and 9 layers.

    Networks that are missing in the folder of weights are trained first, all with the same settings
    and number of steps (hours, on a few cores); after an interrupt, the same command continues the
    training. Then each network is evaluated with the local model (winner takes all), as it was
    trained and on bits (QQ), and with the joint model (CRF) on floats (F, only for FF) and on bits
    (Q); after an interrupt, --resume continues the evaluation. The table shows mean errors over
    visible pixels (noc) and, in brackets, over all pixels, in pixels of full resolution, next to
    those of the paper. At the end, the command says which of the paper's findings hold.

    Parameters
    ----------
    data
        Name and folder of the data set to evaluate on, as for hamflow evaluate.
    weights
        Folder with the networks, NAME/last.safetensors in it, where NAME is ff-5, fq-7 and so on.
    config
        TOML file with scale, window, and the tables [evaluation] (pass, split, subset,
        disjoint_from) and [training] (the settings of hamflow train).
        experiments/recipes/table1.toml trains on rendered scenes, table1-sintel.toml on 20 % of
        Sintel, and evaluates on another 40 %.
    networks
        Which networks to measure.
    unequal
        Permit networks that were trained with different settings and so cannot be compared.
    which
        Which pairs of the data set.
    crf_file
        Parameters of the joint model (TOML) instead of the paper's.
    output
        Folder for the finished pairs and for table1.csv.
    resume
        Continue the evaluation in that folder.
    csv
        Where to write a line for each network, column and pair; by default in that folder.
    """
    dataset, root = parse_data(data)
    chosen = Table1Config() if config is None else read_table1_config(config, dataset, root)
    wanted = parse_networks(networks)
    crf = CrfConfig.paper() if crf_file is None else CrfConfig.paper().updated(crf_file)
    pairs, described = open_pairs(dataset, root, _merged(which, chosen))
    logs = table1.logs_of(wanted, output)
    own = [*logs.values(), *output.glob("*.jsonl"), *weights.glob("*/*.safetensors")]
    check_targets({"--csv": csv}, files=[config, crf_file, *own], root=root)
    target = output / "table1.csv" if csv is None else csv
    make_folder(output)
    check_writable(target)
    # Raise every error before hours of training, not after them.
    check_logs(logs.values(), resume=resume)
    found = {network: find_network(network, weights / network.name) for network in wanted}
    if not train:
        _check_trained(found, weights)
    for sentence in _about_budgets(found, chosen, config, unequal=unequal):
        say(sentence)
    files = {
        network: _trained(network, weights / network.name, found[network], chosen)
        for network in wanted
    }
    console = Console(markup=False)
    with evaluating(console, output) as bar:
        measured = table1.run(
            pairs,
            files,
            chosen,
            crf=crf,
            data=described,
            logs=output,
            resume=resume,
            progress=lambda name: named(bar, name),
        )
    rows = table1.rows(measured)
    write_csv(target, rows)
    console.print(_table(rows, len(pairs), chosen))
    note = next(iter(measured.values())).occlusion_note()  # all cells have the same pairs
    for sentence in (*([] if note is None else [note]), *_findings(rows)):
        say(sentence)
    say(f"Wrote {target}.")


def _merged(which: DataOptions, config: Table1Config) -> DataOptions:
    """Return which pairs to evaluate on: the flags count before the file."""
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


def _check_trained(found: Mapping[Network, Found | None], weights: Path) -> None:
    """Raise if a network is missing or its training is not finished."""
    for network, there in found.items():
        folder = weights / network.name
        if there is None:
            raise InputError(
                f"{folder / table1.WEIGHTS}: does not exist; give the folder of the networks by "
                "--weights, or omit --no-train."
            )
        if not there.finished:
            raise InputError(
                f"{folder}: its training is not finished; omit --no-train to finish it."
            )


def _about_budgets(
    found: Mapping[Network, Found | None],
    chosen: Table1Config,
    config: Path | None,
    *,
    unequal: bool,
) -> list[str]:
    """Return notes on how the networks were trained; raise if they cannot be compared."""
    known = {network.name: there.settings for network, there in found.items() if there is not None}
    missing = [network for network, there in found.items() if there is None]
    planned = {network.name: settings_of(chosen.training_of(network)) for network in missing}
    said = []
    differs = difference(known | planned)
    if differs is not None:
        if not unequal:
            raise InputError(
                f"{differs}, so they cannot be compared; train them with the same settings (see "
                "[training] of --config), omit one in --networks, or permit it by --unequal."
            )
        said.append(f"{differs}: they cannot be compared.")
    if config is not None and chosen.training is not None and not missing:
        own = {f"{config}": settings_of(chosen.training)}
        differing = (difference(own | {name: settings}) for name, settings in known.items())
        said += [f"{one}; the file is ignored." for one in differing if one is not None][:1]
    blind = [n.name for n, there in found.items() if there is not None and there.run is None]
    if blind:
        said.append(
            f"The training of {', '.join(blind)} is only partly known, because there is no "
            f"{CHECKPOINT} next to the weights."
        )
    return said


def _trained(network: Network, folder: Path, found: Found | None, chosen: Table1Config) -> Path:
    """Return the weights of a network; train it first if necessary."""
    weights = folder / table1.WEIGHTS
    if found is None or not found.finished:
        resumed = None if found is None else found.run
        settings = chosen.training_of(network) if resumed is None else resumed[0]
        try:
            run_training(settings, folder)
        except KeyboardInterrupt:
            say(f"The same command continues the training of {network.name}.")
            raise
    elif not found.weights:
        restore_weights(folder)
        say(f"Wrote {weights} from {folder / CHECKPOINT}.")
    return weights


def _findings(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Generate sentences that say which of the paper's findings hold."""
    table = table_of(rows)
    over = known_over(table)
    found = findings(table, over)
    if found and over == "all":
        yield "The findings are checked with the errors over all pixels instead."
    for finding in found:
        verdict = "holds" if finding.holds else "does not hold"
        yield f"{finding.statement}: {verdict} ({finding.figures})."


def _table(rows: list[dict[str, Any]], pairs: int, config: Table1Config) -> Table:
    table = Table(
        "network",
        "",
        *TITLES.values(),
        title=(
            f"Endpoint error noc (all) in px; pairs: {pairs}, scale 1/{config.scale}, "
            f"D = {config.window}"
        ),
    )
    for network, columns in table_of(rows).items():
        published = TABLE1[network.train.upper(), network.layers]
        name = f"{network.train.upper()}, {network.layers} layers"
        table.add_row(name, "here", *(shown(columns.get(column)) for column in TITLES))
        table.add_row("", "paper", *(shown(published[column]) for column in TITLES))
        table.add_section()
    return table
