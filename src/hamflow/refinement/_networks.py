"""The small networks of the completions and of the assessment, fitted to rendered scenes."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@cache
def network(
    name: Literal["candidates", "choice", "confidence", "confidence-choice"],
) -> NDArray[np.float32]:
    """Return the numbers of a network as its kernel takes them.

    ``experiments/scripts/NAME.py`` fits one anew (``confidence.py`` both kinds), except that the
    shipped network of the candidates is from a forerunner of that script.
    """
    path = resources.files("hamflow.refinement") / "networks" / f"{name}.npy"
    with path.open("rb") as file:
        numbers: NDArray[np.float32] = np.load(file, allow_pickle=False)
    return numbers
