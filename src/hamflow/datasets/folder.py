"""Image pairs with known flow in a tree of folders, one folder for each pair.

::

    ROOT/<group>/<pair>/frame1.png
                        frame2.png
                        flow.flo        or flow.png in KITTI's encoding
                        flow_noc.png    optional: the flow of only the visible pixels, as in KITTI
                        occ.png         optional, white: occluded
                        invalid.png     optional, white: not to be evaluated
"""

from __future__ import annotations

import os
from pathlib import Path

from hamflow.datasets._listing import Found, search
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset
from hamflow.errors import FileError, missing_file

_FRAMES = ("frame1.png", "frame2.png")
# In this order: next to a flow.flo, a flow.png may well be its picture.
_FLOWS = ("flow.flo", "flow.png")
_NEEDED = "frame1.png, frame2.png, and flow.flo or (in KITTI's encoding) flow.png"
_EXPECTED = f"expected is a tree <group>/<pair>/ with these files for each pair: {_NEEDED}."


class FolderDataset(PairDataset):
    """The pairs in all folders below a root that hold ``frame1.png`` and ``frame2.png``.

    The names of the pairs are their paths below the root, with ``/``.

    Parameters
    ----------
    root : str or os.PathLike
        One pair's folder, or a folder of such folders, to any depth. It holds ``frame1.png``,
        ``frame2.png`` and ``flow.flo`` (or else ``flow.png``), and may hold ``flow_noc.png``,
        ``occ.png`` and ``invalid.png``. Folders within a pair's folder are not looked at.

    Raises
    ------
    FileError
        If there is no pair, or a frame or the flow of one is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hamflow import write_flow, write_image
    >>> from hamflow.datasets import FolderDataset, demo_scene
    >>> scene = demo_scene(32, 48)
    >>> with tempfile.TemporaryDirectory() as root:
    ...     folder = Path(root, "demo", "first")
    ...     folder.mkdir(parents=True)
    ...     write_image(folder / "frame1.png", scene.image0)
    ...     write_image(folder / "frame2.png", scene.image1)
    ...     write_flow(folder / "flow.flo", scene.flow)
    ...     for pair in FolderDataset(root):
    ...         print(pair.name, pair.image0.shape, pair.flow.shape, pair.occluded)
    demo/first (32, 48, 3) (32, 48, 2) None
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        top = Path(root)
        super().__init__(top, map(_pair, search(top, _EXPECTED, _FRAMES)), _EXPECTED)


def _pair(found: Found) -> FlowPair:
    folder, name, entries = found
    for frame in _FRAMES:
        if frame not in entries:
            raise missing_file(folder / frame, f"a pair needs {_NEEDED}.")
    flow = next((flow for flow in _FLOWS if flow in entries), None)
    if flow is None:
        raise FileError(f"{folder}: holds no flow; a pair needs {_NEEDED}.")

    def optional(file: str) -> Path | None:
        return folder / file if file in entries else None

    return FlowPair(
        name=name,
        image0_path=folder / _FRAMES[0],
        image1_path=folder / _FRAMES[1],
        flow_path=folder / flow,
        noc_path=optional("flow_noc.png"),
        occluded_path=optional("occ.png"),
        invalid_path=optional("invalid.png"),
    )
