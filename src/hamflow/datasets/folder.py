"""Image pairs with known flow in a tree of folders, one folder for each pair.

::

    ROOT/<group>/<pair>/frame1.png
                        frame2.png
                        flow.flo        or, in KITTI's encoding, flow.kitti.png or flow.png
                        flow_noc.png    optional: the flow of only the visible pixels, as in KITTI;
                                        or flow_noc.kitti.png
                        occ.png         optional, white: occluded
                        invalid.png     optional, white: not to be evaluated
"""

from __future__ import annotations

from hamflow.datasets._listing import Listing, Root
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset
from hamflow.errors import FileError

_FRAMES = ("frame1.png", "frame2.png")
# In this order: where there is a flow.flo, a flow.png may be a picture of it.
_FLOWS = ("flow.flo", "flow.kitti.png", "flow.png")
_EXPECTED = (
    "expected is a tree <group>/<pair>/ with these files for each pair: frame1.png, frame2.png, "
    "and flow.flo or (in KITTI's encoding) flow.kitti.png or flow.png."
)


class FolderDataset(PairDataset):
    """The pairs in all folders below a root that hold ``frame1.png`` and ``frame2.png``.

    The names of the pairs are their paths below the root, with ``/``.

    Parameters
    ----------
    root : str or os.PathLike
        The folder of one pair, or a folder of such folders, at any depth. A pair has the files
        ``frame1.png``, ``frame2.png`` and ``flow.flo`` (or else ``flow.kitti.png`` or
        ``flow.png``), and may have ``flow_noc.png``, ``occ.png`` and ``invalid.png``. Folders
        inside of a pair's folder are ignored.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hamflow import write_flow, write_image
    >>> from hamflow.datasets import demo_scene, open_dataset
    >>> scene = demo_scene(32, 48)
    >>> with tempfile.TemporaryDirectory() as root:
    ...     folder = Path(root, "demo", "first")
    ...     folder.mkdir(parents=True)
    ...     write_image(folder / "frame1.png", scene.image0)
    ...     write_image(folder / "frame2.png", scene.image1)
    ...     write_flow(folder / "flow.flo", scene.flow)
    ...     for pair in open_dataset("folder", root):
    ...         print(pair.name, pair.image0.shape, pair.flow.shape, pair.occluded)
    demo/first (32, 48, 3) (32, 48, 2) None
    """

    def __init__(self, root: Root) -> None:
        top = Listing(root, _EXPECTED)
        super().__init__(top, (_pair(*found) for found in top.search(_FRAMES)))


def _pair(name: str, folder: Listing) -> FlowPair:
    first, second = map(folder.file, _FRAMES)
    flow = folder.find(*_FLOWS)
    if flow is None:
        raise FileError(f"{folder.path}: holds no flow; {_EXPECTED}")
    visible = folder.find("flow_noc.kitti.png", "flow_noc.png")
    return FlowPair(
        name, first, second, flow, visible, folder.find("occ.png"), folder.find("invalid.png")
    )
