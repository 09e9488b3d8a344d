"""MPI-Sintel in its own layout.

::

    ROOT/training/clean/SCENE/frame_0001.png         without effects
                              frame_0002.png ...
    ROOT/training/final/SCENE/...                    the same with blur, fog and depth of field
    ROOT/training/flow/SCENE/frame_0001.flo
    ROOT/training/occlusions/SCENE/frame_0001.png    optional, white: hidden in the next frame
    ROOT/training/invalid/SCENE/frame_0001.png       optional, white: not to be evaluated
    ROOT/test/{clean,final}/SCENE/frame_0001.png     without truth

`hamflow.datasets.synthetic.write_sintel` writes this layout, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal

from hamflow.datasets._listing import Listing, check_choice
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset

_EXPECTED = (
    "expected is MPI-Sintel's tree with the frames <training or test>/<clean or final>/<scene>/"
    "frame_0001.png and so on and the flows training/flow/<scene>/frame_0001.flo and so on."
)


class SintelDataset(PairDataset):
    """The pairs of consecutive frames of MPI-Sintel.

    Pairs are called by scene and first frame, as in ``"alley_1/frame_0001"``, whatever the pass.
    There are 1041 in the training split and 552 in the test split.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``training`` and ``test``.
    split : "training" or "test"
        Test pairs have no flow.
    pass_ : "clean" or "final"
        Which pass of the renderer the frames are from.

    Raises
    ------
    FileError
        If a frame or a flow is missing.
    InputError
        If an option has another value.

    Examples
    --------
    The shares of the paper: 20 % of the training images to learn from, and 40 % to evaluate on,
    here none of the same:

    >>> import tempfile
    >>> from hamflow.datasets import SintelDataset, SyntheticConfig
    >>> from hamflow.datasets.synthetic import write_sintel
    >>> with tempfile.TemporaryDirectory() as root:
    ...     report = write_sintel(root, SyntheticConfig(height=32, width=48), 5)
    ...     data = SintelDataset(root, pass_="final")
    ...     learned = data.evenly(0.2)
    ...     evaluated = data.evenly(0.4, disjoint_from=learned)
    ...     print(learned.groups, evaluated.groups)
    ('scene_00002',) ('scene_00001', 'scene_00004')
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        split: Literal["training", "test"] = "training",
        pass_: Literal["clean", "final"] = "clean",
    ) -> None:
        check_choice("split", split, ("training", "test"))
        check_choice("pass_", pass_, ("clean", "final"))
        top = Listing(Path(root), _EXPECTED).folder(split)
        super().__init__(top.path, _pairs(top, pass_, split == "training"), _EXPECTED)


def _pairs(top: Listing, pass_: str, known: bool) -> Iterator[FlowPair]:
    frames = top.folder(pass_)
    flow = top.folder("flow") if known else None
    for scene in frames.folders():
        images = frames.folder(scene)
        flows = None if flow is None else flow.folder(scene)
        occlusions = top.find_folder("occlusions", scene)
        invalid = top.find_folder("invalid", scene)
        for first, second in pairwise(images.sequence("frame_", ".png")):
            stem = f"frame_{first:04}"
            yield FlowPair(
                f"{scene}/{stem}",
                images.file(f"{stem}.png"),
                images.file(f"frame_{second:04}.png"),
                flow_path=None if flows is None else flows.file(f"{stem}.flo"),
                occluded_path=None if occlusions is None else occlusions.find(f"{stem}.png"),
                invalid_path=None if invalid is None else invalid.find(f"{stem}.png"),
            )
