"""Spring in its own layout.

::

    ROOT/train/0001/frame_left/frame_left_0001.png ...          also frame_right
    ROOT/train/0001/flow_FW_left/flow_FW_left_0001.flo5 ...     also right
    ROOT/train/0001/flow_BW_left/flow_BW_left_0002.flo5 ...
    ROOT/train/0001/maps/matchmap_flow_FW_left/matchmap_flow_FW_left_0001.png    optional
    ROOT/test/...                                               without flow

Flows are stored with twice the width and height of the frames, 3840 × 2160 for 1920 × 1080, but
their vectors are in pixels of the frames (https://spring-benchmark.org/faq). Spring's own loader
takes every second value in both directions without dividing it; so does `SpringPair.flow`. Its
benchmark compares an estimate with all four values of a pixel and counts the smallest of the four
errors; `SpringPair.nearest_flow` gives the true flow for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_flow
from hamflow.datasets._listing import Camera, Direction, Listing, Root, Split, check_choice, chosen
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset
from hamflow.errors import FileError, InputError
from hamflow.io import read_flow

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
        """Read the true flow as it is stored: (2H, 2W, 2), in pixels of the frames."""
        return self._read_double(self._known_path())

    def nearest_flow(self, estimate: ArrayLike) -> NDArray[np.float32]:
        """Return the true flow that Spring's benchmark would compare an estimate with.

        Parameters
        ----------
        estimate : (H, W, 2) array_like
            A flow between the frames.

        Returns
        -------
        flow : (H, W, 2) float32
            Of the four true values of a pixel, the one that is nearest to the estimate; NaN if any
            of the four is unknown.
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
        # Where an error is NaN, argmin chooses it.
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
        return np.asarray((self._read_image(path)[:, :, :2] != 0).any(axis=2))


class SpringDataset(PairDataset):
    """The pairs of consecutive frames of Spring.

    Pairs are named after scene, camera, direction and first frame, as in
    ``"0001/left/forward/0001"``. Occluded are the unmatched pixels of ``matchmap_flow``, where it
    exists: those that are hidden in the other frame or outside of it.

    Parameters
    ----------
    root : str or os.PathLike
        The folder with ``train`` and ``test``.
    split : "training" or "test"
        Test pairs have no flow.
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
        camera: Camera = "left",
        direction: Direction = "forward",
    ) -> None:
        check_choice("split", split, _FOLDERS)
        cameras = chosen("camera", camera, ("left", "right"))
        directions = chosen("direction", direction, tuple(_CODES))
        top = Listing(root, _EXPECTED).folder(_FOLDERS[split])
        pairs = (
            pair
            for scene, *view in product(top.folders(), cameras, directions)
            for pair in _pairs(top.folder(scene), scene, *view, known=split == "training")
        )
        super().__init__(top, pairs)


def _pairs(
    top: Listing, scene: str, camera: str, direction: str, *, known: bool
) -> Iterator[FlowPair]:
    code = f"{_CODES[direction]}_{camera}"
    frames = top.folder(f"frame_{camera}")
    flows = top.folder(f"flow_{code}", optional=not known)
    matched = top.folder("maps", f"matchmap_flow_{code}", optional=True)
    pairs = frames.consecutive(f"frame_{camera}_", ".png", backward=direction == "backward")
    for number, first, second in pairs:
        yield SpringPair(
            f"{scene}/{camera}/{direction}/{number}",
            first,
            second,
            flow_path=flows.file(f"flow_{code}_{number}.flo5") if known else None,
            occluded_path=matched.find(f"matchmap_flow_{code}_{number}.png"),
        )
