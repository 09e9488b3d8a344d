"""The joint model as a stage of the estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from hamflow._types import Bits, Image, Labels
from hamflow.crf.config import CrfConfig
from hamflow.crf.solver import CrfPass, CrfResult, CrfStep, solve
from hamflow.matching._arrays import words_of
from hamflow.prior import Prior
from hamflow.window import Window


@dataclass(frozen=True)
class JointModel(CrfConfig):
    """The matcher of the paper: a CRF over u and v; parameters as for `hamflow.crf.CrfConfig`."""

    method: ClassVar[str] = "joint"

    def __call__(
        self,
        bits: tuple[Bits, Bits],
        image: Image,
        window: Window,
        initial_labels: tuple[Labels, Labels] | None = None,
        prior: Prior | None = None,
        *,
        callback: Callable[[CrfStep | CrfPass], object] | None = None,
    ) -> CrfResult:
        """Match two images by their descriptors; see `hamflow.crf.solve`.

        The data costs of descriptors of several words are larger, and so is then the smoothness.
        """
        words = words_of(bits[0])
        scaled = {n: words * getattr(self, n) for n in ("c_outside", "tau1", "tau2")}
        return solve(
            bits0=bits[0],
            bits1=bits[1],
            image=image,
            window=window,
            config=replace(self, **scaled),
            initial_labels=initial_labels,
            unary=None if prior is None else prior.unary(window),
            callback=callback,
            pass_callback=callback,
        )

    def warm_started(self) -> JointModel:
        """Return the model for a pair that begins with the labels of the pair before.

        Motion goes on, so one outer iteration less is enough.
        """
        return replace(self, outer=max(1, self.outer - 1))
