"""The arguments with which commands choose a data set and its pairs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

from hamflow.cli._options import Number, option
from hamflow.datasets import PairDataset, open_dataset
from hamflow.datasets.registry import DatasetName, dataset_options
from hamflow.errors import InputError
from hamflow.evaluation.runner import Pair

_SHARE = re.compile(r"0?\.\d+|1(\.0*)?")

DATASETS = ", ".join(get_args(DatasetName))
"""The names of all data sets, for help texts."""


@dataclass(frozen=True)
class PartOptions:
    """Which part of a data set to use.

    Parameters
    ----------
    pass_
        Rendering pass, if the data set has several: clean or final.
    split
        Part of the data set, if it has several. By default the part for training, whose flow is
        known.
    subset
        A share of the pairs such as 0.4, evenly sampled; or names of pairs or groups (scenes).
    """

    pass_: Annotated[str | None, option("PASS", name="pass")] = None
    split: Annotated[str | None, option("SPLIT")] = None
    subset: Annotated[tuple[str, ...], option("SHARE|NAME ...")] = ()


@dataclass(frozen=True)
class DataOptions(PartOptions):
    """Which pairs of the data set to use.

    Parameters
    ----------
    disjoint_from
        Leave out the pairs of this evenly sampled share, because they were used for training; the
        share that --subset names is sampled from the others. The paper uses 0.2, and 0.4 there.
    count
        For synthetic: how many scenes to render.
    seed
        For synthetic: each number gives other scenes.
    """

    disjoint_from: Annotated[float | None, option("SHARE")] = None
    count: Number = 50
    seed: Number = 1


def open_pairs(
    dataset: str, root: Path | None, options: DataOptions
) -> tuple[Sequence[Pair], dict[str, Any]]:
    """Return the pairs of a data set, and a description of the choice for JSON.

    Raises
    ------
    HamflowError
        If there is no such data set, option, or file.
    """
    if dataset == "synthetic":
        return _synthetic(root, options)
    given = {"pass_": options.pass_, "split": options.split}
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        if name not in dataset_options(dataset):
            raise InputError(f"The data set {dataset} has no --{name.rstrip('_')}; leave it out.")
    pairs = open_dataset(dataset, root, **chosen)
    assert isinstance(pairs, PairDataset)
    described: dict[str, Any] = {"dataset": dataset}
    described |= {name.rstrip("_"): value for name, value in chosen.items()}
    share = _share(options.subset, pairs)
    if options.disjoint_from is not None:
        if share is None:
            raise InputError("--disjoint-from needs --subset with a share, such as 0.4.")
        pairs = pairs.evenly(share, disjoint_from=pairs.evenly(options.disjoint_from))
        described["disjoint_from"] = options.disjoint_from
    elif share is not None:
        pairs = pairs.evenly(share)
    elif options.subset:
        try:
            pairs = pairs.subset(options.subset)
        except InputError as error:
            raise InputError(f"--subset: {error}") from None
    if options.subset:
        described["subset"] = list(options.subset) if share is None else share
    return pairs, described


def data_label(description: dict[str, Any]) -> str:
    """Return a short name of the data set that `open_pairs` described, suitable for a file."""
    return "-".join(str(description[k]) for k in ("dataset", "pass", "split") if k in description)


def _synthetic(root: Path | None, options: DataOptions) -> tuple[Sequence[Pair], dict[str, Any]]:
    for name in ("pass_", "split", "disjoint_from"):
        if getattr(options, name) is not None:
            flag = "--" + name.rstrip("_").replace("_", "-")
            raise InputError(f"{flag} is not possible with synthetic scenes; leave it out.")
    if options.subset:
        raise InputError(
            "--subset is not possible with synthetic scenes; give their number with --count."
        )
    if options.count < 1:
        raise InputError(f"--count must be at least 1, but is {options.count}.")
    pairs = open_dataset("synthetic", root, size=options.count, seed=options.seed)
    return pairs, {
        "dataset": "synthetic",
        "photographs": root is not None,
        "count": options.count,
        "seed": options.seed,
    }


def _share(subset: Sequence[str], pairs: PairDataset) -> float | None:
    """Return the share that ``--subset`` gives, or None if it gives names.

    Names take precedence, because scenes of Spring and pairs of KITTI are named by numbers.
    """
    if len(subset) != 1 or _SHARE.fullmatch(subset[0]) is None:
        return None
    handles = {"/".join(name.split("/")[:k]) for name in pairs.names for k in range(1, 9)}
    return None if subset[0] in handles else float(subset[0])
