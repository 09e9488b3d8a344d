"""The log of the steps of a run: records, TensorBoard events, and a learning curve."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hamflow._resume import WorkLog
from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.io._text import read_rows
from hamflow.learning.config import TrainConfig
from hamflow.learning.validation import Validation

if TYPE_CHECKING:
    from hamflow.learning.loop import Step

CURVE, PICTURE = "curve.csv", "curve.png"
_STEP = ("number", "loss", "rate", "norm", "constant_bits", "waited", "seconds")
_VALIDATION = tuple(f"val_{field.name}" for field in dataclasses.fields(Validation))
COLUMNS = _STEP + _VALIDATION


class StepLog:
    """Records every step of a run; a continued run repeats those after its checkpoint."""

    def __init__(self, log: WorkLog, config: TrainConfig, step: int) -> None:
        self._log = log
        self._path = log.path.with_name(CURVE)
        self._events = _events(log.path.parent, step)
        self._title = f"{config.network.kind} {config.model.upper()}"

    def add(self, step: Step) -> None:
        """Record a step."""
        values: dict[str, Any] = {name: getattr(step, name) for name in _STEP[1:]}
        if step.validation is not None:
            for name, value in dataclasses.asdict(step.validation).items():
                values[f"val_{name}"] = None if math.isnan(value) else value  # as JSON has no NaN
        self._log.add(str(step.number), **values)
        if self._events is not None:
            for name, value in values.items():
                known = math.nan if value is None else value
                self._events.add_scalar(name.replace("val_", "validation/"), known, step.number)

    def save(self, last: int) -> None:
        """Write the curve up to a step as a table, and as a picture if matplotlib is installed."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for number in range(1, last + 1):
            record = self._log.records.get(str(number), {})
            row = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in record.items()}
            writer.writerow(row | {"number": number})
        with atomic_write(self._path) as file:
            file.write(text.getvalue().encode())
        try:
            from hamflow.learning.plot import plot_curve  # noqa: PLC0415

            plot_curve(self._path, self._path.with_name(PICTURE), title=self._title)
        except ImportError:
            pass

    def close(self) -> None:
        """Close the events."""
        if self._events is not None:
            self._events.close()


def read_curve(path: Path) -> list[dict[str, str]]:
    """Return the rows of a learning curve."""
    columns, rows = read_rows(path)
    if tuple(columns) != COLUMNS:
        raise FileError(
            f"{path}: is not a learning curve, whose first line is {','.join(COLUMNS)}; give a "
            f"{CURVE}."
        )
    return rows


def _events(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415
    except ImportError:
        return None  # TensorBoard is optional
    return SummaryWriter(str(folder / "events"), purge_step=step + 1)
