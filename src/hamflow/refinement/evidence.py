"""Evidence: what is known about the error of a flow, and whether a pixel is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._types import Bits, Field, Flow, FrameLike, Image, Mask
from hamflow.refinement._edges import box_mean
from hamflow.refinement.consistency import disagreement

OWN = (
    "disagreement",
    "outside",
    "length",
    "color",
    "gradient",
    "slope",
    "slope there",
    "variation",
    "brightness",
    "arrivals",
)
"""What is known of a pixel by itself; see `native/assessment.inl`."""
SURROUNDINGS = (
    "texture",
    "texture there",
    "texture around",
    "contrast",
    "trusted",
    "trusted around",
    "decided",
    "bits",
    "trusted there",
    "disagreement around",
    "variation around",
)
"""What is known of its surroundings; see `surroundings`."""
NAMES = (*OWN, *SURROUNDINGS, "scale")
"""All evidence, in the order of the network's inputs."""

_LEAST_TEXTURE = 1e-6  # of the squared gradients; their noise is about as large
_NEAR, _AROUND, _TENSOR, _WIDE_TENSOR = 3, 9, 5, 25  # sides of squares over which means are taken
_MOST = 20.0  # pixels: larger disagreements of matches all count as this one


class Matched(Protocol):
    """What is to be known of the matches of one direction; `DirectedMatches` is one."""

    @property
    def trusted(self) -> Mask:
        """Where they passed the forward-backward check."""

    @property
    def completed(self) -> Flow:
        """The flow after the completion, in pixels of the matching scale."""

    @property
    def decided(self) -> Field:
        """From 0, where another displacement is as good, to 1, where it would be clearly worse."""


def surroundings(
    frames: tuple[FrameLike, FrameLike],
    bits: tuple[Bits, Bits],
    matched: Sequence[Matched],
    scale: int,
) -> NDArray[np.float32]:
    """Return what is known at the matching scale, where it costs little.

    Every quantity is a mean over a small square, so that none shows the cells of the completion.

    Parameters
    ----------
    frames : (FrameLike, FrameLike)
        The two images.
    bits : (Bits, Bits)
        Their descriptors at the matching scale.
    matched : sequence of Matched
        Forward and backward.
    scale : int
        The matching scale.

    Returns
    -------
    (H, W, 11) array of float32
        In the order of `SURROUNDINGS`. The texture is the logarithm of the smaller eigenvalue of
        the structure tensor, which is small where the motion is not to be seen in some direction:
        here, where the match leads, and in a square of 25 pixels; the contrast is that of the sum
        of both eigenvalues. Then follow the shares of trusted matches in 3×3 and 9×9 pixels, how
        clearly matches were decided, the share of different bits, whether the match back is
        trusted, and the logarithms of forward-backward disagreement and of the differences between
        neighbors.
    """
    forward, backward = matched
    flow = np.ascontiguousarray(forward.completed, np.float32)
    textures = [_texture_of(frame, scale) for frame in frames]
    there = np.empty((*flow.shape[:2], 3), np.float32)
    second = np.ascontiguousarray(textures[1][..., 0])
    _native.look_at_targets(flow, bits[0], bits[1], second, backward.trusted.view(np.uint8), there)
    trusted = forward.trusted.astype(np.float32)
    near = box_mean(np.stack([trusted, there[..., 0], there[..., 1]], axis=2), _NEAR)
    apart = np.minimum(disagreement(flow, backward.completed) * np.float32(scale), _MOST)
    around = box_mean(
        np.stack([trusted, forward.decided, apart, variation(flow) * np.float32(scale)], axis=2),
        _AROUND,
    )
    wide = textures[0][..., 2]
    planes = [
        _log(textures[0][..., 0], _LEAST_TEXTURE),
        _log(there[..., 2], _LEAST_TEXTURE),
        _log(wide, _LEAST_TEXTURE),
        _log(textures[0][..., 1], _LEAST_TEXTURE),
        near[..., 0],
        around[..., 0],
        # Between plain frames, matches in a corner look decided: few displacements stay inside.
        around[..., 1] * (wide / (wide + np.float32(_LEAST_TEXTURE))),
        near[..., 1],
        near[..., 2],
        _log(around[..., 2], 0.05),
        _log(around[..., 3], 0.02),
    ]
    return np.stack(planes, axis=2)


def variation(flow: Flow) -> Field:
    """Return the largest difference of a component to the right and lower neighbors."""
    most = np.zeros(flow.shape[:2], np.float32)
    for part in np.moveaxis(flow, 2, 0):  # numpy is slow along an axis of two
        plane = np.ascontiguousarray(part)
        right, down = np.abs(plane[:, 1:] - plane[:, :-1]), np.abs(plane[1:] - plane[:-1])
        np.maximum(most[:, :-1], right, out=most[:, :-1])
        np.maximum(most[:-1], down, out=most[:-1])
    return most


def texture(image: Image) -> Image:
    """Return how much texture there is, (H, W, 3).

    The smaller eigenvalue of the structure tensor, the sum of both eigenvalues, and the smaller
    eigenvalue of the tensor of a large square.
    """
    padded = np.pad(mean_of_channels(image), 1, mode="edge")
    right = (padded[1:-1, 2:] - padded[1:-1, :-2]) * np.float32(0.5)
    down = (padded[2:, 1:-1] - padded[:-2, 1:-1]) * np.float32(0.5)
    tensor = np.stack([right * right, right * down, down * down], axis=2)
    smaller, both = _eigenvalues(box_mean(tensor, _TENSOR))
    return np.stack([smaller, both, _eigenvalues(box_mean(tensor, _WIDE_TENSOR))[0]], axis=2)


def mean_of_channels(image: Image) -> Field:
    """Return ``image.mean(axis=2)``, which takes numpy several times as long."""
    return (image[..., 0] + image[..., 1] + image[..., 2]) / np.float32(3)


def _eigenvalues(tensor: Image) -> tuple[Field, Field]:
    """Return the smaller eigenvalue of symmetric matrices, and the sum of both."""
    a, b, c = np.moveaxis(tensor, 2, 0)
    both = a + c
    smaller = (both - np.sqrt((a - c) ** 2 + 4 * b * b)) * np.float32(0.5)
    return np.maximum(smaller, 0), both


def _texture_of(frame: FrameLike, scale: int) -> Image:
    """Return the texture of a frame at a scale; it is computed once per frame."""
    return frame.kept(("texture", scale), lambda: texture(frame.at(scale)))


def _log(values: Field, least: float) -> Field:
    logarithm: Field = np.log(values + np.float32(least))
    return logarithm
