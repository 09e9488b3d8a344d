"""Evaluations with chosen errors, without running a method."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hamflow.evaluation import Evaluation, PairRecord, epe_metrics


def record(pair: str, error: float | None, pixels: int = 1, seconds: float = 1.0) -> PairRecord:
    """A pair with this error at each of its pixels, or one that failed."""
    if error is None:
        return PairRecord(pair, None, seconds, failed="gave up")
    flow = np.zeros((1, pixels, 2))
    flow[..., 0] = error
    return PairRecord(pair, epe_metrics(flow, np.zeros((1, pixels, 2))), seconds)


def evaluation(label: str, errors: dict[str, float | None], **data: Any) -> Evaluation:
    records = tuple(record(pair, error) for pair, error in errors.items())
    return Evaluation(label, {"data": data, "pairs": list(errors), "method": label}, records)


def errors_of(prefix: str, *errors: float | None) -> dict[str, float | None]:
    return {f"{prefix}{number}": error for number, error in enumerate(errors)}


def write_log(path: Path, found: Evaluation) -> Path:
    header = {"work": "evaluation", "settings": found.settings}
    lines = [header, *(one.as_json() for one in found.records)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
