"""A matcher that decides for each task whether its volumes fit into memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from hamflow import _native
from hamflow._log import logger
from hamflow.stages import Match, Matcher, MatchTask, following


@dataclass(frozen=True)
class FittingMatcher:
    """A matcher whose volumes are in temporary files if they would not fit; same result.

    Parameters
    ----------
    matcher : Matcher
        What finds the matches.
    most : int
        Labels of both components of all pixels that fit into memory.
    """

    matcher: Matcher
    most: int
    method: ClassVar[str] = "fitting"

    def __call__(self, task: MatchTask) -> Match:
        """Match within a window; one that was found may be wider than the plan expects."""
        height, width = task.bits[0].shape[:2]
        if height * width * (task.window.du + task.window.dv) <= self.most:
            return self.matcher(task)
        logger.debug("the labels of %s do not fit into memory", task.window)
        # No memory is kept for reuse, neither from before nor for what comes.
        _native.release_kept()
        try:
            return self.matcher.streamed()(task)
        finally:
            _native.release_kept()

    def warm_started(self) -> FittingMatcher:
        """Return the matcher for a pair that begins with the labels of the pair before."""
        return replace(self, matcher=following(self.matcher))

    def streamed(self) -> Matcher:
        """Return the matcher whose volumes are in temporary files in any case."""
        return self.matcher.streamed()
