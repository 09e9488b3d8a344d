"""The flow of a video: from each frame to the next, with two of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hamflow.errors import FileError
from hamflow.estimator import Estimator
from hamflow.frame import Frame
from hamflow.io.video import FrameImage, FrameReader
from hamflow.result import FlowResult
from hamflow.search import Matched


class PairFlow(NamedTuple):
    """The flow from one frame to the next.

    Attributes
    ----------
    name : str
        Of the first of the two frames.
    result : FlowResult or None
        None if it was known already.
    """

    name: str
    result: FlowResult | None


def flow_sequence(
    estimator: Estimator,
    reader: FrameReader,
    *,
    known: Callable[[str], bool] | None = None,
    broken: Callable[[FileError], object] | None = None,
    size: tuple[int, int] | None = None,
) -> Iterator[PairFlow]:
    """Compute the flow from each frame that a reader gives to the next.

    What is computed from one frame alone is computed once, and the window of a pair is the start
    for the next one (see `Estimator.between`). There are only pairs of frames that follow each
    other: a broken frame costs two of them, the pair behind it starts with a full look, and so does
    one behind a pair that was known.

    Parameters
    ----------
    estimator : Estimator
        Computes the flow.
    reader : FrameReader
        The frames, as ``open_frames(path).read()`` gives them.
    known : callable, optional
        Says by the name of a pair's first frame whether its flow need not be computed. A frame of
        known pairs alone is not read.
    broken : callable, optional
        Told of each frame that cannot be used: damaged, or of another size. Without it, the error
        is raised.
    size : (int, int), optional
        Height and width that all frames must have; by default those of the first.

    Yields
    ------
    pair : PairFlow
        Those that were known as well, in the order of the frames.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from hamflow import Estimator, write_image
    >>> from hamflow.io.video import open_frames
    >>> from hamflow.sequence import flow_sequence
    >>> image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    >>> estimator = Estimator("fast", model="pairs")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(3):
    ...         write_image(f"{folder}/{number}.png", np.roll(image, 2 * number, axis=1))
    ...     for name, result in flow_sequence(estimator, open_frames(folder).read()):
    ...         print(name, np.rint(result.flow[24, 32]).astype(int))
    0 [2 0]
    1 [2 0]
    """
    first: Frame | None = None  # None: not read, because it is part of known pairs alone
    before: str | None = None  # name of the frame before; None: nothing that this one follows
    before_known = True
    state: Matched | None = None
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
    estimator: Estimator, reader: FrameReader, size: tuple[int, int] | None
) -> tuple[Frame, tuple[int, int]]:
    """Read the next frame; return it with the size that all must have."""
    frame: FrameImage = next(reader)
    height, width = frame.image.shape[:2]
    if size is not None and (height, width) != size:
        raise FileError(
            f"{reader.frames.name}: frame {frame.position + 1} ({frame.name}) has {width}×{height} "
            f"pixels, but {size[1]}×{size[0]} are expected; give all frames one size, or leave "
            "that one out."
        )
    return estimator.frame(frame.image, frame.name), (height, width)
