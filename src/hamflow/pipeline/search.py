"""One step of the search: descriptors and matcher at one scale, in each direction."""

from __future__ import annotations

from hamflow._beside import for_each, is_concurrent
from hamflow._log import logger
from hamflow.pipeline.clock import Clock
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.look import narrowed
from hamflow.pipeline.matches import Found
from hamflow.pipeline.scales import SearchStep
from hamflow.stages import Matcher, MatchTask, following

# Labels of all pixels of a direction up to which both are matched at once, which takes twice the
# room: 14 bytes for each.
_MOST_AT_ONCE = 2**22


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
        matcher = following(matcher)
    windows = step.windows
    if step.coarse:
        with clock.stage("matching", step.share + 0.04):
            windows = narrowed((bits[0], bits[1]), windows)

    def match(k: int) -> Found:
        logger.debug("search at scale 1/%d in %s", step.scale, windows[k])
        pair = (bits[k], bits[1 - k])
        labels = step.initial_labels[k] if step.initial_labels else None
        prior = step.priors[k] if step.priors else None
        # What else the matcher found is large, and gone before another direction needs room.
        task = MatchTask(pair, frames[k].at(step.scale), windows[k], labels, prior)
        return Found.of(matcher(task))

    with clock.stage("matching", step.share + 0.05):
        pixels = bits[0].shape[0] * bits[0].shape[1]
        widest = max(window.du + window.dv for window in windows)
        small = pixels * widest <= _MOST_AT_ONCE
        return for_each(match, range(len(windows)), at_once=small and is_concurrent(matcher))
