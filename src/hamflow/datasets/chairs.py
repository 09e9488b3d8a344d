"""FlyingChairs in its own layout.

::

    ROOT/data/00001_img1.ppm
              00001_img2.ppm
              00001_flow.flo ...
    ROOT/FlyingChairs_train_val.txt    optional, also as chairs_split.txt

Line n of the text file is 1 if pair n is for training and 2 if it is for validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from hamflow.datasets._listing import Listing, Root, check_choice
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset
from hamflow.errors import FileError, missing_file
from hamflow.io._reading import open_regular

_SPLIT_FILES = ("FlyingChairs_train_val.txt", "chairs_split.txt")
_MARKS = {"training": b"1", "validation": b"2"}
_MAX_BYTES = 2**20  # of the split file; the published one has 45,744
_EXPECTED = (
    "expected is FlyingChairs' tree with data/00001_img1.ppm, data/00001_img2.ppm, "
    "data/00001_flow.flo and so on."
)


class FlyingChairsDataset(PairDataset):
    """The 22872 pairs of FlyingChairs, named after their number, as in ``"00001"``.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``data``.
    split : "training", "validation" or "all"
        By the file ``FlyingChairs_train_val.txt`` (or ``chairs_split.txt``) in `root`, which is
        published beside the data: 22232 and 640 pairs. Without the file, all pairs are for
        training.
    """

    def __init__(
        self, root: Root, *, split: Literal["training", "validation", "all"] = "training"
    ) -> None:
        check_choice("split", split, (*_MARKS, "all"))
        top = Listing(root, _EXPECTED)
        pairs = _pairs(top.folder("data"))
        super().__init__(top, pairs if split == "all" else _of_split(top, split, pairs))


def _pairs(data: Listing) -> Iterator[FlowPair]:
    for match in data.matches(r"(\d{5})_img1\.ppm"):
        files = (f"{match[1]}_{kind}" for kind in ("img1.ppm", "img2.ppm", "flow.flo"))
        yield FlowPair(match[1], *map(data.file, files))


def _of_split(top: Listing, split: str, pairs: Iterator[FlowPair]) -> Iterator[FlowPair]:
    path = top.find(*_SPLIT_FILES)
    if path is None:
        if split == "validation":
            raise missing_file(
                top.path / _SPLIT_FILES[0],
                "get this file, which is published beside the data and tells the splits apart.",
            )
        yield from pairs
        return
    with open_regular(path) as file:
        marks = [line.strip() for line in file.read(_MAX_BYTES).splitlines()]
    for pair in pairs:
        number = int(pair.name)
        if not 1 <= number <= len(marks) or marks[number - 1] not in _MARKS.values():
            raise FileError(
                f"{path}: line {number} must be 1 (training) or 2 (validation) to tell the split "
                f"of the pair {pair.name}; get the file again, which is published beside the data."
            )
        if marks[number - 1] == _MARKS[split]:
            yield pair
