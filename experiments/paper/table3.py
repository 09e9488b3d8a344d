"""The paper's comparison with other methods, and our presets with and without refinement."""

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
"""How the name of a preset ends that stops at whole pixels of the matching scale."""
DEFAULT = ("paper", f"balanced{SUFFIX}", "balanced", "fast")
"""The paper's own method, our default without and with refinement, and the quick one."""
PUBLISHED_ON = "Sintel clean test"
"""Where the paper's figures are from."""

NOTE = (
    "The published errors are those of the test set of Sintel clean, measured by the benchmark's "
    "server; ours are those of the pairs on the disk. Compare within each group, not across."
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
            f"{SUFFIX} at its end, or name a .toml file."
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
        What the data set is.
    logs : Path, optional
        A folder for the pairs that are done.
    resume : bool
        Go on with what is there.
    progress : callable
        Told what comes next; returns what is told about its pairs.

    Returns
    -------
    dict
        An evaluation for each preset, by the names of the methods.

    Raises
    ------
    InputError
        If there is no such preset, or two have one name.
    FileError
        If there are logs that `resume` does not ask to keep, or a file cannot be used.
    """
    # All of them first: a wrong name must not show after hours.
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
        What the pairs are.

    Returns
    -------
    list of dict
        With the errors of visible pixels (noc) and of all, over all pixels together; None for what
        is not known.
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
    """Return what is to be known about the rows, in sentences."""
    # The same pairs for all methods; where one failed on some, another says more.
    most = max(found.values(), key=lambda evaluation: len(evaluation.done))
    known = most.occlusion_note()
    return [NOTE] if known is None else [NOTE, known]
