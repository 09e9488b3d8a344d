"""Check the logs of earlier evaluations before hours of work."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hamflow._resume import read_log
from hamflow.errors import FileError


def check_logs(logs: Iterable[Path], *, resume: bool) -> None:
    """Raise at once what `hamflow.evaluation.evaluate` would raise for a log.

    Parameters
    ----------
    logs : iterable of Path
        Files that may exist.
    resume : bool
        Whether to continue the evaluations.

    Raises
    ------
    FileError
        If a file is not a log, or contains finished pairs and `resume` is False.
    """
    for log in logs:
        if log.exists() and read_log(log, "evaluation")[1] and not resume:
            raise FileError(
                f"{log}: contains the pairs of an earlier evaluation; continue it with --resume, "
                "choose another --output, or remove the file."
            )
