"""Reading of results that earlier commands have written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hamflow.io import read_flow
from hamflow.io._npz import open_npz
from hamflow.io._record import JSON_KEY
from hamflow.result import FlowResult


def read_result(path: Path) -> FlowResult | NDArray[np.float32]:
    """Read a whole result, or a flow if the file holds nothing else."""
    if path.suffix.lower() == ".npz":
        with open_npz(path) as archive:
            whole = JSON_KEY in archive
        if whole:
            return FlowResult.load(path)
    return read_flow(path)
