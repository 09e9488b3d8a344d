"""Results in files: written by the worker, read by the server without loading all of them.

Arrays are ``.npy`` files that are mapped into memory, so that the answer about one pixel reads only
what it needs. Everything else is JSON.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow.crf.solver import CrfStep
from hamflow.errors import FileError
from hamflow.pipeline.explain import Explanation
from hamflow.prior import Prior
from hamflow.result import FlowResult
from hamflow.window import Window

_ARRAYS = ("flow", "backward", "occlusion", "confidence")
_NUMBERS = ("energy", "bound", "gap", "scale", "timings", "cut", "region")
_EXPLAINING = ("bits0", "bits1", "u", "v", "slack_u", "slack_v")
_EXPLAINING_NUMBERS = ("scale", "outside", "slack_unit")
_LONGEST = 1e6  # pixels of a vector
WHY = "why"
"""The folder, in that of a result, of what explains it."""


def write_result(folder: Path, result: FlowResult, explanation: Explanation | None) -> None:
    """Write a result, and what explains it, to an empty folder."""
    for name in _ARRAYS:
        _write_array(folder, name, getattr(result, name))
    numbers = {name: getattr(result, name) for name in _NUMBERS}
    numbers["window"] = result.window.as_tuple()
    numbers["history"] = [asdict(step) for step in result.history]
    _write_numbers(folder, numbers)
    if explanation is None:
        return
    why = folder / WHY
    why.mkdir()
    for name in _EXPLAINING:
        _write_array(why, name, getattr(explanation, name))
    numbers = {name: getattr(explanation, name) for name in _EXPLAINING_NUMBERS}
    numbers["window"] = explanation.window.as_tuple()
    prior = explanation.prior
    if prior is not None:
        _write_array(why, "prior_flow", prior.flow)
        _write_array(why, "prior_weight", prior.weight)
        numbers["prior"] = [prior.slope, prior.free]
    _write_numbers(why, numbers)


def read_result(folder: Path) -> FlowResult:
    """Return a result whose arrays are mapped into memory."""
    numbers = _read_numbers(folder)
    numbers["window"] = Window(*numbers["window"])
    numbers["history"] = tuple(CrfStep(**step) for step in numbers["history"])
    if numbers["region"] is not None:
        numbers["region"] = tuple(numbers["region"])
    numbers |= {name: _read_array(folder, name) for name in _ARRAYS}
    return FlowResult(**numbers)


def read_explanation(folder: Path) -> Explanation | None:
    """Return what explains a result; None if that was not kept."""
    why = folder / WHY
    if not why.is_dir():
        return None
    numbers = _read_numbers(why)
    numbers["window"] = Window(*numbers["window"])
    prior = None
    if "prior" in numbers:
        flow, weight = (_read_array(why, name) for name in ("prior_flow", "prior_weight"))
        assert flow is not None
        assert weight is not None
        prior = Prior(flow, weight, *numbers.pop("prior"))
    numbers |= {name: _read_array(why, name) for name in _EXPLAINING}
    return Explanation(**numbers | {"prior": prior})


def load_saved(path: Path) -> FlowResult:
    """Load a result that was saved earlier; its vectors must be such as the estimator finds.

    Raises
    ------
    FileError
        If it cannot be read, or could not be shown.
    """
    result = FlowResult.load(path)
    arrays = ((result.flow, _LONGEST), (result.backward, _LONGEST), (result.confidence, 1.0))
    for array, most in arrays:
        # NaN fails every comparison.
        if array is not None and not (abs(array) <= most).all():
            raise FileError(
                f"{path}: holds numbers that no result has, such as NaN; estimate the flow again."
            )
    return result


def _write_array(folder: Path, name: str, array: NDArray[Any] | None) -> None:
    if array is not None:
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def _read_array(folder: Path, name: str) -> NDArray[Any] | None:
    path = folder / f"{name}.npy"
    if not path.exists():
        return None
    array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def _write_numbers(folder: Path, numbers: dict[str, Any]) -> None:
    (folder / "numbers.json").write_text(json.dumps(numbers), encoding="ascii")


def _read_numbers(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "numbers.json").read_text(encoding="ascii"))
    return found
