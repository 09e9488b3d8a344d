"""Stages that only tests have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hamflow.crf.backend import Backend


@dataclass(frozen=True)
class Constant:
    """A refinement that says the same of every pixel."""

    u: float = 1.0
    method: ClassVar[str] = "constant"

    def __call__(
        self, frames: Any, flow: Any, trusted: Any, scale: int, opposite: Any = None
    ) -> Any:
        return np.full((*frames[0].shape, 2), [self.u, 0], np.float32)


class Counting(Backend):
    """The usual backend, and how often each operation was called."""

    calls: ClassVar[list[str]] = []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name != "calls":
            Counting.calls.append(name)
        return super().__getattribute__(name)
