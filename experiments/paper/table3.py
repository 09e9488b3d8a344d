"""Table 3 of the paper, and our presets with and without refinement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.paper.logs import check_logs
from experiments.paper.published import COMPARISON
from experiments.variants import UNREFINED, Variant
from hamflow._types import CountProgress
from hamflow.config import PRESETS
from hamflow.errors import InputError
from hamflow.evaluation.methods import Method, MethodConfig
from hamflow.evaluation.records import Evaluation
from hamflow.evaluation.runner import Pair, evaluate

SUFFIX = "-unrefined"
"""The suffix of presets that stop at whole pixels of the matching scale."""
DEFAULT = ("paper", f"balanced{SUFFIX}", "balanced", "fast")
"""The paper's method, our default preset without and with refinement, and the fast one."""
PUBLISHED_ON = "Sintel clean test"
"""The data set of the paper's errors."""

NOTE = (
    "The published errors are from the test set of Sintel clean, measured by the benchmark's "
    "server; ours are from other pairs. Compare errors within each group only."
)


def method_of(name: str) -> Method | Variant:
    """Return the method of a preset, of one without its refinement, or of a TOML file.

    Parameters
    ----------
    name : str
        As `MethodConfig` takes it, or a preset's name that ends in `SUFFIX`.

    Raises
    ------
    InputError
        If there is no such preset.
    """
    preset = name.removesuffix(SUFFIX)
    if preset not in PRESETS and not name.endswith(".toml"):
        raise InputError(
            f"There is no preset {name!r}; choose one of {', '.join(PRESETS)}, one of these with "
            f"the suffix {SUFFIX}, or a .toml file."
        )
    return Method(name) if preset == name else Variant(preset, name, UNREFINED)


def run(
    pairs: Sequence[Pair],
    presets: Sequence[str] = DEFAULT,
    *,
    data: Mapping[str, Any] | None = None,
    logs: Path | None = None,
    resume: bool = False,
    progress: Callable[[str], CountProgress] = lambda _: lambda *_: None,
) -> dict[str, Evaluation]:
    """Evaluate presets on all pairs of a data set.

    Parameters
    ----------
    pairs : sequence of pairs
        A data set.
    presets : sequence of str
        As `method_of` takes them.
    data : mapping, optional
        A description of the data set, for the logs.
    logs : Path, optional
        A folder for the finished pairs.
    resume : bool
        Continue the evaluations in that folder.
    progress : callable
        Called with the name of each evaluation; returns the callback for its pairs.

    Returns
    -------
    dict
        An evaluation for each preset, by the names of the methods.

    Raises
    ------
    InputError
        If there is no such preset, or two have the same name.
    FileError
        If there are logs and `resume` is False, or a file cannot be used.
    """
    # All of them first, so that a wrong name is not found after hours.
    methods = [method_of(name) for name in presets]
    labels = [method.label for method in methods]
    if not labels or len(set(labels)) != len(labels):
        raise InputError("--presets must name one or more presets, each once.")
    files = {} if logs is None else logs_of(presets, logs)
    check_logs(files.values(), resume=resume)
    return {
        method.label: evaluate(
            pairs,
            method,
            data=data,
            log=files.get(method.label),
            progress=progress(method.label),
        )
        for method in methods
    }


def logs_of(presets: Sequence[str], folder: Path) -> dict[str, Path]:
    """Return the log of each method in a folder, by the labels of the methods."""
    labels = (MethodConfig(name).label for name in presets)
    return {label: folder / f"{label}.jsonl" for label in labels}


def rows(found: Mapping[str, Evaluation], where: str) -> list[dict[str, Any]]:
    """Return a line for each method, the published ones first, for a CSV.

    Parameters
    ----------
    found : mapping
        As `run` returns it.
    where : str
        The name of the data set.

    Returns
    -------
    list of dict
        With the errors over visible pixels (noc) and over all pixels; None for unknown values.
    """
    blank = dict.fromkeys(("pairs", "failed", "seconds"))
    table: list[dict[str, Any]] = [
        {"method": name, "data": PUBLISHED_ON, "noc": noc, "all": everything, **blank}
        for name, (noc, everything) in COMPARISON.items()
    ]
    for name, evaluation in found.items():
        summary = evaluation.summary()
        table.append(
            {
                "method": name,
                "data": where,
                "noc": summary.get("epe_noc"),
                "all": summary.get("epe_all"),
                "pairs": summary["images"],
                "failed": summary["failed"],
                "seconds": summary["seconds"],
            }
        )
    return table


def notes(found: Mapping[str, Evaluation]) -> list[str]:
    """Return sentences that explain the rows."""
    # All methods have the same pairs; the one with the fewest failures knows most about them.
    most = max(found.values(), key=lambda evaluation: len(evaluation.done))
    known = most.occlusion_note()
    return [NOTE] if known is None else [NOTE, known]
