"""The learning curve: as CSV, as TensorBoard events, and as a picture."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hamflow.errors import FileError, file_access
from hamflow.io._atomic import atomic_write
from hamflow.learning.config import TrainConfig
from hamflow.learning.validation import Validation

if TYPE_CHECKING:
    from hamflow.learning.loop import Step

CURVE, PICTURE = "curve.csv", "curve.png"
_STEP = ("number", "loss", "rate", "norm", "constant_bits", "waited", "seconds")
_VALIDATION = tuple(f"val_{field.name}" for field in dataclasses.fields(Validation))
COLUMNS = _STEP + _VALIDATION


class RunLog:
    """Writes every step of a run; a resumed one continues where its checkpoint was."""

    def __init__(self, folder: Path, config: TrainConfig, step: int) -> None:
        self._path = folder / CURVE
        rows = read_curve(self._path) if self._path.exists() and step else []
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        # What was logged after the checkpoint will be logged again.
        writer.writerows(row for row in rows if int(row["number"]) <= step)
        with atomic_write(self._path) as file:
            file.write(text.getvalue().encode())
        self._file = open(self._path, "a", newline="")  # noqa: SIM115
        self._writer = csv.DictWriter(self._file, COLUMNS, lineterminator="\n")
        self._events = _events(folder, step)
        self._title = f"{config.network.kind} {config.model.upper()}"

    def add(self, step: Step) -> None:
        """Write down a step."""
        row: dict[str, Any] = {name: getattr(step, name) for name in _STEP}
        if step.validation is not None:
            for name, value in dataclasses.asdict(step.validation).items():
                row[f"val_{name}"] = value
        self._writer.writerow(
            {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
        )
        self._file.flush()
        if self._events is not None:
            for name, value in row.items():
                if name != "number":
                    self._events.add_scalar(name.replace("val_", "validation/"), value, step.number)

    def draw(self) -> None:
        """Draw the curve so far, if matplotlib is there."""
        try:
            from hamflow.learning.plot import plot_curve  # noqa: PLC0415

            plot_curve(self._path, self._path.with_name(PICTURE), title=self._title)
        except ImportError:
            pass

    def close(self) -> None:
        """Finish the files."""
        self._file.close()
        if self._events is not None:
            self._events.close()


def read_curve(path: Path) -> list[dict[str, str]]:
    """Return the rows of a learning curve.

    Raises
    ------
    FileError
        If the file is missing or is not a learning curve.
    """
    try:
        with file_access(path), open(path, newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: cannot be read ({error}).") from error
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise FileError(
            f"{path}: is not a learning curve; its first line should be {','.join(COLUMNS)}."
        )
    # A run that was killed may leave half a line behind.
    return [row for row in rows if None not in row.values() and row["number"].isdecimal()]


def _events(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415
    except ImportError:
        return None  # TensorBoard is welcome, not needed
    return SummaryWriter(str(folder / "events"), purge_step=step + 1)
