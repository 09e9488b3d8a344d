"""One look: descriptors and matcher at one scale, in each direction."""

from __future__ import annotations

from hamflow.pipeline.clock import Clock
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.matches import Certificate, Found
from hamflow.pipeline.scales import Look
from hamflow.stages import Matcher


def search(frames: tuple[Frame, Frame], look: Look, matcher: Matcher, clock: Clock) -> list[Found]:
    """Match two frames at one scale.

    Parameters
    ----------
    frames : (Frame, Frame)
        The images.
    look : Look
        The scale and the windows; as many directions as it has windows.
    matcher : Matcher
        Finds the matches.
    clock : Clock
        Where the time goes.

    Returns
    -------
    list of Found
        Forward, and backward if both directions are matched.
    """
    with clock.stage("descriptors", look.share):
        bits = [frame.bits(look.scale) for frame in frames]
    if look.warm:
        matcher = matcher.warm_started()
    found = []
    for k, window in enumerate(look.windows):
        with clock.stage("matching", look.share + 0.05 + 0.1 * k):
            pair = (bits[k], bits[1 - k])
            labels = look.initial_labels[k] if look.initial_labels else None
            match = matcher(pair, frames[k].at(look.scale), window, labels)
            found.append(Found(match.flow, Certificate.of(match)))
            del match  # before the other direction needs as much memory
    return found
