"""``paper table1``: networks trained as FF, FQ and QQ, beside the paper's figures."""

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
from experiments.paper.runs import CHECKPOINT, Found, find_network, restore_weights
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
from hamflow.evaluation.records import Evaluation, write_csv
from hamflow.io._atomic import check_writable, make_folder

_NAMES = tuple(network.name for network in table1.NETWORKS)
_DATA = DataOptions()


def paper_table1(
    *,
    data: DataWords,
    weights: Path = Path("runs/table1"),
    config: Path | None = None,
    networks: tuple[str, ...] = _NAMES,
    train: bool = True,
    unequal: bool = False,
    which: tyro.conf.OmitArgPrefixes[DataOptions] = _DATA,
    crf_file: Path | None = None,
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("evaluations/table1"),
    resume: bool = False,
    csv: Path | None = None,
) -> None:
    """Repeat the paper's Table 1: FF, FQ and QQ networks of 5, 7 and 9 layers.

    Networks that are not in the folder of weights are trained there first, all with the same
    settings and number of steps (hours, on a few cores); interrupted there, the same command goes
    on with the training. Then each is evaluated in the local model (winner takes all), as it was
    trained and with bits (QQ), and in the joint model (CRF) with floats (F, for FF) and with bits
    (Q); interrupted there, it goes on with --resume. Errors are means over visible pixels (noc)
    and, in brackets, over all, in pixels of full resolution, with the paper's figures beside them;
    at the end it says which of the paper's findings hold.

    Parameters
    ----------
    data
        Name and folder of the data set to evaluate on, as for hamflow evaluate.
    weights
        Folder with the networks, NAME/last.safetensors in it, where NAME is ff-5, fq-7 and so on.
    config
        TOML file: scale and window; the tables [evaluation] (pass, split, subset, disjoint_from)
        and [training], with the settings of hamflow train. recipes/table1.toml of this
        folder learns from rendered scenes, recipes/table1-sintel.toml from 20 % of Sintel, for the
        other 40 %.
    networks
        Which of them.
    train
        Train those that are missing; with --no-train, that is an error.
    unequal
        Permit networks that were trained with different settings, which cannot be compared.
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
    # All that can be wrong before hours of training, not after them.
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
    for sentence in (*_about_occlusions(measured), *_findings(rows)):
        say(sentence)
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


def _check_trained(found: Mapping[Network, Found | None], weights: Path) -> None:
    """Raise if something is to be trained."""
    for network, there in found.items():
        folder = weights / network.name
        if there is None:
            raise InputError(
                f"{folder / table1.WEIGHTS}: does not exist; name the folder with --weights, or "
                "leave out --no-train."
            )
        if not there.finished:
            raise InputError(f"{folder}: its training is not finished; leave out --no-train.")


def _about_budgets(
    found: Mapping[Network, Found | None],
    chosen: Table1Config,
    config: Path | None,
    *,
    unequal: bool,
) -> list[str]:
    """Return what is to be said about the trainings, or raise if they cannot be compared."""
    known = {network.name: there.settings for network, there in found.items() if there is not None}
    missing = [network for network, there in found.items() if there is None]
    planned = {network.name: settings_of(chosen.training_of(network)) for network in missing}
    said = []
    differs = difference(known | planned)
    if differs is not None:
        if not unequal:
            raise InputError(
                f"{differs}, so they cannot be compared; train them alike (see [training] of "
                "--config), leave one out of --networks, or permit it by --unequal."
            )
        said.append(f"{differs}: they cannot be compared.")
    if config is not None and chosen.training is not None and not missing:
        own = {f"{config}": settings_of(chosen.training)}
        differing = (difference(own | {name: settings}) for name, settings in known.items())
        said += [f"{one}: the weights count." for one in differing if one is not None][:1]
    blind = [n.name for n, there in found.items() if there is not None and there.run is None]
    if blind:
        said.append(
            f"Not all is known of the training of {', '.join(blind)}: there is no {CHECKPOINT} "
            "beside the weights."
        )
    return said


def _trained(network: Network, folder: Path, found: Found | None, chosen: Table1Config) -> Path:
    """Return the weights of a network, which is trained if it has to be."""
    weights = folder / table1.WEIGHTS
    if found is None or not found.finished:
        resumed = None if found is None else found.run
        settings = chosen.training_of(network) if resumed is None else resumed.config
        try:
            run_training(settings, folder)
        except KeyboardInterrupt:
            say(f"The same command continues with the training of {network.name}.")
            raise
    elif not found.weights:
        restore_weights(folder)
        say(f"Wrote {weights} from {folder / CHECKPOINT}.")
    return weights


def _about_occlusions(measured: Mapping[tuple[Network, str], Evaluation]) -> list[str]:
    # The same pairs in all cells of the table.
    note = next(iter(measured.values())).occlusion_note()
    return [] if note is None else [note]


def _findings(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Generate what became of the paper's findings, in sentences."""
    table = table_of(rows)
    over = known_over(table)
    found = findings(table, over)
    if found and over == "all":
        yield "The paper's findings are put to the test of the errors over all pixels instead."
    for finding in found:
        verdict = "holds" if finding.holds else "does not hold"
        yield f"{finding.statement}: {verdict} ({finding.figures})."


def _table(rows: list[dict[str, Any]], pairs: int, config: Table1Config) -> Table:
    table = Table(
        "network",
        "",
        *TITLES.values(),
        title=(
            f"Endpoint error noc (all) in px; {pairs} pairs, scale 1/{config.scale}, "
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
