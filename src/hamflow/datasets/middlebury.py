"""Middlebury's flow benchmark (Baker et al.) in its own layout.

::

    ROOT/other-data/NAME/frame10.png         gray: other-data-gray
                         frame11.png
    ROOT/other-gt-flow/NAME/flow10.flo
    ROOT/eval-data/NAME/...                  without truth; gray: eval-data-gray
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from hamflow.datasets._listing import Listing, check_choice
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset

_FOLDERS = {"training": "other-data", "test": "eval-data"}
_EXPECTED = (
    "expected is Middlebury's tree with <other-data or eval-data>/<name>/frame10.png and "
    "frame11.png (gray: other-data-gray, eval-data-gray) and the flows "
    "other-gt-flow/<name>/flow10.flo."
)


class MiddleburyDataset(PairDataset):
    """The two-frame pairs of Middlebury's flow benchmark: 8 with flow, 12 to test.

    Pairs are called by their scene, as in ``"RubberWhale"``. Of other frames that a scene may
    have, only the tenth and the eleventh are looked at.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``other-data``, ``other-gt-flow`` and ``eval-data``.
    split : "training" or "test"
        ``other-data``, of which some scenes have no flow and are left out, or ``eval-data``, where
        none has.
    gray : bool
        Take the gray frames.

    Raises
    ------
    FileError
        If a frame is missing.
    InputError
        If an option has another value.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        split: Literal["training", "test"] = "training",
        gray: bool = False,
    ) -> None:
        check_choice("split", split, _FOLDERS)
        top = Listing(Path(root), _EXPECTED)
        frames = top.folder(_FOLDERS[split] + ("-gray" if gray else ""))
        flows = top.folder("other-gt-flow") if split == "training" else None
        super().__init__(frames.path, _pairs(frames, flows), _EXPECTED)


def _pairs(frames: Listing, flows: Listing | None) -> Iterator[FlowPair]:
    for name in frames.folders():
        flow = None
        if flows is not None:
            truth = flows.find_folder(name)
            if truth is None:
                continue
            flow = truth.file("flow10.flo")
        images = frames.folder(name)
        yield FlowPair(name, images.file("frame10.png"), images.file("frame11.png"), flow)
