"""Points through a whole video."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._types import Pixels
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io._atomic import atomic_write
from hamflow.io._text import read_rows
from hamflow.motion._sampling import Points, gray, inside
from hamflow.motion.tracker import Followed, Tracker, follow
from hamflow.sequence import Method, Source, VideoItem, video

_Path = str | os.PathLike[str]

ANCHOR = 4
"""Every so many frames, points are looked for directly from an earlier frame."""
_ENOUGH = 0.5  # share of the points that a direct match must find, or a later frame takes its place
_MOST_POINTS = 100_000
TRACK_SUFFIXES = (".csv", ".npz")


@dataclass(frozen=True, eq=False)
class Tracks:
    """Where points are in each frame.

    Attributes
    ----------
    frames : (F,) array of int64
        Number of each frame in the source, from 0.
    positions : (F, N, 2) array of float32
        x and y of each point, also while it is hidden.
    visible : (F, N) array of bool
        Whether the point is seen in the frame.
    confidence : (F, N) array of float32
        1 / (1 + the error in pixels that is to be expected), from 0 to 1.
    """

    frames: NDArray[np.int64]
    positions: NDArray[np.float32]
    visible: NDArray[np.bool_]
    confidence: NDArray[np.float32]

    def __repr__(self) -> str:
        frames, points = self.visible.shape
        return f"<Tracks of {points} points through {frames} frames>"

    def save(self, path: _Path) -> None:
        """Write a table (``.csv``) or arrays (``.npz``).

        The table has the columns frame, id, x, y, visible (0 or 1) and confidence; the arrays have
        the names and shapes of the attributes.
        """
        suffix = check_track_path(path)
        with atomic_write(path) as file:
            if suffix == ".npz":
                np.savez_compressed(
                    file,
                    frames=self.frames,
                    positions=self.positions,
                    visible=self.visible,
                    confidence=self.confidence,
                )
                return
            text = io.TextIOWrapper(file, "ascii", newline="", write_through=True)
            rows = csv.writer(text, lineterminator="\n")
            rows.writerow(["frame", "id", "x", "y", "visible", "confidence"])
            for k, frame in enumerate(self.frames.tolist()):
                for point, (x, y) in enumerate(self.positions[k].tolist()):
                    sure = f"{self.confidence[k, point]:.4f}"
                    seen = int(self.visible[k, point])
                    rows.writerow([frame, point, f"{x:.3f}", f"{y:.3f}", seen, sure])
            text.detach()


@dataclass(frozen=True, eq=False)
class TrackedFrame:
    """Where the points are in one frame.

    Attributes
    ----------
    index : int
        Number of the frame in the source, from 0.
    frame : (H, W, 3) array
        Its pixels.
    position, visible, confidence
        One row of those of `Tracks`.
    """

    index: int
    frame: Pixels
    position: NDArray[np.float32]
    visible: NDArray[np.bool_]
    confidence: NDArray[np.float32]

    def without_frame(self) -> TrackedFrame:
        """Return it without the pixels, which take memory."""
        return replace(self, frame=np.empty((0, 0, 3), np.uint8))


def track(
    source: Source,
    points: ArrayLike | None = None,
    preset: Method = "balanced",
    *,
    grid: int = 16,
    anchor: int = ANCHOR,
) -> Tracks:
    """Follow points of the first frame through a video.

    A point moves by the flow from each frame to the next as long as forward and backward flow
    agree. While it is hidden, it moves as pixels around it do that moved alike when it was last
    seen; it is visible again where something moves as predicted and looks as the point did. Every
    few frames, all points are looked for directly from an earlier frame, which removes drift and
    finds points that were hidden. Tracks end at a cut.

    Parameters
    ----------
    source : path, or what else `hamflow.video` takes
        The frames.
    points : (N, 2) array_like, optional
        x and y of each point in the first frame, in pixels; by default a grid.
    preset : str, path, EstimatorConfig or Estimator
        As for `hamflow.estimate`, or an estimator of your own.
    grid : int
        Pixels from one point of the grid to the next.
    anchor : int
        Every how many frames points are looked for directly; 0 for never. It costs another flow
        each time.

    Returns
    -------
    Tracks

    Examples
    --------
    >>> import numpy as np, hamflow
    >>> image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    >>> frames = [np.roll(image, 2 * k, axis=1) for k in range(3)]
    >>> tracks = hamflow.track(frames, [[20, 24]], "fast")
    >>> np.rint(tracks.positions[:, 0]).astype(int).tolist()
    [[20, 24], [22, 24], [24, 24]]
    """
    estimator = (preset if isinstance(preset, Estimator) else Estimator(preset)).for_videos()
    wanted = None if points is None else as_points(points)
    return collect(tracked(video(source, estimator), estimator, wanted, grid=grid, anchor=anchor))


def collect(states: Iterable[TrackedFrame]) -> Tracks:
    """Return the tracks that `tracked` gives frame by frame."""
    rows = [(s.index, s.position, s.visible, s.confidence) for s in states]
    frames, positions, visible, confidence = zip(*rows, strict=True)
    return Tracks(
        np.array(frames, np.int64), np.stack(positions), np.stack(visible), np.stack(confidence)
    )


def tracked(
    items: Iterable[VideoItem],
    estimator: Estimator,
    points: Points | None = None,
    *,
    grid: int = 16,
    anchor: int = ANCHOR,
    every: int = 1,
) -> Iterator[TrackedFrame]:
    """Follow points through a video, and yield where they are in each frame; see `track`.

    Parameters
    ----------
    items : iterable of VideoItem
        What `hamflow.video` yields.
    estimator : Estimator
        What looks for points directly.
    points, grid, anchor
        As for `track`.
    every : int
        By how much the numbers of consecutive frames differ.
    """
    if anchor < 0:
        raise InputError(f"anchor must be 0 or a number of frames, not {anchor}.")
    tracker: Tracker | None = None
    held: _Anchor | None = None
    for number, item in enumerate(items):
        if tracker is None:
            tracker = Tracker(gray(item.frame), _checked(points, item.frame.shape, grid))
            held = _Anchor(estimator, item.frame, tracker) if anchor else None
        elif held is not None and number % anchor == 0:
            held = held.used(item.frame, tracker)
        yield _state(item.index, item.frame, tracker)
        if item.cut:
            return
        tracker.step(gray(item.next_frame), item.result)
    if tracker is not None:
        yield _state(item.index + every, item.next_frame, tracker)


class _Anchor:
    """An earlier frame from which points are looked for directly."""

    def __init__(self, estimator: Estimator, frame: Pixels, tracker: Tracker) -> None:
        self._estimator = estimator
        self._frame = estimator.frame(frame)
        self._position = tracker.position.copy()
        self._visible = tracker.visible.copy()
        self._error = 1 / tracker.confidence - 1

    def used(self, frame: Pixels, tracker: Tracker) -> _Anchor:
        """Correct the tracks by the direct flow to the present frame; return the next anchor."""
        result, _ = self._estimator.between(self._frame, self._estimator.frame(frame))
        places, seen, error = follow(result, self._position)
        direct = Followed(places, seen, np.hypot(error, self._error))
        share = tracker.join(gray(frame), direct, self._visible)
        return self if share >= _ENOUGH else _Anchor(self._estimator, frame, tracker)


def _state(index: int, frame: Pixels, tracker: Tracker) -> TrackedFrame:
    position = tracker.position.astype(np.float32)
    return TrackedFrame(index, frame, position, tracker.visible.copy(), tracker.confidence)


def grid_points(shape: tuple[int, ...], step: int) -> Points:
    """Return the points of a grid over an image, row by row."""
    if not 1 <= step <= 4096:
        raise InputError(f"grid must be from 1 to 4096 pixels, but is {step}.")
    height, width = shape[:2]
    x, y = (np.arange(((side - 1) % step) // 2, side, step) for side in (width, height))
    return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2).astype(np.float64)


def as_points(points: ArrayLike) -> Points:
    """Return points as an (N, 2) array."""
    try:
        array = np.asarray(points, np.float64)
    except (TypeError, ValueError):
        raise InputError("points must be numbers, x and y of each point.") from None
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0:
        raise InputError(
            f"points must have the shape (N, 2), x and y of each point, but has {array.shape}."
        )
    if not np.isfinite(array).all():
        raise InputError("points has values that are NaN or infinite; remove them.")
    return array


def read_points(path: _Path) -> Points:
    """Read points from a table (CSV) that has the columns x and y, and any others."""
    columns, rows = read_rows(path, skipinitialspace=True)
    if not {"x", "y"} <= set(columns):
        raise FileError(f"{os.fspath(path)}: has no columns x and y; name them in the first line.")
    try:
        return as_points([(row["x"], row["y"]) for row in rows])
    except InputError as error:
        raise FileError(f"{os.fspath(path)}: must have numbers in its columns x and y.") from error


def check_track_path(path: _Path) -> str:
    """Return the suffix of a file for tracks, or raise the FileError that `Tracks.save` would."""
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in TRACK_SUFFIXES:
        raise FileError(
            f"{os.fspath(path)}: tracks are written to one of {', '.join(TRACK_SUFFIXES)}; "
            "change the suffix."
        )
    return suffix


def _checked(points: Points | None, shape: tuple[int, ...], grid: int) -> Points:
    chosen = grid_points(shape, grid) if points is None else points
    if len(chosen) > _MOST_POINTS:
        raise InputError(
            f"{len(chosen)} points are more than the {_MOST_POINTS} that can be tracked at a time; "
            "choose fewer."
        )
    if not (within := inside(chosen, shape)).all():
        x, y = chosen[np.flatnonzero(~within)[0]]
        raise InputError(
            f"points must be in the first frame, which has {shape[1]}×{shape[0]} pixels, but "
            f"({x:g}, {y:g}) is not."
        )
    return chosen
