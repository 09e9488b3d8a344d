"""One step of the search: descriptors and matcher at one scale, in each direction."""

from __future__ import annotations

from hamflow._log import logger
from hamflow.pipeline.clock import Clock
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.look import narrowed
from hamflow.pipeline.matches import Found
from hamflow.pipeline.scales import SearchStep
from hamflow.stages import Matcher, MatchTask


def search(
    frames: tuple[Frame, Frame], step: SearchStep, matcher: Matcher, clock: Clock
) -> list[Found]:
    """Match two frames at one scale.

    Parameters
    ----------
    frames : (Frame, Frame)
        The images.
    step : SearchStep
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
    with clock.stage("descriptors", step.share):
        bits = [
            frame.wide_bits(step.scale) if step.coarse else frame.bits(step.scale)
            for frame in frames
        ]
    if step.warm:
        matcher = matcher.warm_started()
    windows = step.windows
    if step.coarse:
        with clock.stage("matching", step.share + 0.04):
            windows = narrowed((bits[0], bits[1]), windows)
    found = []
    for k, window in enumerate(windows):
        logger.debug("search at scale 1/%d in %s", step.scale, window)
        with clock.stage("matching", step.share + 0.05 + 0.1 * k):
            pair = (bits[k], bits[1 - k])
            labels = step.initial_labels[k] if step.initial_labels else None
            prior = step.priors[k] if step.priors else None
            match = matcher(MatchTask(pair, frames[k].at(step.scale), window, labels, prior))
            found.append(Found.of(match))
            del match  # before the other direction needs as much memory
    return found
