"""Table 1 of the paper: FF, FQ and QQ networks in the local and in the joint model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hamflow._tables import build, config_of_file
from hamflow.crf import CrfConfig
from hamflow.errors import InputError
from hamflow.evaluation.methods import Method, MethodConfig
from hamflow.evaluation.records import Evaluation
from hamflow.evaluation.runner import Pair, Progress, evaluate
from hamflow.learning.config import TrainConfig

COLUMNS = ("trained", "qq", "crf_f", "crf_q")
"""The local model as trained and with bits; the joint model with floats and with bits."""
WEIGHTS = "last.safetensors"
"""File with the weights in the folder of a network: of its last step, not of its best one."""


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
"""Those that the paper trained."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Which pairs to evaluate on; see the options of ``hamflow evaluate``."""

    pass_: str | None = None
    split: str | None = None
    subset: float | None = None
    disjoint_from: float | None = None


@dataclass(frozen=True)
class Table1Config:
    """The experiment.

    Parameters
    ----------
    scale : int
        Frames are reduced by this factor for the evaluation.
    window : int
        D, at that scale.
    evaluation : EvaluationConfig
        Pairs of the data set to evaluate on.
    training : TrainConfig
        What all networks have in common.
    """

    scale: int = 2
    window: int = 128
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    training: TrainConfig = field(default_factory=TrainConfig)


def read_table1_config(
    path: str | os.PathLike[str], dataset: str, root: Path | None
) -> Table1Config:
    """Return the experiment that a TOML file describes.

    Where it trains on the data set that is evaluated on and does not say where that is, it is at
    `root`.

    Raises
    ------
    FileError
        If the file cannot be read or has something unknown or wrong in it.
    """

    def convert(values: dict[str, Any]) -> Table1Config:
        # What is not a table is refused below.
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
        raise InputError(f"There is no network {name!r}; name them as ff-5, fq-7 or qq-9.")
    return Network(train, int(layers))


def columns_of(network: Network) -> tuple[str, ...]:
    """Return the columns that a network has: QQ is trained as it is used, and only FF is float."""
    return {
        "ff": COLUMNS,
        "fq": ("trained", "qq", "crf_q"),
        "qq": ("qq", "crf_q"),
    }[network.train]


def method_of(
    network: Network, column: str, weights: Path, config: Table1Config, crf: CrfConfig
) -> MethodConfig:
    """Return what a column measures."""
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
    progress: Callable[[str], Progress] = lambda _: lambda *_: None,
) -> dict[tuple[Network, str], Evaluation]:
    """Evaluate networks as the table has it.

    Parameters
    ----------
    pairs : sequence of pairs
        A data set.
    weights : mapping of Network to Path
        Their files.
    config : Table1Config
        Scale and window; the rest was for training.
    crf : CrfConfig, optional
        The joint model; the paper's by default.
    data : mapping, optional
        What the data set is.
    logs : Path, optional
        A folder for the pairs that are done.
    resume : bool
        Go on with what is there.
    progress : callable
        Told what comes next; returns what is told about its pairs.

    Returns
    -------
    dict
        An evaluation for each network and each column that it has.
    """
    crf = CrfConfig.paper() if crf is None else crf
    found = {}
    for network, column in cells(weights):
        method = Method(method_of(network, column, weights[network], config, crf))
        name = f"{network.name}-{column.replace('_', '-')}"
        found[network, column] = evaluate(
            pairs,
            method,
            data=data,
            log=None if logs is None else logs / f"{name}.jsonl",
            resume=resume,
            progress=progress(name),
        )
    return found


def cells(networks: Mapping[Network, Any] | Sequence[Network]) -> Iterator[tuple[Network, str]]:
    """Generate what is to be measured: each network with its columns."""
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
