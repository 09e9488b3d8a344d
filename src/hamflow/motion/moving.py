"""What moves by itself, and not because the camera does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from hamflow._types import Field, Flow, Mask
from hamflow.errors import InputError
from hamflow.motion._filters import box_mean
from hamflow.motion._sampling import expected_error
from hamflow.motion.camera import Camera, fit_camera, samples_of
from hamflow.refinement.consistency import disagreement, occluded
from hamflow.result import FlowResult
from hamflow.sequence import VideoItem

LEAST = 1.0
"""Pixels: a motion that is off the camera's by less may be noise."""
_TIMES = 2.0  # a deviation must be this many times the error that is to be expected
_SQUARE = 2  # half of the square whose majority decides


class Moving(NamedTuple):
    """What moves by itself in a frame.

    Attributes
    ----------
    mask : (H, W) array of bool
        True where the pixel moves otherwise than the camera makes it.
    deviation : (H, W) array of float32
        By how many pixels, in relation to what can be noise: above 1 is motion.
    camera : Camera
        The motion of the camera to the next frame.
    """

    mask: Mask
    deviation: Field
    camera: Camera


def moving_mask(
    result: FlowResult, *, least: float = LEAST, previous: FlowResult | None = None
) -> Moving:
    """Return what moves by itself in the first of two frames.

    A homography and a fundamental matrix are fitted robustly to the flow, without occluded and
    doubtful pixels; the one that explains it better is the motion of the camera. A pixel moves by
    itself if its flow is off that motion by more than `least` pixels and by more than twice the
    error that the confidence lets expect. Before a camera that moves through the scene, motion
    along the line that the camera's own motion would take a pixel is not noticed.

    Parameters
    ----------
    result : FlowResult
        The flow from the frame to the next.
    least : float
        Smaller deviations may be noise, in pixels.
    previous : FlowResult, optional
        The flow from the frame before to this one. With it, pixels that are hidden in the next
        frame are judged by where they were in the frame before.

    Returns
    -------
    Moving

    Examples
    --------
    >>> import numpy as np, hamflow
    >>> rng = np.random.default_rng(0)
    >>> first = rng.integers(0, 256, (64, 96, 3), np.uint8)
    >>> second = np.roll(first, 3, axis=1)  # the camera
    >>> second[24:44, 40:60] = first[20:40, 40:60]  # a thing
    >>> moving = hamflow.moving_mask(hamflow.estimate(first, second, "fast"))
    >>> bool(moving.mask[30, 50]), bool(moving.mask[8, 20])
    (True, False)
    """
    check_least(least)
    before = result if previous is None else previous
    for name, given in (("result", result), ("previous", before)):
        if not isinstance(given, FlowResult | VideoItem):  # which has the same attributes
            raise InputError(
                f"{name} must be a FlowResult, which also tells what is hidden and doubtful, not "
                f"{type(given).__name__}; pass all that hamflow.estimate returns."
            )
    return _judged(result, least, None if previous is None else (previous, camera_of(previous)))


def moving_masks(items: Iterable[VideoItem], *, least: float = LEAST) -> Iterator[Moving]:
    """Yield what moves by itself in each frame of a video but the last; see `moving_mask`.

    Before a cut, only where a frame came from says what moves in it; in a frame between two cuts,
    nothing does.
    """
    before: tuple[FlowResult, Camera] | None = None
    for item in items:
        found = _judged(item.result, least, before)
        before = None if item.cut else (item.result, found.camera)
        yield found


def check_least(least: float) -> None:
    """Raise the InputError that `moving_mask` would."""
    if not 0 < least < np.inf:
        raise InputError(f"least must be a positive number of pixels, not {least}.")


def camera_of(result: FlowResult) -> Camera:
    """Return the motion of the camera between two frames."""
    return fit_camera(samples_of(result))


def _judged(result: FlowResult, least: float, before: tuple[FlowResult, Camera] | None) -> Moving:
    camera = camera_of(result)
    off = _off(result.flow, camera, expected_error(result.confidence), least)
    if before is not None and result.occlusion is not None:
        previous, way = before
        if previous.backward is not None:
            apart = disagreement(previous.backward, previous.flow)
            back = _off(previous.backward, way.reversed, apart, least)
            unseen = occluded(previous.backward, previous.flow)
            off = np.where(result.occlusion & ~unseen, back, off)
    return Moving(box_mean(off > 1, _SQUARE) > 0.5, off, camera)


def _off(flow: Flow, camera: Camera, error: Field | None, least: float) -> Field:
    """Return how far each pixel is off the motion of the camera, relative to what may be noise."""
    height, width = flow.shape[:2]
    here = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).astype(np.float64)
    deviation = camera.deviation(here, here + flow)
    limit = least if error is None else np.maximum(least, _TIMES * error)
    return np.asarray(deviation / limit, np.float32)
