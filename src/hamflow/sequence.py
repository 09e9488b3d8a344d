"""The flow of a video: from each frame to the next, with two of them in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from hamflow._types import ImageLike
from hamflow.config import EstimatorConfig
from hamflow.errors import FileError
from hamflow.estimator import Estimator
from hamflow.io.video import FrameImage, FrameReader, open_frames
from hamflow.pipeline.frame import Frame, as_pixels
from hamflow.pipeline.matches import Matches
from hamflow.result import FlowResult


class PairFlow(NamedTuple):
    """The flow from one frame of a video to the next.

    Attributes
    ----------
    name : str
        Of the first of the two frames.
    result : FlowResult or None
        None if it was known already; see `known`.
    """

    name: str
    result: FlowResult | None


def video(
    source: str | os.PathLike[str] | FrameReader | Iterable[ImageLike],
    preset: Estimator | EstimatorConfig | str | os.PathLike[str] = "balanced",
    *,
    known: Callable[[str], bool] | None = None,
    broken: Callable[[FileError], object] | None = None,
    size: tuple[int, int] | None = None,
) -> Iterator[PairFlow]:
    """Estimate the flow from each frame of a video to the next.

    What is computed from one frame alone is computed once, and each pair starts from the window
    and the labels of the pair before (see `Estimator.between`). A broken frame is left out with
    the two pairs that it is part of; the pair after it starts from nothing, and so does one after
    a pair that was known.

    Parameters
    ----------
    source : path, FrameReader or iterable of images
        A video file or a folder of frames, what ``open_frames(path).read()`` returns, or the frames
        themselves: arrays, PIL images or paths, which are then called "0", "1", and so on.
    preset : str, path, EstimatorConfig or Estimator
        As for `hamflow.estimate`, or an estimator of your own.
    known : callable, optional
        Says by the name of a pair's first frame whether its flow need not be computed. Frames that
        are part of known pairs only are not read.
    broken : callable, optional
        Told of each frame that cannot be used: damaged, or of another size. Without it, the error
        is raised.
    size : (int, int), optional
        Height and width that all frames must have; by default those of the first.

    Yields
    ------
    pair : PairFlow
        The name of the first frame and the result, in the order of the frames; known pairs too.

    Examples
    --------
    >>> import numpy as np, hamflow
    >>> image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    >>> frames = [np.roll(image, 2 * k, axis=1) for k in range(3)]
    >>> for name, result in hamflow.video(frames, "fast"):
    ...     print(name, np.rint(result.flow[24, 32]).astype(int))
    0 [2 0]
    1 [2 0]
    """
    estimator = preset if isinstance(preset, Estimator) else Estimator(preset)
    if isinstance(source, str | os.PathLike):
        source = open_frames(source).read()
    reader = source if isinstance(source, FrameReader) else _Images(source)
    return _pairs(estimator, reader, known, broken, size)


class _Images:
    """Frames that are at hand, with the part of a `FrameReader` that is needed here."""

    def __init__(self, images: Iterable[ImageLike]) -> None:
        self._images = iter(images)
        self._count = 0

    @property
    def upcoming(self) -> str:
        """Name of the next frame, if there is one."""
        return str(self._count)

    def __next__(self) -> FrameImage:
        image, position = next(self._images), self._count
        self._count += 1
        return FrameImage(position, str(position), as_pixels(image, f"frame {position}"))

    def skip(self) -> None:
        """Go over the next frame."""
        next(self._images)
        self._count += 1


def _pairs(
    estimator: Estimator,
    reader: FrameReader | _Images,
    known: Callable[[str], bool] | None,
    broken: Callable[[FileError], object] | None,
    size: tuple[int, int] | None,
) -> Iterator[PairFlow]:
    first: Frame | None = None  # None: not read, because it is part of known pairs alone
    before: str | None = None  # name of the frame before; None: nothing that this one follows
    before_known = True
    state: Matches | None = None
    while (name := reader.upcoming) is not None:
        # Asked once, lest the answer change in between.
        here_known = known is not None and known(name)
        second: Frame | None = None
        try:
            if here_known and before_known:
                reader.skip()
            else:
                second, size = _frame(estimator, reader, size)
        except StopIteration:
            return
        except FileError as error:
            if broken is None:
                raise
            broken(error.with_traceback(None))  # whose variables would keep the frame
            first, before, before_known, state = None, None, True, None
            continue
        if before is not None and before_known:
            state = None
            yield PairFlow(before, None)
        elif before is not None:
            assert first is not None
            assert second is not None
            result, state = estimator.between(first, second, previous=state)
            first = None  # not to be kept while others work with the result
            yield PairFlow(before, result)
            del result
        first, before, before_known = second, name, here_known


def _frame(
    estimator: Estimator, reader: FrameReader | _Images, size: tuple[int, int] | None
) -> tuple[Frame, tuple[int, int]]:
    """Read the next frame; return it with the size that all must have."""
    frame: FrameImage = next(reader)
    height, width = frame.image.shape[:2]
    if size is not None and (height, width) != size:
        source = reader.frames.name if isinstance(reader, FrameReader) else "The frames"
        raise FileError(
            f"{source}: frame {frame.position + 1} ({frame.name}) has {width}×{height} "
            f"pixels, but {size[1]}×{size[0]} are expected; give all frames one size, or remove "
            "that one."
        )
    return estimator.frame(frame.image, frame.name), (height, width)
