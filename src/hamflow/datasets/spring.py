"""Spring in its own layout.

::

    ROOT/train/0001/frame_left/frame_left_0001.png ...          also frame_right
    ROOT/train/0001/flow_FW_left/flow_FW_left_0001.flo5 ...     also right
    ROOT/train/0001/flow_BW_left/flow_BW_left_0002.flo5 ...
    ROOT/train/0001/maps/matchmap_flow_FW_left/matchmap_flow_FW_left_0001.png    optional
    ROOT/test/...                                               without truth

Flows are stored with twice the width and height of the frames, 3840 × 2160 for 1920 × 1080, but
their vectors are in pixels of the frames (https://spring-benchmark.org/faq). Spring's own loader
takes every second value in both directions, and does not divide; so does `SpringPair.flow`. Its
benchmark compares an estimate with all four values of a pixel and counts the smallest of the four
errors; `SpringPair.nearest_flow` gives the truth for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_flow
from hamflow.datasets._listing import CAMERAS, DIRECTIONS, Listing, check_choice, chosen
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset
from hamflow.errors import FileError, InputError
from hamflow.io import read_flow, read_image

_FOLDERS = {"training": "train", "test": "test"}
_CODES = {"forward": "FW", "backward": "BW"}
_EXPECTED = (
    "expected is Spring's tree with the frames <train or test>/0001/frame_left/frame_left_0001.png "
    "and so on and the flows train/0001/flow_FW_left/flow_FW_left_0001.flo5 and so on."
)


@dataclass(frozen=True)
class SpringPair(FlowPair):
    """A pair whose flow is stored with twice the width and height of the frames.

    `flow` has the size of the frames: every second value in both directions, as in Spring's own
    loader.
    """

    def double_flow(self) -> NDArray[np.float32]:
        """Read the true flow as it is stored: (2H, 2W, 2), in pixels of the frames.

        Raises
        ------
        FileError
            If it is not known, damaged, or of another size.
        """
        if self.flow_path is None:
            raise self._unknown_flow()
        return self._read_double(self.flow_path)

    def nearest_flow(self, estimate: ArrayLike) -> NDArray[np.float32]:
        """Return the true flow that Spring's benchmark would compare an estimate with.

        Parameters
        ----------
        estimate : (H, W, 2) array_like
            A flow between the frames.

        Returns
        -------
        flow : (H, W, 2) float32
            That of the four true values of a pixel which is nearest to the estimate; NaN if one of
            the four is unknown.

        Raises
        ------
        FileError
            As in `double_flow`.
        InputError
            If the estimate is of another size.
        """
        double = self.double_flow()
        height, width = double.shape[0] // 2, double.shape[1] // 2
        vectors = as_flow(estimate, "estimate")
        if vectors.shape != (height, width, 2):
            raise InputError(
                f"estimate must have the shape {(height, width, 2)} of the frames, not "
                f"{vectors.shape}."
            )
        four = double.reshape(height, 2, width, 2, 2).transpose(0, 2, 1, 3, 4)
        four = four.reshape(height, width, 4, 2)
        offsets = four.astype(np.float64) - vectors[:, :, None]
        error = np.hypot(offsets[..., 0], offsets[..., 1])
        # Where the error is NaN, argmin takes just that one.
        nearest = np.argmin(error, axis=2)[:, :, None, None]
        return np.ascontiguousarray(np.take_along_axis(four, nearest, axis=2)[:, :, 0])

    def _read_flow(self, path: Path) -> NDArray[np.float32]:
        return np.ascontiguousarray(self._read_double(path)[::2, ::2])

    def _read_double(self, path: Path) -> NDArray[np.float32]:
        flow = read_flow(path)
        (height, width), (rows, columns) = self.image0.shape[:2], flow.shape[:2]
        if (rows, columns) != (2 * height, 2 * width):
            raise FileError(
                f"{path}: has {columns} × {rows} pixels, but should have {2 * width} × "
                f"{2 * height}, twice as many in both directions as {self.image0_path.name}; get "
                "both again."
            )
        return flow

    def _read_mask(self, path: Path) -> NDArray[np.bool_]:
        # The benchmark counts a pixel as unmatched if it is red or green or both.
        image = read_image(path)
        self._check_size(path, image)
        return np.asarray((image[:, :, :2] != 0).any(axis=2))


class SpringDataset(PairDataset):
    """The pairs of consecutive frames of Spring.

    Pairs are called by scene, camera, direction and first frame, as in
    ``"0001/left/forward/0001"``. Occluded are the unmatched pixels of ``matchmap_flow``, if it is
    there: those that are hidden in the other frame or outside of it.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``train`` and ``test``.
    split : "training" or "test"
        Test pairs have no flow.
    camera : "left", "right" or "both"
        Whose frames, each with its own flow.
    direction : "forward", "backward" or "both"
        Whether to pair a frame with the next one, with the one before, or with each.

    Raises
    ------
    FileError
        If a frame or a flow is missing. To read flows, the extra ``flo5`` is needed.
    InputError
        If an option has another value.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        split: Literal["training", "test"] = "training",
        camera: Literal["left", "right", "both"] = "left",
        direction: Literal["forward", "backward", "both"] = "forward",
    ) -> None:
        check_choice("split", split, _FOLDERS)
        cameras = chosen("camera", camera, CAMERAS)
        directions = chosen("direction", direction, DIRECTIONS)
        top = Listing(Path(root), _EXPECTED).folder(_FOLDERS[split])
        pairs = (
            pair
            for scene in top.folders()
            for view in product(cameras, directions)
            for pair in _pairs(top.folder(scene), scene, view, split == "training")
        )
        super().__init__(top.path, pairs, _EXPECTED)


def _pairs(top: Listing, scene: str, view: tuple[str, str], known: bool) -> Iterator[FlowPair]:
    camera, direction = view
    code = f"{_CODES[direction]}_{camera}"
    images = top.folder(f"frame_{camera}")
    flows = top.folder(f"flow_{code}") if known else None
    matched = top.find_folder("maps", f"matchmap_flow_{code}")
    for numbers in pairwise(images.sequence(f"frame_{camera}_", ".png")):
        first, second = numbers if direction == "forward" else numbers[::-1]
        map_name = f"matchmap_flow_{code}_{first:04}.png"
        yield SpringPair(
            f"{scene}/{camera}/{direction}/{first:04}",
            images.file(f"frame_{camera}_{first:04}.png"),
            images.file(f"frame_{camera}_{second:04}.png"),
            flow_path=None if flows is None else flows.file(f"flow_{code}_{first:04}.flo5"),
            occluded_path=None if matched is None else matched.find(map_name),
        )
