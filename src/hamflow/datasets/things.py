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
    ROOT/train/flow_occlusions/left/into_future/0000000.png  optional, not black: occluded
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets._listing import CAMERAS, DIRECTIONS, Listing, check_choice, chosen
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset
from hamflow.io import read_image

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
        image = read_image(path)
        self._check_size(path, image)
        return np.asarray(image[:, :, 0] != 0)


class FlyingThingsDataset(PairDataset):
    """The pairs of consecutive frames of FlyingThings3D, or of its subset.

    Pairs are called by scene, camera, direction and first frame, as in
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
        Whose frames, each with its own flow.
    direction : "forward", "backward" or "both"
        Whether to pair a frame with the next one, with the one before, or with each.

    Raises
    ------
    FileError
        If a frame or a flow is missing. (In the subset, flows are missing on purpose.)
    InputError
        If an option has another value.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        split: Literal["training", "test"] = "training",
        pass_: Literal["clean", "final"] = "clean",
        camera: Literal["left", "right", "both"] = "left",
        direction: Literal["forward", "backward", "both"] = "forward",
    ) -> None:
        check_choice("split", split, _FULL)
        check_choice("pass_", pass_, ("clean", "final"))
        cameras = chosen("camera", camera, CAMERAS)
        directions = chosen("direction", direction, DIRECTIONS)
        top = Listing(Path(root), _EXPECTED)
        is_subset = any(top.find(name) is not None for name in _SUBSET.values())
        find = _subset_pairs if is_subset else _full_pairs
        views = product(cameras, directions)
        pairs = (pair for view in views for pair in find(top, split, pass_, view))
        super().__init__(top.path, pairs, _EXPECTED)


def _full_pairs(top: Listing, split: str, pass_: str, view: tuple[str, str]) -> Iterator[FlowPair]:
    camera, direction = view
    frames = top.folder(f"frames_{pass_}pass", _FULL[split])
    flow = top.folder("optical_flow", _FULL[split])
    for letter in frames.folders():
        for scene in frames.folder(letter).folders():
            images = frames.folder(letter, scene, camera)
            flows = flow.folder(letter, scene, _INTO[direction], camera)
            for numbers in pairwise(images.sequence("", ".png")):
                first, second = numbers if direction == "forward" else numbers[::-1]
                yield FlowPair(
                    f"{letter}/{scene}/{camera}/{direction}/{first:04}",
                    images.file(f"{first:04}.png"),
                    images.file(f"{second:04}.png"),
                    flows.file(f"{_FILE[direction]}_{first:04}_{camera[0].upper()}.pfm"),
                )


def _subset_pairs(
    top: Listing, split: str, pass_: str, view: tuple[str, str]
) -> Iterator[FlowPair]:
    camera, direction = view
    base = top.folder(_SUBSET[split])
    images = base.folder(f"image_{pass_}", camera)
    flows = base.folder("flow", camera, _INTO[direction])
    occlusions = base.find_folder("flow_occlusions", camera, _INTO[direction])
    for match in flows.matches(r"(\d{7})\.flo"):
        # Which frames follow each other can be seen only by the flows: scenes have no folders.
        first = int(match[1])
        second = images.find(f"{first + (1 if direction == 'forward' else -1):07}.png")
        if second is None:  # as after the last frame of a scene of the full set, which has a flow
            continue
        yield _SubsetPair(
            f"{camera}/{direction}/{first:07}",
            images.file(f"{first:07}.png"),
            second,
            flows.file(match[0]),
            occluded_path=None if occlusions is None else occlusions.find(f"{first:07}.png"),
        )
