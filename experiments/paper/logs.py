"""Logs of earlier evaluations, looked at before hours of work begin."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hamflow._resume import read_log
from hamflow.errors import FileError


def check_logs(logs: Iterable[Path], *, resume: bool) -> None:
    """Raise at once what `hamflow.evaluation.evaluate` would raise when it comes to a log.

    Parameters
    ----------
    logs : iterable of Path
        Files that may exist.
    resume : bool
        Whether to go on with what they hold.

    Raises
    ------
    FileError
        If one is something else, or holds pairs that `resume` does not ask to keep.
    """
    for log in logs:
        if log.exists() and read_log(log, "evaluation")[1] and not resume:
            raise FileError(
                f"{log}: holds the pairs of an earlier evaluation already; resume that evaluation, "
                "choose another place, or remove it."
            )
