"""KITTI's flow benchmarks of 2012 and 2015 in their own layout.

::

    ROOT/training/image_2/000000_10.png      2015; 2012: colored_0 or (gray) image_0
                          000000_11.png ...
    ROOT/training/flow_occ/000000_10.png     the flow, in KITTI's encoding
    ROOT/training/flow_noc/000000_10.png     optional: that of only the visible pixels
    ROOT/testing/image_2/...                 without flow
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hamflow.datasets._listing import Listing, Root, Split, check_choice
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset

_FOLDERS = {"training": "training", "test": "testing"}


class Kitti2015Dataset(PairDataset):
    """KITTI 2015: 200 pairs with flow, and 200 for testing.

    Pairs are named after their first frame, as in ``"000000_10"``. Only some of the pixels have a
    known flow; where there are both ``flow_occ`` and ``flow_noc``, it is known which of these are
    occluded.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``training`` and ``testing``.
    split : "training" or "test"
        Test pairs have no flow.
    images : str, optional
        The folder of the frames: ``"image_2"``.
    """

    _images: ClassVar[tuple[str, ...]] = ("image_2",)

    def __init__(self, root: Root, *, split: Split = "training", images: str | None = None) -> None:
        check_choice("split", split, _FOLDERS)
        check_choice("images", images, (None, *self._images))
        expected = (
            "expected is KITTI's tree with the frames <training or testing>/"
            f"<{' or '.join(self._images)}>/000000_10.png, 000000_11.png and so on and the flows "
            "training/flow_occ/000000_10.png and so on."
        )
        top = Listing(root, expected).folder(_FOLDERS[split])
        names = self._images if images is None else (images,)
        frames = top.folder((top.find(*names) or top.path / names[-1]).name)
        super().__init__(top, _pairs(top, frames, split == "training"))


class Kitti2012Dataset(Kitti2015Dataset):
    """KITTI 2012: 194 pairs with flow, and 195 for testing; otherwise like `Kitti2015Dataset`.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``training`` and ``testing``.
    split : "training" or "test"
        Test pairs have no flow.
    images : str, optional
        The folder of the frames: ``"colored_0"`` or (gray) ``"image_0"``; by default the first of
        these that exists.
    """

    _images = ("colored_0", "image_0")


def _pairs(top: Listing, frames: Listing, known: bool) -> Iterator[FlowPair]:
    flows = top.folder("flow_occ", optional=not known)
    visible = top.folder("flow_noc", optional=True)
    for match in frames.matches(r"(\d{6}_1)0\.png"):
        yield FlowPair(
            f"{match[1]}0",
            frames.file(match[0]),
            frames.file(f"{match[1]}1.png"),
            flow_path=flows.file(match[0]) if known else None,
            noc_path=visible.find(match[0]) if known else None,
        )
