"""Middlebury's flow benchmark (Baker et al.) in its own layout.

::

    ROOT/other-data/NAME/frame10.png         gray: other-data-gray
                         frame11.png
    ROOT/other-gt-flow/NAME/flow10.flo
    ROOT/eval-data/NAME/...                  without flow; gray: eval-data-gray
"""

from __future__ import annotations

from collections.abc import Iterator

from hamflow.datasets._listing import Listing, Root, Split, check_choice
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset

_FOLDERS = {"training": "other-data", "test": "eval-data"}
_EXPECTED = (
    "expected is Middlebury's tree with <other-data or eval-data>/<name>/frame10.png and "
    "frame11.png (gray: other-data-gray, eval-data-gray) and the flows "
    "other-gt-flow/<name>/flow10.flo."
)


class MiddleburyDataset(PairDataset):
    """The two-frame pairs of Middlebury's flow benchmark: 8 with flow, and 12 for testing.

    Pairs are named after their scene, as in ``"RubberWhale"``. Where a scene has more frames, only
    the tenth and the eleventh are used.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``other-data``, ``other-gt-flow`` and ``eval-data``.
    split : "training" or "test"
        The scenes of ``other-data`` that have a flow, or those of ``eval-data``, which have none.
    gray : bool
        Take the gray frames.
    """

    def __init__(self, root: Root, *, split: Split = "training", gray: bool = False) -> None:
        check_choice("split", split, _FOLDERS)
        top = Listing(root, _EXPECTED)
        frames = top.folder(_FOLDERS[split] + ("-gray" if gray else ""))
        flows = top.folder("other-gt-flow") if split == "training" else None
        super().__init__(frames, _pairs(frames, flows))


def _pairs(frames: Listing, flows: Listing | None) -> Iterator[FlowPair]:
    for name in frames.folders():
        images, flow = frames.folder(name), None
        if flows is not None:
            if flows.find(name) is None:
                continue
            flow = flows.folder(name).file("flow10.flo")
        yield FlowPair(name, images.file("frame10.png"), images.file("frame11.png"), flow)
