"""Data sets as commands name them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from hamflow.datasets import PairDataset, open_dataset
from hamflow.datasets.registry import dataset_options
from hamflow.errors import InputError
from hamflow.evaluation.runner import Pair

_SHARE = re.compile(r"0?\.\d+|1(\.0*)?")


@dataclass(frozen=True)
class DataOptions:
    """Which pairs of the data set.

    Parameters
    ----------
    pass_
        Pass of the renderer, for Sintel and FlyingThings3D: clean or final.
    split
        Part of the data set, where it has several; by default the one for training, whose flow is
        known.
    subset
        A share of the pairs such as 0.4, evenly sampled; or names of pairs or groups (scenes).
    disjoint_from
        Leave out the pairs of this evenly sampled share, which were learned from; the share of
        --subset is then sampled from the others. The paper has 0.2 here and 0.4 there.
    count
        How many scenes to render, for synthetic.
    seed
        Of these scenes.
    """

    pass_: Annotated[str | None, tyro.conf.arg(name="pass")] = None
    split: str | None = None
    subset: tuple[str, ...] = ()
    disjoint_from: float | None = None
    count: int = 50
    seed: int = 1


def open_pairs(
    dataset: str, root: Path | None, options: DataOptions
) -> tuple[Sequence[Pair], dict[str, Any]]:
    """Return the pairs of a data set, and what describes the choice, ready for JSON.

    Raises
    ------
    HamflowError
        If there is no such data set, option, or file.
    """
    if dataset == "synthetic":
        return _synthetic(root, options)
    given = {"pass_": options.pass_, "split": options.split}
    chosen = {name: value for name, value in given.items() if value is not None}
    _check_flags(dataset, chosen)
    pairs = open_dataset(dataset, root, **chosen)
    assert isinstance(pairs, PairDataset)
    described: dict[str, Any] = {"dataset": dataset}
    described |= {name.rstrip("_"): value for name, value in chosen.items()}
    share = _share(options.subset, pairs)
    if options.disjoint_from is not None:
        if share is None:
            raise InputError("--disjoint-from needs a share as --subset, such as 0.4.")
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


def _check_flags(dataset: str, chosen: Mapping[str, str]) -> None:
    """Refuse what a data set does not have, in the words of the command line."""
    known = dataset_options(dataset)
    for name in chosen:
        if name not in known:
            raise InputError(f"The data set {dataset} has no --{name.rstrip('_')}; leave it out.")


def data_label(description: dict[str, Any]) -> str:
    """Return a short name of a described data set, fit for a file."""
    return "-".join(str(description[k]) for k in ("dataset", "pass", "split") if k in description)


def _synthetic(root: Path | None, options: DataOptions) -> tuple[Sequence[Pair], dict[str, Any]]:
    for name in ("pass_", "split", "disjoint_from"):
        if getattr(options, name) is not None:
            flag = "--" + name.rstrip("_").replace("_", "-")
            raise InputError(f"{flag} is not for synthetic scenes, which are rendered on demand.")
    if options.subset:
        raise InputError("--subset is not for synthetic scenes; choose how many by --count.")
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
    """Return the share that a subset is; None if it is names.

    Names count first: scenes of Spring and pairs of KITTI are numbers.
    """
    if len(subset) != 1 or _SHARE.fullmatch(subset[0]) is None:
        return None
    handles = {"/".join(name.split("/")[:k]) for name in pairs.names for k in range(1, 9)}
    return None if subset[0] in handles else float(subset[0])
