"""Whether two frames have anything to do with each other, or a video was cut between them."""

from __future__ import annotations

import numpy as np

from hamflow._types import Image
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.matches import Matches

# Between unrelated frames, the two directions agree here and there, but hardly any such match is
# clearly better than another (experiments/scripts/cuts.py).
_RELATED = 0.01
# Without texture no match is clear: then frames that look alike as they are, in so many boxes along
# the shorter side, are related. Their means may differ by so much, and by so large a part of their
# contrast.
_BOXES = 8
_ALIKE, _OF_CONTRAST = 0.008, 0.25


def is_cut(frames: tuple[Frame, Frame], matches: Matches) -> bool:
    """Return whether nothing of the first frame is found in the second.

    With one direction alone there is nothing to compare, and it is never a cut; so it is with a
    matcher that does not know how clear its matches are.

    Parameters
    ----------
    frames : (Frame, Frame)
        The images.
    matches : Matches
        What was found between them at the matching scale.
    """
    if len(matches.directions) < 2 or matches.clear_share >= _RELATED:
        return False
    first, second = (_boxes(frame) for frame in frames)
    contrast = (first.std() + second.std()) / 2
    return bool(np.abs(first - second).mean() > _ALIKE + _OF_CONTRAST * contrast)


def _boxes(frame: Frame) -> Image:
    """Return the mean colors of large boxes."""
    factor = max(1, min(frame.shape) // _BOXES)
    return frame.at(factor)
