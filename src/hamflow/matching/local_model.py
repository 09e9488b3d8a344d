"""The local model as a stage of the estimator: winner takes all (WTA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hamflow._types import Flow
from hamflow.matching._arrays import words_of
from hamflow.matching.projection import CHANCE_LEVEL, winner_takes_all
from hamflow.stages import MatchTask
from hamflow.window import Window


@dataclass(frozen=True, eq=False)
class LocalMatch:
    """A winner-takes-all flow: it has no energy, and nothing bounds it."""

    flow: Flow
    window: Window
    energy: None = None
    bound: None = None
    gap: None = None
    margin: None = None
    history: tuple[Any, ...] = ()


@dataclass(frozen=True)
class LocalModel:
    """The matcher that decides for each pixel alone (eq. 4 of the paper).

    Parameters
    ----------
    outside : int
        Hamming distance, for each word of 64 bits, of a target outside of the image; 32 is that of
        a match by chance.
    """

    outside: int = CHANCE_LEVEL
    method: ClassVar[str] = "local"
    concurrent: ClassVar[bool] = True

    def __call__(self, task: MatchTask) -> LocalMatch:
        """Match two images by their descriptors; nothing else matters but the window."""
        outside = self.outside * words_of(task.bits[0])
        flow = winner_takes_all(*task.bits, task.window, outside=outside)
        return LocalMatch(flow, task.window)

    def streamed(self) -> LocalModel:
        """Return the model itself, which works strip by strip anyhow."""
        return self
