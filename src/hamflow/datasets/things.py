"""FlyingThings3D in its own layout, or its subset in that of the subset.

The full set::

    ROOT/frames_cleanpass/TRAIN/A/0000/left/0006.png ...     also TEST, B, C, right
    ROOT/frames_finalpass/...
    ROOT/optical_flow/TRAIN/A/0000/into_future/left/OpticalFlowIntoFuture_0006_L.pfm ...
                                   into_past/left/OpticalFlowIntoPast_0007_L.pfm ...

The subset that the authors published for learning disparity and flow::

    ROOT/train/image_clean/left/0000000.png ...              also val, image_final, right
    ROOT/train/flow/left/into_future/0000000.flo ...
                         into_past/0000001.flo ...
    ROOT/train/flow_occlusions/left/into_future/0000000.png  optional; not black: occluded
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets._listing import (
    Camera,
    Direction,
    Listing,
    RenderPass,
    Root,
    Split,
    check_choice,
    chosen,
)
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset

_FULL = {"training": "TRAIN", "test": "TEST"}
_SUBSET = {"training": "train", "test": "val"}
_INTO = {"forward": "into_future", "backward": "into_past"}
_FILE = {"forward": "OpticalFlowIntoFuture", "backward": "OpticalFlowIntoPast"}
_EXPECTED = (
    "expected is FlyingThings3D's tree with frames_cleanpass/TRAIN/A/0000/left/0006.png and "
    "optical_flow/TRAIN/A/0000/into_future/left/OpticalFlowIntoFuture_0006_L.pfm and so on, or its "
    "subset's with train/image_clean/left/0000000.png and "
    "train/flow/left/into_future/0000000.flo and so on."
)


@dataclass(frozen=True)
class _SubsetPair(FlowPair):
    def _read_mask(self, path: Path) -> NDArray[np.bool_]:
        return np.asarray(self._read_image(path)[:, :, 0] != 0)


class FlyingThingsDataset(PairDataset):
    """The pairs of consecutive frames of FlyingThings3D, or of its subset.

    Pairs are named after scene, camera, direction and first frame, as in
    ``"A/0000/left/forward/0006"``, or in the subset ``"left/forward/0000000"``. Which pixels are
    occluded is known only in the subset, and only if it has the folder ``flow_occlusions``.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``frames_cleanpass`` and ``optical_flow``, or of the subset, with ``train``
        and ``val``.
    split : "training" or "test"
        ``TRAIN`` or ``TEST``; in the subset, ``train`` or ``val``. The flow is known in both.
    pass_ : "clean" or "final"
        Which pass of the renderer the frames are from.
    camera : "left", "right" or "both"
        Whose frames to take. Each camera has its own flow.
    direction : "forward", "backward" or "both"
        Whether to pair a frame with the next one, with the one before, or with each of them.
    """

    def __init__(
        self,
        root: Root,
        *,
        split: Split = "training",
        pass_: RenderPass = "clean",
        camera: Camera = "left",
        direction: Direction = "forward",
    ) -> None:
        check_choice("split", split, _FULL)
        check_choice("pass_", pass_, ("clean", "final"))
        cameras = chosen("camera", camera, ("left", "right"))
        directions = chosen("direction", direction, tuple(_INTO))
        top = Listing(root, _EXPECTED)
        find = _subset_pairs if top.find(*_SUBSET.values()) else _full_pairs
        views = product(cameras, directions)
        super().__init__(top, (pair for view in views for pair in find(top, split, pass_, *view)))


def _full_pairs(
    top: Listing, split: str, pass_: str, camera: str, direction: str
) -> Iterator[FlowPair]:
    letters = top.folder(f"frames_{pass_}pass", _FULL[split])
    flow = top.folder("optical_flow", _FULL[split])
    for letter in letters.folders():
        for scene in letters.folder(letter).folders():
            frames = letters.folder(letter, scene, camera)
            flows = flow.folder(letter, scene, _INTO[direction], camera)
            pairs = frames.consecutive("", ".png", backward=direction == "backward")
            for number, first, second in pairs:
                yield FlowPair(
                    f"{letter}/{scene}/{camera}/{direction}/{number}",
                    first,
                    second,
                    flows.file(f"{_FILE[direction]}_{number}_{camera[0].upper()}.pfm"),
                )


def _subset_pairs(
    top: Listing, split: str, pass_: str, camera: str, direction: str
) -> Iterator[FlowPair]:
    base = top.folder(_SUBSET[split])
    frames = base.folder(f"image_{pass_}", camera)
    flows = base.folder("flow", camera, _INTO[direction])
    occlusions = base.folder("flow_occlusions", camera, _INTO[direction], optional=True)
    for match in flows.matches(r"(\d{7})\.flo"):
        # The subset has no folders of scenes: only the flows tell which frames belong together.
        number = match[1]
        second = frames.find(f"{int(number) + (1 if direction == 'forward' else -1):07}.png")
        if second is None:  # the last frame of a scene in the full set has a flow, too
            continue
        yield _SubsetPair(
            f"{camera}/{direction}/{number}",
            frames.file(f"{number}.png"),
            second,
            flows.file(match[0]),
            occluded_path=occlusions.find(f"{number}.png"),
        )
