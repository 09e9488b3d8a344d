"""Steady pictures from a shaking camera."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PIL import Image

from hamflow._check import to_rgb
from hamflow._types import ImageLike, Pixels
from hamflow.errors import InputError
from hamflow.estimator import Estimator
from hamflow.io.images import as_colors
from hamflow.io.video import Frames, is_source, open_frames
from hamflow.motion.camera import Matrix, apply, fit_homography, fit_similarity, samples_of
from hamflow.result import FlowResult
from hamflow.sequence import Method, Source, VideoItem, video

STRENGTH = 12.0
"""Frames: standard deviation of the Gaussian window that smooths the camera's path."""
Motion = Literal["homography", "similarity"]
"""What the motion of a camera may be."""
_LEAST_KEPT = 0.8  # share of the width and height that is kept if the crop is chosen
_LEAST_CROP = 0.1
_MOST_STRENGTH = 1000
_HALVINGS = 20
_REACH = 3.0  # the window ends at so many standard deviations


class Stabilization(NamedTuple):
    """What makes a video steady.

    Attributes
    ----------
    matrices : (F, 3, 3) array
        For each frame the homography from its pixels to the pixels of the steady picture, which has
        the same size.
    kept : float
        The share of the width and height that is shown, enlarged to the whole picture.
    """

    matrices: NDArray[np.float64]
    kept: float


def stabilize(
    source: Source,
    preset: Method = "balanced",
    *,
    strength: float = STRENGTH,
    crop: float | None = None,
    motion: Motion = "homography",
) -> Iterator[NDArray[np.uint8]]:
    """Yield the frames of a video without the shaking of the camera.

    The motion of the camera is fitted to the flow, without what is occluded or doubtful, and what
    moves by itself counts little. Its path is smoothed over time, and each frame is warped to the
    smooth path. The frames are read twice. After a cut, the path starts anew.

    Parameters
    ----------
    source : path, Frames or sequence of images
        The frames; not a stream, which can be read only once.
    preset : str, path, EstimatorConfig or Estimator
        As for `hamflow.estimate`, or an estimator of your own.
    strength : float
        Over how many frames the path is smoothed: the standard deviation of a Gaussian window.
    crop : float, optional
        The share of the width and height that is shown, enlarged to the size of the frames, to hide
        the black borders of warped frames; 1 shows all, with borders. Frames that would show
        borders are warped less. By default as much as all frames can show, but at least 0.8.
    motion : str
        ``"homography"``, or ``"similarity"``: shift, rotation and zoom alone, which bends nothing.

    Yields
    ------
    frame : (H, W, 3) uint8
        RGB.

    Examples
    --------
    >>> import numpy as np, hamflow
    >>> image = np.random.default_rng(0).integers(0, 256, (64, 96, 3), np.uint8)
    >>> shaken = [np.roll(image, shift, axis=1) for shift in (0, 3, -2, 1, 0)]
    >>> steady = list(hamflow.stabilize(shaken, "fast"))
    >>> len(steady), steady[0].shape
    (5, (64, 96, 3))
    """
    check_smoothing(strength, crop)
    estimator = preset if isinstance(preset, Estimator) else Estimator(preset)
    again = _opened(source)
    path = camera_path(video(again, estimator), motion)
    plan = smoothed(path, strength=strength, crop=crop)
    return steady(_pixels(again), plan)


class CameraPath(NamedTuple):
    """How the camera moves through a video.

    Attributes
    ----------
    motions : list of (3, 3) array or None
        For each two frames the homography from the first to the second; None at a cut.
    shape : (int, int)
        Height and width of the frames.
    """

    motions: list[Matrix | None]
    shape: tuple[int, int]


def camera_path(items: Iterable[VideoItem], motion: Motion = "homography") -> CameraPath:
    """Return the motion of the camera through a video.

    Parameters
    ----------
    items : iterable of VideoItem
        What `hamflow.video` yields.
    motion : str
        ``"homography"`` or ``"similarity"``.
    """
    if motion not in ("homography", "similarity"):
        raise InputError(f"motion must be 'homography' or 'similarity', not {motion!r}.")
    motions: list[Matrix | None] = []
    shape = (0, 0)
    for item in items:
        height, width = item.frame.shape[:2]
        shape = (height, width)
        motions.append(None if item.cut else _motion(item.result, motion))
    return CameraPath(motions, shape)


def _motion(result: FlowResult, motion: Motion) -> Matrix:
    samples = samples_of(result)
    return (fit_homography if motion == "homography" else fit_similarity)(samples)


def smoothed(
    path: CameraPath, *, strength: float = STRENGTH, crop: float | None = None
) -> Stabilization:
    """Return how to warp the frames of a video so that the path of its camera becomes smooth.

    A pixel goes to the mean of the places that it has in the frames around, in a Gaussian window;
    so steady motion stays, and shaking goes (Matsushita et al.: Full-frame video stabilization with
    motion inpainting. PAMI 28, 2006). Near the ends of a shot, where a mean would lag behind, it is
    a line through these places.

    Parameters
    ----------
    path : CameraPath
        The motion of the camera.
    strength, crop
        As for `stabilize`.
    """
    check_smoothing(strength, crop)
    cuts = [k for k, motion in enumerate(path.motions, 1) if motion is None]
    edges = [0, *cuts, len(path.motions) + 1]
    warps = np.concatenate(
        [
            _smoothed_shot([m for m in path.motions[first : last - 1] if m is not None], strength)
            for first, last in pairwise(edges)
        ]
    )
    if crop == 1:
        return Stabilization(warps, 1.0)
    kept = crop
    if kept is None:
        kept = max(_LEAST_KEPT, min(_shown(warp, path.shape) for warp in warps))
    shares = _calm(np.array([_possible(warp, path.shape, kept) for warp in warps]), strength)
    held = np.eye(3) + shares[:, None, None] * (warps - np.eye(3))
    return Stabilization(_zoom(path.shape, kept) @ held, kept)


def check_smoothing(strength: float, crop: float | None) -> None:
    """Raise the InputError that `smoothed` would."""
    if not 0 < strength <= _MOST_STRENGTH:
        raise InputError(
            f"strength must be above 0 and at most {_MOST_STRENGTH} frames, not {strength}."
        )
    if crop is not None and not _LEAST_CROP <= crop <= 1:
        raise InputError(f"crop must be a share from {_LEAST_CROP} to 1, not {crop}.")


def steady(frames: Iterable[Pixels], plan: Stabilization) -> Iterator[NDArray[np.uint8]]:
    """Warp the frames of a video as planned; they are given as 8 bits in RGB."""
    for frame, matrix in zip(frames, plan.matrices, strict=False):
        pixels = to_rgb(frame)
        height, width = pixels.shape[:2]
        # Pillow counts from the corners of pixels, and asks where a pixel of the result comes from.
        corner = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
        back = corner @ np.linalg.inv(matrix) @ np.linalg.inv(corner)
        data = tuple((back / back[2, 2]).ravel()[:8].tolist())
        image = Image.fromarray(pixels).transform(
            (width, height), Image.Transform.PERSPECTIVE, data, Image.Resampling.BICUBIC
        )
        yield np.asarray(image)


def _smoothed_shot(motions: list[Matrix], strength: float) -> NDArray[np.float64]:
    """Return the warp of each frame of a shot: the motion to where the smooth path has it."""
    count = len(motions) + 1
    if count == 1:
        return np.eye(3)[None]
    ways = np.broadcast_to(np.eye(3), (count, 3, 3))  # from frame k to frame k + distance
    # Of the motions from a frame to those around it: sums for a line through them, by the distance.
    weight, first, second = np.ones((count, 1, 1)), np.zeros((count, 1, 1)), np.zeros((count, 1, 1))
    total, moment = ways.copy(), np.zeros((count, 3, 3))
    for distance in range(1, min(count - 1, int(np.ceil(_REACH * strength))) + 1):
        ways = _normal(np.stack(motions[distance - 1 :]) @ ways[: count - distance])
        share = float(np.exp(-0.5 * (distance / strength) ** 2))
        later, earlier = slice(0, count - distance), slice(distance, count)
        for who, way, offset in (
            (later, ways, distance),
            (earlier, _normal(np.asarray(np.linalg.inv(ways))), -distance),
        ):
            weight[who] += share
            first[who] += share * offset
            second[who] += share * offset**2
            total[who] += share * way
            moment[who] += share * offset * way
    return np.asarray((second * total - first * moment) / (weight * second - first**2))


def _normal(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale homographies so that their last number is 1."""
    return matrices / matrices[:, 2:, 2:]


def _zoom(shape: tuple[int, int], kept: float) -> Matrix:
    """Return what enlarges the middle of a picture to the whole of it."""
    x, y = (shape[1] - 1) / 2, (shape[0] - 1) / 2
    return np.array([[1 / kept, 0, x - x / kept], [0, 1 / kept, y - y / kept], [0, 0, 1]])


def _fits(warp: Matrix, shape: tuple[int, int], kept: float) -> bool:
    """Return whether a warped frame fills the middle of the picture that is kept."""
    bottom, right = shape[0] - 1, shape[1] - 1
    corners = np.array([[0, 0], [right, 0], [0, bottom], [right, bottom]], np.float64)
    places = apply(np.asarray(np.linalg.inv(_zoom(shape, kept) @ warp)), corners)
    return bool(((places > -0.5) & (places < np.array([right, bottom]) + 0.5)).all())


def _shown(warp: Matrix, shape: tuple[int, int]) -> float:
    """Return the largest share of the picture that a warped frame fills."""
    low, high = 0.01, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _fits(warp, shape, middle) else (low, middle)
    return low


def _possible(warp: Matrix, shape: tuple[int, int], kept: float) -> float:
    """Return which share of a warp a frame can take without showing its border."""
    if _fits(warp, shape, kept):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = _fits(np.eye(3) + middle * (warp - np.eye(3)), shape, kept)
        low, high = (middle, high) if fits else (low, middle)
    return low


def _calm(shares: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    """Let shares change slowly, never above their values: the mean of the least around."""
    radius = min(int(np.ceil(strength)), len(shares) - 1)
    for reduce in (np.min, np.mean):
        padded = np.pad(shares, radius, mode="edge")
        shares = reduce(sliding_window_view(padded, 2 * radius + 1), axis=1)
    return shares


def _opened(source: Source) -> Frames | Sequence[ImageLike]:
    """Return what can be read twice."""
    if isinstance(source, Sequence) and not isinstance(source, str):
        return source
    frames = open_frames(source) if is_source(source) else source
    if isinstance(frames, Frames) and not frames.live:
        return frames
    raise InputError(
        "source can be read only once, but stabilizing takes two passes; give a file, a folder or "
        "a list of images."
    )


def _pixels(source: Frames | Sequence[ImageLike]) -> Iterator[Pixels]:
    if isinstance(source, Frames):
        yield from (frame.image for frame in source)
    else:
        yield from (as_colors(image) for image in source)
