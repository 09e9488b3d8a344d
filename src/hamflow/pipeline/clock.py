"""Where the time goes, and how far the work is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from hamflow._log import logger
from hamflow._types import StageProgress


class Clock:
    """Adds up the seconds of each stage, and reports when one begins, to the log when it ends."""

    def __init__(self, progress: StageProgress | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress
        self._share = 0.0

    @contextmanager
    def stage(self, name: str, share: float) -> Iterator[None]:
        """Time a stage; `share` says how much of the whole is done when it begins."""
        # Scales repeat stages, and a cut in a video repeats all of them: never report a step back.
        self._share = max(self._share, share)
        if self._progress is not None:
            self._progress(name, self._share)
        start = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + elapsed
            logger.debug("%s: %.3f s", name, elapsed)

    def finish(self) -> None:
        """Report that everything is done."""
        self._share = 1.0
        if self._progress is not None:
            self._progress("done", 1.0)
