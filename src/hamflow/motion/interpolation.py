"""Frames in between: what a video would show between two of its frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow._check import unit_intensities
from hamflow._types import Field, Flow, Mask, Pixels
from hamflow.errors import InputError
from hamflow.estimator import Estimator
from hamflow.flow import warp
from hamflow.motion._filters import box_mean, vector_median
from hamflow.refinement.consistency import occluded
from hamflow.result import FlowResult
from hamflow.sequence import Method, Source, VideoItem, video

_MOST_TIMES = 1000
# What is hidden in the other frame gives way to all whose colors there differ by less than this.
_HIDDEN = 0.1
_NEAR = 0.1  # what lands nearer to a pixel goes before what is nearly as good
_AROUND = 1  # half of the square in which stray motions are removed
_SOFT = 1  # half of the square that makes the edges soft of what is taken from one frame
_STEPS = 2**20  # of the preference between two sources of one pixel


def interpolate(
    source: Source,
    factor: int = 2,
    preset: Method = "balanced",
    *,
    times: Sequence[float] | None = None,
) -> Iterator[Pixels]:
    """Yield the frames of a video with new ones between them.

    Parameters
    ----------
    source : path, or what else `hamflow.video` takes
        The frames.
    factor : int
        How many frames take the place of one: 2 adds one between each two.
    preset : str, path, EstimatorConfig or Estimator
        As for `hamflow.estimate`, or an estimator of your own; it has to compute both directions.
    times : sequence of float, optional
        Instead of `factor`: the times of the new frames, from 0 (the frame before) to 1 (the frame
        after).

    Yields
    ------
    frame : array
        In the type of the frames; those of the source are unchanged. At a cut, frames are repeated.

    Examples
    --------
    >>> import numpy as np, hamflow
    >>> image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    >>> frames = [np.roll(image, 8 * k, axis=1) for k in range(3)]
    >>> between = list(hamflow.interpolate(frames, 2, "fast"))
    >>> len(between)
    5
    >>> bool((between[1][:, 16:48] == np.roll(image, 4, axis=1)[:, 16:48]).mean() > 0.9)
    True
    """
    estimator = preset if isinstance(preset, Estimator) else Estimator(preset)
    wanted = spaced(factor) if times is None else _checked(times)
    return in_between(video(source, estimator), wanted)


def in_between(items: Iterable[VideoItem], times: Sequence[float]) -> Iterator[Pixels]:
    """Yield the frames of a video, and after each but the last the new ones at some times."""
    item: VideoItem | None = None
    for item in items:
        yield item.frame
        if item.cut:
            yield from (item.frame if time < 0.5 else item.next_frame for time in times)
        else:
            yield from frames_between(item.frame, item.next_frame, item.result, times)
    if item is not None:
        yield item.next_frame


def spaced(factor: int) -> list[float]:
    """Return the times that divide the time between two frames into equal parts."""
    if not 1 <= factor <= _MOST_TIMES:
        raise InputError(f"factor must be a whole number from 1 to {_MOST_TIMES}, not {factor}.")
    return [k / factor for k in range(1, factor)]


def _checked(times: Sequence[float]) -> list[float]:
    if len(times) > _MOST_TIMES or not all(0 <= time <= 1 for time in times):
        raise InputError(f"times must be at most {_MOST_TIMES} numbers from 0 to 1.")
    return list(times)


def frames_between(
    first: Pixels, second: Pixels, result: FlowResult, times: Iterable[float]
) -> Iterator[Pixels]:
    """Yield the frames at some times from 0 (the first frame) to 1 (the second).

    The pixels of both frames move along their flow to the time that is asked for. Where several
    meet, one that is visible in both frames goes before one that is hidden in the other, and then
    that whose two colors are more alike. So each pixel of the new frame gets a motion, by which it
    is taken from both frames, or from the one that shows it alone.

    Parameters
    ----------
    first, second : (H, W) or (H, W, 3) array
        Two frames, of type uint8, uint16 or float32.
    result : FlowResult
        The flow between them, in both directions.
    times : iterable of float
        From 0 to 1.
    """
    if result.backward is None:
        raise InputError(
            "The flow of only one direction is known; use a preset that computes both, such as "
            "'balanced'."
        )
    hidden = result.occlusion
    hidden = occluded(result.flow, result.backward) if hidden is None else hidden
    ahead = _Sources.of(first, second, result.flow, hidden)
    back = _Sources.of(second, first, result.backward, occluded(result.backward, result.flow))
    for time in times:
        if time in (0, 1):
            yield second if time else first
        else:
            yield _frame(first, second, ahead, back, time)


class _Sources(NamedTuple):
    """The pixels of a frame, which move to the time that is asked for."""

    flow: Flow
    hidden: Mask  # in the other frame
    cost: Field  # how different its two colors are; more if it is hidden

    @classmethod
    def of(cls, image: Pixels, other: Pixels, flow: Flow, hidden: Mask) -> _Sources:
        colors = [unit_intensities(pixels) for pixels in (image, other)]
        differs = np.abs(colors[0] - warp(colors[1], flow))
        differs = differs.mean(axis=2) if differs.ndim == 3 else differs
        return cls(flow, hidden, np.where(hidden, _HIDDEN, np.minimum(differs, 1)))

    def moved(self, share: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which source each pixel gets at a share of the way, and how good it is.

        A source lands on the four pixels around its place. Returns -1 where nothing lands.
        """
        height, width = self.hidden.shape
        count = height * width
        rank = 1 - self.cost
        x = (np.arange(width, dtype=np.float32) + share * self.flow[..., 0]).ravel()
        y = (np.arange(height, dtype=np.float32)[:, None] + share * self.flow[..., 1]).ravel()
        left, top = np.floor(x), np.floor(y)
        best = np.full(count, -1, np.int64)
        numbers = np.arange(count, dtype=np.int64)
        for down in (0, 1):
            for across in (0, 1):
                column, row = left + across, top + down
                overlap = (1 - np.abs(x - column)) * (1 - np.abs(y - row))
                lands = (column >= 0) & (column < width) & (row >= 0) & (row < height)
                lands &= overlap > 0
                place = (row[lands] * width + column[lands]).astype(np.intp)
                preference = (rank.ravel()[lands] + _NEAR * overlap[lands]) * _STEPS
                # Preference and number in one word, so that one pass finds the best source.
                np.maximum.at(best, place, preference.astype(np.int64) * count + numbers[lands])
        empty = best < 0
        return np.where(empty, -1, best % count), np.where(empty, -1, best // count)


def _frame(first: Pixels, second: Pixels, ahead: _Sources, back: _Sources, time: float) -> Pixels:
    from_first, good_first = ahead.moved(time)
    from_second, good_second = back.moved(1 - time)
    chosen = good_first >= good_second
    motion = np.where(
        chosen[:, None],
        ahead.flow.reshape(-1, 2)[from_first],
        -back.flow.reshape(-1, 2)[from_second],
    )
    shape = ahead.hidden.shape
    known = np.maximum(good_first, good_second) >= 0
    only_first = (known & chosen & ahead.hidden.ravel()[from_first]).reshape(shape)
    only_second = (known & ~chosen & back.hidden.ravel()[from_second]).reshape(shape)
    vectors = _filled(motion.reshape(*shape, 2), known.reshape(shape))
    vectors = vector_median(vectors, _AROUND)
    share = np.where(only_first, 0.0, np.where(only_second, 1.0, time))
    return _blended(first, second, vectors, time, box_mean(share, _SOFT))


def _blended(
    first: Pixels, second: Pixels, motion: Flow, time: float, share: NDArray[np.float64]
) -> Pixels:
    """Take each pixel from both frames, `share` of it from the second; unless it is outside."""
    parts = []
    for image, way in ((first, -time), (second, 1 - time)):
        parts.append(warp(image.astype(np.float32), np.float32(way) * motion, return_mask=True))
    (before, in_first), (after, in_second) = parts
    share = np.where(in_first, np.where(in_second, share, 0.0), np.where(in_second, 1.0, 0.5))
    weight = share.reshape(*share.shape, *[1] * (first.ndim - 2)).astype(np.float32)
    mixed: NDArray[Any] = (1 - weight) * before + weight * after
    nowhere = ~in_first & ~in_second
    mixed[nowhere] = ((1 - time) * first + time * second)[nowhere]
    if first.dtype.kind == "u":
        mixed = np.rint(mixed)
    return mixed.astype(first.dtype)


def _filled(field: Flow, known: Mask) -> Flow:
    """Give unknown pixels the mean of known ones, from the smallest square that has some."""
    if known.all() or not known.any():
        return field
    weight = known.astype(np.float32)[..., None]
    height, width = known.shape
    evened = [(0, height % 2), (0, width % 2), (0, 0)]
    sums = np.pad(field * weight, evened).reshape(-(-height // 2), 2, -(-width // 2), 2, 2)
    counts = np.pad(weight, evened).reshape(-(-height // 2), 2, -(-width // 2), 2, 1)
    count = counts.sum(axis=(1, 3))
    means = sums.sum(axis=(1, 3)) / np.maximum(count, 1)
    coarse = _filled(means, count[..., 0] > 0)
    spread = np.repeat(np.repeat(coarse, 2, axis=0), 2, axis=1)[:height, :width]
    return np.where(known[..., None], field, spread)
