"""A pair with known flow, reduced and with descriptors, and the errors of a flow on it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._check import as_flow, as_image
from hamflow._scale import downsample
from hamflow._types import Bits
from hamflow.descriptors import pair_bits
from hamflow.errors import InputError
from hamflow.evaluation.runner import Pair
from hamflow.matching._arrays import Describe


@dataclass(frozen=True, eq=False)
class FitCase:
    """A pair at the scale of the fit, as the solver takes it.

    Attributes
    ----------
    name : str
        Name of the pair.
    image : array
        The reduced first frame.
    bits0, bits1 : (H, W) array of uint64
        Descriptors of both reduced frames.
    truth : array
        The true flow at full resolution, cut to a multiple of `scale`.
    scale : int
        The factor by which the frames are reduced: the side of a box of pixels.
    """

    name: str
    image: NDArray[Any]
    bits0: Bits
    bits1: Bits
    truth: NDArray[np.floating[Any]]
    scale: int

    @classmethod
    def of(cls, pair: Pair, scale: int, describe: Describe = pair_bits) -> FitCase:
        """Reduce the frames of a pair by a whole factor and compute their descriptors.

        Raises
        ------
        InputError
            If sizes differ, the frames are smaller than `scale`, or no flow is known.
        """
        first, second = as_image(pair.image0, "image0"), as_image(pair.image1, "image1")
        truth = as_flow(pair.flow)
        if not first.shape[:2] == second.shape[:2] == truth.shape[:2]:
            raise InputError(
                f"The images and the flow of the pair {pair.name!r} must have the same size."
            )
        height, width = (side // scale for side in truth.shape[:2])
        if min(height, width) < 1:
            raise InputError(
                f"scale = {scale} is too large for the pair {pair.name!r}, which has "
                f"{truth.shape[1]}×{truth.shape[0]} pixels."
            )
        truth = truth[: height * scale, : width * scale]
        if not np.isfinite(truth).all(axis=2).any():
            raise InputError(f"The pair {pair.name!r} has no pixel of known flow; omit it.")
        image = downsample(first, scale)
        return cls(
            pair.name, image, describe(image), describe(downsample(second, scale)), truth, scale
        )

    def errors(self, flow: NDArray[np.float32], cap: float) -> tuple[float, float]:
        """Return the mean error of a flow at the scale of the fit, without and with the cap.

        Each pixel of the full resolution has the flow of the box that it is in.
        """
        (height, width), scale = flow.shape[:2], self.scale
        boxes = self.truth.reshape(height, scale, width, scale, 2)
        difference = boxes.astype(np.float64) - scale * flow[:, None, :, None]
        error = np.hypot(difference[..., 0], difference[..., 1])
        error = error[np.isfinite(error)]
        return float(error.mean()), float(np.minimum(error, cap).mean())

    def digest(self) -> str:
        """Return a hash of the data, which differs from that of another pair of the same name."""
        digest = hashlib.blake2b(digest_size=8)
        for array in (self.bits0, self.bits1, self.image, self.truth):
            digest.update(array.tobytes())
        return digest.hexdigest()
