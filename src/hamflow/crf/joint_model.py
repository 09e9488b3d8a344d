"""The joint model as a stage of the estimator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hamflow.crf.config import CrfConfig, Rounding
from hamflow.crf.solver import CrfResult, solve
from hamflow.matching._arrays import words_of
from hamflow.stages import MatchTask


@dataclass(frozen=True)
class JointModel(CrfConfig):
    """The matcher of the paper: a CRF over u and v; parameters as for `hamflow.crf.CrfConfig`."""

    method: ClassVar[str] = "joint"
    concurrent: ClassVar[bool] = True

    def __call__(self, task: MatchTask) -> CrfResult:
        """Match two images by their descriptors; see `hamflow.crf.solve`.

        The data costs of descriptors of several words are larger, and so is then the smoothness.
        """
        words = words_of(task.bits[0])
        scaled = {n: words * getattr(self, n) for n in ("c_outside", "tau1", "tau2")}
        return solve(
            bits0=task.bits[0],
            bits1=task.bits[1],
            image=task.image,
            window=task.window,
            config=replace(self, **scaled),
            initial_labels=task.initial_labels,
            unary=self._unary(task),
            callback=task.callback,
            pass_callback=task.callback,
        )

    def _unary(self, task: MatchTask) -> Any:
        if task.prior is None:
            return None
        # Out of core, only what is needed at a time is in memory, and made several times.
        streamed = self.backend == "streamed"
        return task.prior.costs(task.window) if streamed else task.prior.unary(task.window)

    def streamed(self) -> JointModel:
        """Return the model with its volumes in temporary files; the result has the same bytes."""
        return replace(self, backend="streamed")

    def warm_started(self) -> JointModel:
        """Return the model for a pair that begins with the labels of the pair before.

        Motion goes on, so there is a good candidate to fuse the labels with: one outer iteration
        less and a shorter rounding are enough.
        """
        rounding: Rounding = "rows" if self.rounding == "chains" else self.rounding
        return replace(self, outer=max(1, self.outer - 1), rounding=rounding)
