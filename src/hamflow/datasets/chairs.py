"""FlyingChairs in its own layout.

::

    ROOT/data/00001_img1.ppm
              00001_img2.ppm
              00001_flow.flo ...
    ROOT/FlyingChairs_train_val.txt    optional, also as chairs_split.txt

Line n of the text file is 1 if pair n is for training and 2 if it is for validation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from hamflow.datasets._listing import Listing, check_choice
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset
from hamflow.errors import FileError, missing_file
from hamflow.io._reading import open_regular

_SPLIT_FILES = ("FlyingChairs_train_val.txt", "chairs_split.txt")
_MARKS = {"training": b"1", "validation": b"2"}
_LONGEST = 2**20  # bytes; the real one has 45,744
_EXPECTED = (
    "expected is FlyingChairs' tree with data/00001_img1.ppm, data/00001_img2.ppm, "
    "data/00001_flow.flo and so on."
)


class FlyingChairsDataset(PairDataset):
    """The 22872 pairs of FlyingChairs, called by their number, as in ``"00001"``.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``data``.
    split : "training", "validation" or "all"
        By the file ``FlyingChairs_train_val.txt`` (or ``chairs_split.txt``) in `root`, which is
        published beside the data: 22232 and 640 pairs. Without the file, all pairs are for
        training.

    Raises
    ------
    FileError
        If a frame or a flow is missing, or the file does not say what a pair is for.
    InputError
        If an option has another value.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        split: Literal["training", "validation", "all"] = "training",
    ) -> None:
        check_choice("split", split, (*_MARKS, "all"))
        top = Listing(Path(root), _EXPECTED)
        pairs = _pairs(top.folder("data"))
        if split != "all":
            pairs = _of_split(top, split, pairs)
        super().__init__(top.path, pairs, _EXPECTED)


def _pairs(data: Listing) -> Iterator[FlowPair]:
    for match in data.matches(r"(\d{5})_img1\.ppm"):
        name = match[1]
        yield FlowPair(
            name,
            data.file(match[0]),
            data.file(f"{name}_img2.ppm"),
            data.file(f"{name}_flow.flo"),
        )


def _of_split(top: Listing, split: str, pairs: Iterator[FlowPair]) -> Iterator[FlowPair]:
    path = next((path for name in _SPLIT_FILES if (path := top.find(name)) is not None), None)
    if path is None:
        if split == "validation":
            raise missing_file(
                top.path / _SPLIT_FILES[0],
                "get the file, which is published beside the data and says which pairs are which.",
            )
        yield from pairs
        return
    with open_regular(path) as file:
        marks = [line.strip() for line in file.read(_LONGEST).splitlines()]
    for pair in pairs:
        number = int(pair.name)
        if not 1 <= number <= len(marks) or marks[number - 1] not in _MARKS.values():
            raise FileError(
                f"{path}: does not say by a 1 or a 2 in line {number} whether the pair {pair.name} "
                "is for training or validation; get the file again, which is published beside the "
                "data."
            )
        if marks[number - 1] == _MARKS[split]:
            yield pair
