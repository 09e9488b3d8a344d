"""KITTI's flow benchmarks of 2012 and 2015 in their own layout.

::

    ROOT/training/image_2/000000_10.png      2015; 2012: colored_0 or (gray) image_0
                          000000_11.png ...
    ROOT/training/flow_occ/000000_10.png     the flow, in KITTI's encoding
    ROOT/training/flow_noc/000000_10.png     optional: that of only the visible pixels
    ROOT/testing/image_2/...                 without truth
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

from hamflow.datasets._listing import Listing, check_choice
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset

_FOLDERS = {"training": "training", "test": "testing"}


class _KittiDataset(PairDataset):
    """What the two have in common; `_images` are the folders of frames, the best first."""

    _images: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        split: Literal["training", "test"] = "training",
        images: str | None = None,
    ) -> None:
        check_choice("split", split, _FOLDERS)
        check_choice("images", images, (None, *self._images))
        expected = (
            "expected is KITTI's tree with the frames <training or testing>/"
            f"<{' or '.join(self._images)}>/000000_10.png, 000000_11.png and so on and the flows "
            "training/flow_occ/000000_10.png and so on."
        )
        top = Listing(Path(root), expected).folder(_FOLDERS[split])
        names = self._images if images is None else (images,)
        # The last one without asking whether it exists, so that it is missed if none does.
        name = next((name for name in names[:-1] if top.find(name) is not None), names[-1])
        super().__init__(top.path, _pairs(top, name, split == "training"), expected)


class Kitti2015Dataset(_KittiDataset):
    """KITTI 2015: 200 pairs with flow, 200 to test.

    Pairs are called by their first frame, as in ``"000000_10"``. Only some of the pixels have a
    known flow; where there are both ``flow_occ`` and ``flow_noc``, it is known which of these are
    occluded.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``training`` and ``testing``.
    split : "training" or "test"
        Test pairs have no flow.
    images : "image_2", optional
        The folder of the frames.

    Raises
    ------
    FileError
        If a frame or a flow is missing.
    InputError
        If an option has another value.
    """

    _images = ("image_2",)


class Kitti2012Dataset(_KittiDataset):
    """KITTI 2012: 194 pairs with flow, 195 to test; otherwise like `Kitti2015Dataset`.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``training`` and ``testing``.
    split : "training" or "test"
        Test pairs have no flow.
    images : "colored_0" or "image_0", optional
        The folder of the frames, in color or gray; by default in color if they are there.

    Raises
    ------
    FileError
        If a frame or a flow is missing.
    InputError
        If an option has another value.
    """

    _images = ("colored_0", "image_0")


def _pairs(top: Listing, images: str, known: bool) -> Iterator[FlowPair]:
    frames = top.folder(images)
    flows = top.folder("flow_occ") if known else None
    visible = top.find_folder("flow_noc") if known else None
    for match in frames.matches(r"(\d{6})_10\.png"):
        yield FlowPair(
            match[0].removesuffix(".png"),
            frames.file(match[0]),
            frames.file(f"{match[1]}_11.png"),
            flow_path=None if flows is None else flows.file(match[0]),
            noc_path=None if visible is None else visible.find(match[0]),
        )
