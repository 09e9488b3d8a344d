"""HD1K in its own layout.

::

    ROOT/hd1k_input/image_2/000000_0000.png ...           sequence and frame
    ROOT/hd1k_flow_gt/flow_occ/000000_0000.png ...        the flow, in KITTI's encoding
    ROOT/hd1k_challenge/image_2/000000_10.png, _11.png    without truth
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Literal

from hamflow.datasets._listing import Listing, check_choice
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset

_FOLDERS = {"training": "hd1k_input", "test": "hd1k_challenge"}
_EXPECTED = (
    "expected is HD1K's tree with the frames hd1k_input/image_2/000000_0000.png and so on (to "
    "test: hd1k_challenge/image_2) and the flows hd1k_flow_gt/flow_occ/000000_0000.png and so on."
)


class Hd1kDataset(PairDataset):
    """The pairs of consecutive frames of HD1K.

    Pairs are called by sequence and first frame, as in ``"000000/0000"``. Which pixels are
    occluded is not known.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``hd1k_input`` and ``hd1k_flow_gt``.
    split : "training" or "test"
        Test pairs, in ``hd1k_challenge``, have no flow.

    Raises
    ------
    FileError
        If a flow is missing.
    InputError
        If an option has another value.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        split: Literal["training", "test"] = "training",
    ) -> None:
        check_choice("split", split, _FOLDERS)
        top = Listing(Path(root), _EXPECTED)
        frames = top.folder(_FOLDERS[split], "image_2")
        flows = top.folder("hd1k_flow_gt", "flow_occ") if split == "training" else None
        super().__init__(top.path, _pairs(frames, flows), _EXPECTED)


def _pairs(frames: Listing, flows: Listing | None) -> Iterator[FlowPair]:
    matches = frames.matches(r"(\d{6})_(\d+)\.png")
    matches.sort(key=lambda match: (match[1], int(match[2])))

    def sequence_of(match: re.Match[str]) -> str:
        return match[1]

    for sequence, members in groupby(matches, sequence_of):
        # The last frame of a sequence has a flow, too, but no frame to go with it.
        for first, second in pairwise(members):
            following = f"{sequence}_{int(first[2]) + 1:0{len(first[2])}d}.png"
            yield FlowPair(
                f"{sequence}/{first[2]}",
                frames.file(first[0]),
                # A gap in the numbers is an error that names the missing file.
                frames.file(second[0] if int(second[2]) == int(first[2]) + 1 else following),
                flow_path=None if flows is None else flows.file(first[0]),
            )
