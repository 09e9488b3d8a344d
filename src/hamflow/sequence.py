"""The flow of a video: from each frame to the next, with two of them in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, overload

import numpy as np

from hamflow._types import Field, Flow, ImageLike, Mask, Pixels
from hamflow.config import EstimatorConfig
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io.images import as_colors
from hamflow.io.video import FrameImage, FrameReader, Frames, is_source, open_frames
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.matches import Matches
from hamflow.result import FlowResult

Source = str | os.PathLike[str] | int | BinaryIO | Frames | FrameReader | Iterable[ImageLike]
"""What `video` takes frames from."""
Method = Estimator | EstimatorConfig | str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class VideoItem:
    """The flow from one frame of a video to the next.

    Attributes
    ----------
    frame, next_frame : (H, W, 3) array
        The two frames, in RGB: uint8 or uint16, or floating point if the frames are given so.
    result : FlowResult
        The flow, and what is known about it.
    index : int
        Number of `frame` in the source, from 0.
    name : str
        Name of `frame`: that of its file without the suffix, or its number.
    time : float or None
        Seconds from the beginning of the video to `frame`; None if the source has no clock, as a
        folder of images.
    flow, backward, occlusion, confidence, cut
        Those of `result`.
    """

    frame: Pixels
    next_frame: Pixels
    result: FlowResult
    index: int
    name: str
    time: float | None = None

    def __repr__(self) -> str:
        return f"<VideoItem {self.name}: {self.result!r}>"

    @property
    def flow(self) -> Flow:
        """(H, W, 2): where the pixels of `frame` are in `next_frame`."""
        return self.result.flow

    @property
    def backward(self) -> Flow | None:
        """(H, W, 2): the flow from `next_frame` to `frame`."""
        return self.result.backward

    @property
    def occlusion(self) -> Mask | None:
        """(H, W): pixels of `frame` that are hidden, or outside, in `next_frame`."""
        return self.result.occlusion

    @property
    def confidence(self) -> Field | None:
        """(H, W), from 0 to 1."""
        return self.result.confidence

    @property
    def cut(self) -> bool:
        """Whether another shot begins with `next_frame`, so that the flow means nothing."""
        return self.result.cut


@dataclass(frozen=True)
class KnownPair:
    """A pair of frames whose flow was not computed, because `known` said so.

    Attributes
    ----------
    name : str
        Of the first of the two frames.
    """

    name: str


@overload
def video(
    source: Source,
    preset: Method = ...,
    *,
    known: None = ...,
    broken: Callable[[FileError], object] | None = ...,
    size: tuple[int, int] | None = ...,
) -> Iterator[VideoItem]: ...


@overload
def video(
    source: Source,
    preset: Method = ...,
    *,
    known: Callable[[str], bool],
    broken: Callable[[FileError], object] | None = ...,
    size: tuple[int, int] | None = ...,
) -> Iterator[VideoItem | KnownPair]: ...


def video(
    source: Source,
    preset: Method = "balanced",
    *,
    known: Callable[[str], bool] | None = None,
    broken: Callable[[FileError], object] | None = None,
    size: tuple[int, int] | None = None,
) -> Iterator[VideoItem] | Iterator[VideoItem | KnownPair]:
    """Estimate the flow from each frame of a video to the next.

    What is computed from one frame alone is computed once, and each pair starts from the window
    and the labels of the pair before (see `Estimator.between`). A broken frame is left out with
    the two pairs that it is part of; the pair after it starts from nothing, and so does one after
    a pair that was known.

    Parameters
    ----------
    source : path, int, binary file, Frames, FrameReader or iterable of images
        What `hamflow.io.video.open_frames` opens (a video file, a folder of frames, a camera, a
        stream) or returns, a part of it by ``open_frames(path).read(start, stop, step)``, or the
        frames themselves: arrays, PIL images or paths, which are then called "0", "1", and so on.
    preset : str, path, EstimatorConfig or Estimator
        As for `hamflow.estimate`, or an estimator of your own.
    known : callable, optional
        Says by the name of a pair's first frame whether its flow need not be computed. Frames that
        are part of known pairs only are not read.
    broken : callable, optional
        Told of each frame that cannot be used: damaged, or of another size. Without it, the error
        is raised.
    size : (int, int), optional
        Height and width that all frames must have; by default those of the first. A stream of raw
        frames is opened by ``open_frames(source, size=(height, width))``.

    Yields
    ------
    item : VideoItem
        Frame, flow, occlusion and so on of each pair, in the order of the frames; for pairs that
        are known, a KnownPair with the name alone.

    Raises
    ------
    InputError
        If the source ends before its second frame, and no frame of it was broken.

    Examples
    --------
    >>> import numpy as np, hamflow
    >>> image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    >>> frames = [np.roll(image, 2 * k, axis=1) for k in range(3)]
    >>> for item in hamflow.video(frames, "fast"):
    ...     print(item.name, item.frame.shape, np.rint(item.flow[24, 32]).astype(int))
    0 (48, 64, 3) [2 0]
    1 (48, 64, 3) [2 0]
    """
    estimator = preset if isinstance(preset, Estimator) else Estimator(preset)
    return _pairs(estimator.for_videos(), _reader(source), known, broken, size)


def _reader(source: Source) -> FrameReader | _Images:
    if isinstance(source, FrameReader):
        return source
    if isinstance(source, Frames):
        return source.read()
    if is_source(source):
        return open_frames(source).read()
    if not isinstance(source, Iterable):
        raise InputError(
            "source must be a video file, a folder, the number of a camera, a binary stream or the "
            f"frames themselves, not {type(source).__name__}."
        )
    return _Images(source)


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
        # A copy: many sources write the next frame to the same array.
        pixels = np.array(as_colors(image, f"frame {position}"))
        return FrameImage(position, str(position), pixels, None)

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
) -> Iterator[VideoItem | KnownPair]:
    first: tuple[Frame, FrameImage] | None = None  # None: not read, as part of known pairs alone
    before: str | None = None  # name of the frame before; None: nothing that this one follows
    before_known = True
    state: Matches | None = None
    any_pair = any_broken = False
    while (name := reader.upcoming) is not None:
        # Asked once, lest the answer change in between.
        here_known = known is not None and known(name)
        second: tuple[Frame, FrameImage] | None = None
        try:
            if here_known and before_known:
                reader.skip()
            else:
                second = _read(estimator, reader, size)
                size = second[0].shape
        except StopIteration:
            break
        except FileError as error:
            if broken is None:
                raise
            broken(error.with_traceback(None))  # whose variables would keep the frame
            first, before, before_known, state = None, None, True, None
            any_broken = True
            continue
        any_pair |= before is not None
        if before is not None and before_known:
            state = None
            yield KnownPair(before)
        elif before is not None:
            assert first is not None
            assert second is not None
            result, state = estimator.between(first[0], second[0], previous=state)
            image = first[1]
            first = None  # not to be kept while others work with the result
            yield VideoItem(
                image.image, second[1].image, result, image.position, image.name, image.time
            )
            del image, result
        first, before, before_known = second, name, here_known
    if not (any_pair or any_broken):
        raise InputError(
            f"{_name(reader)} has fewer than two frames in the part that is read; a flow needs two."
        )


def _name(reader: FrameReader | _Images) -> str:
    return reader.frames.name if isinstance(reader, FrameReader) else "source"


def _read(
    estimator: Estimator, reader: FrameReader | _Images, size: tuple[int, int] | None
) -> tuple[Frame, FrameImage]:
    """Read and prepare the next frame, which must have the given size."""
    frame: FrameImage = next(reader)
    height, width = frame.image.shape[:2]
    if size is not None and (height, width) != size:
        # Frames in Python are counted from 0, those of files from 1.
        at_hand = isinstance(reader, _Images)
        number = frame.name if at_hand else f"{frame.position + 1} ({frame.name})"
        raise FileError(
            f"{_name(reader)}: frame {number} has {width}×{height} pixels, but "
            f"{size[1]}×{size[0]} are expected; give all frames one size, or remove that one."
        )
    return estimator.frame(frame.image, frame.name), frame
