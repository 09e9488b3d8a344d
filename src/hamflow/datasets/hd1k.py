"""HD1K in its own layout.

::

    ROOT/hd1k_input/image_2/000000_0000.png ...           sequence and frame
    ROOT/hd1k_flow_gt/flow_occ/000000_0000.png ...        the flow, in KITTI's encoding
    ROOT/hd1k_challenge/image_2/000000_10.png, _11.png    without flow
"""

from __future__ import annotations

from collections.abc import Iterator

from hamflow.datasets._listing import Listing, Root, Split, check_choice
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset

_FOLDERS = {"training": "hd1k_input", "test": "hd1k_challenge"}
_EXPECTED = (
    "expected is HD1K's tree with the frames hd1k_input/image_2/000000_0000.png and so on (for "
    "testing: hd1k_challenge/image_2) and the flows hd1k_flow_gt/flow_occ/000000_0000.png and so "
    "on."
)


class Hd1kDataset(PairDataset):
    """The pairs of consecutive frames of HD1K.

    Pairs are named after sequence and first frame, as in ``"000000/0000"``. The data set does not
    tell which pixels are occluded.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``hd1k_input`` and ``hd1k_flow_gt``.
    split : "training" or "test"
        Test pairs, in ``hd1k_challenge``, have no flow.
    """

    def __init__(self, root: Root, *, split: Split = "training") -> None:
        check_choice("split", split, _FOLDERS)
        top = Listing(root, _EXPECTED)
        frames = top.folder(_FOLDERS[split], "image_2")
        flows = top.folder("hd1k_flow_gt", "flow_occ") if split == "training" else None
        super().__init__(top, _pairs(frames, flows))


def _pairs(frames: Listing, flows: Listing | None) -> Iterator[FlowPair]:
    for sequence in sorted({match[1] for match in frames.matches(r"(\d{6})_\d+\.png")}):
        # The last frame of a sequence has a flow, too, but no frame follows it.
        for number, first, second in frames.consecutive(f"{sequence}_", ".png"):
            flow = None if flows is None else flows.file(first.name)
            yield FlowPair(f"{sequence}/{number}", first, second, flow)
