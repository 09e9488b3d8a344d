"""Table 1 of the paper: FF, FQ and QQ networks with the local and the joint model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from experiments.paper.logs import check_logs
from hamflow._tables import build, config_of_file
from hamflow._types import CountProgress
from hamflow.crf import CrfConfig
from hamflow.descriptors.architecture import Architecture
from hamflow.errors import InputError
from hamflow.evaluation.methods import Method, MethodConfig
from hamflow.evaluation.records import Evaluation
from hamflow.evaluation.runner import Pair, evaluate
from hamflow.learning.config import TrainConfig
from hamflow.learning.state import LAST
from hamflow.window import MAX_LABELS

TITLES = {"trained": "WTA as trained", "qq": "WTA QQ", "crf_f": "CRF F", "crf_q": "CRF Q"}
"""The columns: the local model as trained and on bits, the joint model on floats and on bits."""
COLUMNS = tuple(TITLES)
BITS = 64
"""Components of a descriptor; each becomes a bit, because all networks are evaluated on bits."""
WEIGHTS = LAST
"""The file of weights in the folder of a network: those of the last step, not of the best one."""


class Network(NamedTuple):
    """A row of the table: how the network is trained, and its layers."""

    train: str
    layers: int

    @property
    def name(self) -> str:
        """As in ``fq-7``."""
        return f"{self.train}-{self.layers}"


NETWORKS = tuple(
    Network(train, layers)
    for train, depths in (("ff", (5, 7)), ("fq", (5, 7, 9)), ("qq", (5, 7, 9)))
    for layers in depths
)
"""The networks that the paper trained."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Which pairs to evaluate on; see the options of ``hamflow evaluate``."""

    pass_: str | None = None
    split: str | None = None
    subset: float | None = None
    disjoint_from: float | None = None


@dataclass(frozen=True)
class Table1Config:
    """The settings of the experiment.

    Parameters
    ----------
    scale : int
        Frames are reduced by this factor for the evaluation.
    window : int
        D, at that scale.
    evaluation : EvaluationConfig
        Which pairs of the data set to evaluate on.
    training : TrainConfig or None
        The settings of training that all networks share; None for the defaults.
    """

    scale: int = 2
    window: int = 128
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    training: TrainConfig | None = None

    def __post_init__(self) -> None:
        # Checked here, because the evaluation begins after hours of training.
        check_evaluation(self.window, self.scale)
        if self.training is not None and self.training.network.m != BITS:
            raise InputError(
                f"training.network.m must be {BITS}, but is {self.training.network.m}: all "
                "networks are evaluated on bits, too."
            )

    def training_of(self, network: Network) -> TrainConfig:
        """Return the settings of training of one network."""
        common = TrainConfig() if self.training is None else self.training
        architecture: Architecture = replace(common.network, layers=network.layers)
        return replace(common, network=architecture, model=network.train)  # type: ignore[arg-type]


def check_evaluation(window: int, scale: int, names: tuple[str, str] = ("window", "scale")) -> None:
    """Raise an InputError if D or the scale is out of range; `names` are those in the message."""
    if type(window) is not int or window % 2 or not 2 <= window <= MAX_LABELS:
        raise InputError(f"{names[0]} must be even, from 2 to {MAX_LABELS}, but is {window}.")
    if type(scale) is not int or scale < 1:
        raise InputError(f"{names[1]} must be a whole number, at least 1, but is {scale}.")


def read_table1_config(
    path: str | os.PathLike[str], dataset: str, root: Path | None
) -> Table1Config:
    """Return the experiment that a TOML file describes.

    If it trains on the data set of the evaluation and gives no folder for it, `root` is used.

    Raises
    ------
    FileError
        If the file cannot be read, or contains something unknown or wrong.
    """

    def convert(values: dict[str, Any]) -> Table1Config:
        # `build` refuses what is not a table.
        data = _below(_below(values, "training"), "data")
        if data.get("dataset") == dataset and "root" not in data and root is not None:
            data["root"] = os.fspath(root)
        chosen = _below(values, "evaluation")
        if "pass" in chosen:
            chosen["pass_"] = chosen.pop("pass")
        config = build(Table1Config, values)
        assert isinstance(config, Table1Config)
        return config

    return config_of_file(path, convert)


def _below(tables: dict[str, Any], name: str) -> dict[str, Any]:
    found = tables.get(name)
    return found if isinstance(found, dict) else {}


def parse_network(name: str) -> Network:
    """Return the network of a name such as ``fq-7``."""
    train, _, layers = name.partition("-")
    if train not in ("ff", "fq", "qq") or layers not in ("5", "7", "9"):
        raise InputError(f"There is no network {name!r}; names are such as ff-5, fq-7 or qq-9.")
    return Network(train, int(layers))


def parse_networks(names: Sequence[str]) -> list[Network]:
    """Return the networks of one or more different names."""
    if not names or len(set(names)) != len(names):
        raise InputError("--networks must name one or more networks, such as fq-7, each once.")
    return [parse_network(name) for name in names]


def columns_of(network: Network) -> tuple[str, ...]:
    """Return the columns of a network: QQ is trained on bits, and only FF is used with floats."""
    return {
        "ff": COLUMNS,
        "fq": ("trained", "qq", "crf_q"),
        "qq": ("qq", "crf_q"),
    }[network.train]


def method_of(
    network: Network, column: str, weights: Path, config: Table1Config, crf: CrfConfig
) -> MethodConfig:
    """Return the method that a column measures."""
    name = {"trained": f"wta-{network.train}", "qq": "wta-qq", "crf_f": "crf-f", "crf_q": "crf-q"}
    return MethodConfig(
        name[column],
        model=os.fspath(weights),
        window=config.window,
        scale=config.scale,
        crf=crf if column.startswith("crf") else None,
    )


def run(
    pairs: Sequence[Pair],
    weights: Mapping[Network, Path],
    config: Table1Config,
    *,
    crf: CrfConfig | None = None,
    data: Mapping[str, Any] | None = None,
    logs: Path | None = None,
    resume: bool = False,
    progress: Callable[[str], CountProgress] = lambda _: lambda *_: None,
) -> dict[tuple[Network, str], Evaluation]:
    """Evaluate networks in all columns of the table.

    Parameters
    ----------
    pairs : sequence of pairs
        A data set.
    weights : mapping of Network to Path
        Their files of weights.
    config : Table1Config
        Scale and window; the rest is for training.
    crf : CrfConfig, optional
        The joint model; the paper's by default.
    data : mapping, optional
        A description of the data set, for the logs.
    logs : Path, optional
        A folder for the finished pairs.
    resume : bool
        Continue the evaluations in that folder.
    progress : callable
        Called with the name of each evaluation; returns the callback for its pairs.

    Returns
    -------
    dict
        An evaluation for each network and each column that it has.

    Raises
    ------
    HamflowError
        If there are logs and `resume` is False, or a file cannot be used.
    """
    crf = CrfConfig.paper() if crf is None else crf
    files = {} if logs is None else logs_of(weights, logs)
    check_logs(files.values(), resume=resume)
    found = {}
    for network, column in cells(weights):
        # Loaded one by one: a model keeps the memory that it allocated.
        method = Method(method_of(network, column, weights[network], config, crf))
        found[network, column] = evaluate(
            pairs,
            method,
            data=data,
            log=files.get((network, column)),
            progress=progress(_name(network, column)),
        )
    return found


def logs_of(
    networks: Mapping[Network, Any] | Sequence[Network], folder: Path
) -> dict[tuple[Network, str], Path]:
    """Return the log of each network and column in a folder."""
    return {
        (network, column): folder / f"{_name(network, column)}.jsonl"
        for network, column in cells(networks)
    }


def _name(network: Network, column: str) -> str:
    return f"{network.name}-{column.replace('_', '-')}"


def cells(networks: Mapping[Network, Any] | Sequence[Network]) -> Iterator[tuple[Network, str]]:
    """Generate the cells of the table: each network with its columns."""
    for network in networks:
        for column in columns_of(network):
            yield network, column


def rows(found: Mapping[tuple[Network, str], Evaluation]) -> list[dict[str, Any]]:
    """Return a line for each network, column and pair, for a CSV."""
    return [
        {
            "train": network.train,
            "layers": network.layers,
            "column": column,
            **{
                name: record.as_row()[name]
                for name in (
                    "pair",
                    "epe_noc",
                    "epe_all",
                    "pixels_noc",
                    "pixels",
                    "outlier_3px",
                    "gap",
                    "seconds",
                )
            },
        }
        for (network, column), evaluation in found.items()
        for record in evaluation.records
    ]
