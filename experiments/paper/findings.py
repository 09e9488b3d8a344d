"""The paper's statements about its Table 1, checked with other measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.paper.table1 import TITLES, Network

Errors = dict[str, float | None]
"""Endpoint errors over visible (noc) and over all pixels; None if unknown."""
Table = dict[Network, dict[str, Errors]]

_CLOSE = 1.25  # the paper calls 1.17 and 1.19 "similarly"
_LEVEL = 1.1  # its joint models lie within 1.12 of each other


@dataclass(frozen=True)
class Finding:
    """A statement of the paper, and whether it holds here.

    Attributes
    ----------
    statement : str
        What the paper says.
    holds : bool
        Whether the measurements agree with it.
    figures : str
        These measurements.
    """

    statement: str
    holds: bool
    figures: str


def table_of(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the errors of each network and column, pooled over the pixels of all pairs.

    Parameters
    ----------
    rows : sequence of mapping
        As `experiments.paper.table1.rows` returns them, or as they are read from a CSV.
    """
    groups: dict[tuple[Network, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        network = Network(row["train"], int(row["layers"]))
        groups.setdefault((network, row["column"]), []).append(row)
    table: Table = {}
    for (network, column), group in groups.items():
        table.setdefault(network, {})[column] = {
            "noc": _pooled(group, "epe_noc", "pixels_noc"),
            "all": _pooled(group, "epe_all", "pixels"),
        }
    return table


def known_over(table: Table) -> str:
    """Return over which pixels to compare: noc, or all if no occlusions are known."""
    cells = (cell for columns in table.values() for cell in columns.values())
    return "noc" if any(cell["noc"] is not None for cell in cells) else "all"


def shown(errors: Errors | tuple[float, float] | None) -> str:
    """Return errors as the paper prints them, noc (all), with a dash for unknown ones.

    Parameters
    ----------
    errors : dict, tuple or None
        As in the result of `table_of`, or in `experiments.paper.published.TABLE1`.
    """
    if errors is None:
        return "–"
    pair = errors if isinstance(errors, tuple) else (errors["noc"], errors["all"])
    noc, everything = ("–" if error is None else f"{error:.2f}" for error in pair)
    return f"{noc} ({everything})"


def findings(table: Table, over: str = "noc") -> list[Finding]:
    """Return which of the paper's findings hold, as far as the table has their networks.

    Parameters
    ----------
    table : dict
        As `table_of` returns it.
    over : "noc" or "all"
        Over which pixels errors are compared; see `known_over`.
    """
    errors = {
        (network, column): cell[over]
        for network, columns in table.items()
        for column, cell in columns.items()
    }
    # For QQ, the column "qq" is the network as trained.
    trained = {
        network: errors.get((network, "qq" if network.train == "qq" else "trained"))
        for network in table
    }
    found = [
        _compared("FQ as trained is close to FF", trained, ("fq", "ff"), _CLOSE),
        _compared("FQ as trained is better than QQ", trained, ("fq", "qq"), 1.0),
        _within(
            "FF and FQ get worse when they are evaluated as QQ",
            errors,
            ("qq", "trained"),
            (1.0, math.inf),
        ),
        _within(
            "The joint model is about as good with Q as with F",
            errors,
            ("crf_q", "crf_f"),
            (1 / _LEVEL, _LEVEL),
        ),
        _leveled(errors, trained),
    ]
    return [finding for finding in found if finding is not None]


def _compared(
    statement: str,
    trained: Mapping[Network, float | None],
    kinds: tuple[str, str],
    limit: float,
) -> Finding | None:
    ratios = {}
    for network, error in trained.items():
        other = trained.get(Network(kinds[1], network.layers))
        if network.train == kinds[0] and error is not None and other:
            ratios[network.layers] = error / other
    if not ratios:
        return None
    figures = ", ".join(f"{ratio:.2f} ({layers} layers)" for layers, ratio in ratios.items())
    what = f"ratio {kinds[0].upper()} / {kinds[1].upper()}: {figures}"
    return Finding(statement, all(ratio < limit for ratio in ratios.values()), what)


def _within(
    statement: str,
    errors: Mapping[tuple[Network, str], float | None],
    columns: tuple[str, str],
    limits: tuple[float, float],
) -> Finding | None:
    """Compare two columns of each network that has both."""
    ratios = {}
    for network in dict.fromkeys(network for network, _ in errors):
        error, other = (errors.get((network, column)) for column in columns)
        if error is not None and other:
            ratios[network.name.upper()] = error / other
    if not ratios:
        return None
    figures = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    holds = all(limits[0] < ratio < limits[1] for ratio in ratios.values())
    one, other_name = (TITLES[column] for column in columns)
    return Finding(statement, holds, f"{one} / {other_name}: {figures}")


def _leveled(
    errors: Mapping[tuple[Network, str], float | None],
    trained: Mapping[Network, float | None],
) -> Finding | None:
    joint = [e for (_, column), e in errors.items() if column.startswith("crf") and e]
    local = [e for e in trained.values() if e]
    if len(joint) < 2 or len(local) < 2:
        return None
    spreads = max(local) / min(local), max(joint) / min(joint)
    return Finding(
        "The joint model makes the networks more equal",
        spreads[1] < spreads[0],
        f"largest / smallest error: {spreads[0]:.2f} as trained, {spreads[1]:.2f} with the CRF",
    )


def _pooled(group: Sequence[Mapping[str, Any]], error: str, pixels: str) -> float | None:
    terms = [(float(row[error]), int(row[pixels])) for row in group if row[error] not in ("", None)]
    count = sum(number for _, number in terms)
    return math.fsum(mean * number for mean, number in terms) / count if count else None
