"""What the columns of the tables of a report are, and how their figures are written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes
    ----------
    name : str
        Its key in `PairRecord.as_row` or `Evaluation.summary`.
    label : str
        Its short heading.
    title : str
        What it is, in a sentence.
    group : str
        With which others it is shown.
    scale, digits : float, int
        A figure is multiplied by the first and written with so many decimals.
    unit : str
        Of the figure as it is written.
    best : callable or None
        `min` or `max`, whichever is better; None if it is no merit.
    """

    name: str
    label: str
    title: str
    group: str
    scale: float = 1.0
    digits: int = 3
    unit: str = "px"
    best: Any = min

    @property
    def text(self) -> bool:
        """Whether it holds words instead of figures."""
        return self.name in ("pair", "failed")

    def format(self, value: float | None) -> str:
        """Return a figure as it is written, "–" for what is not known."""
        if value is None or not math.isfinite(value):
            return "–"
        return f"{value * self.scale:.{self.digits}f}"


GROUPS = {
    "errors": "Errors",
    "occlusion": "Occlusion",
    "outliers": "Outliers",
    "cost": "Cost",
    "pixels": "Pixels",
}
"""Groups of columns, and what they are called; "pair" is the one that is always there."""

_VISIBLE = "the pixels that are not occluded"


def _error(name: str, label: str, where: str, group: str = "errors") -> Column:
    return Column(name, label, f"Mean endpoint error (EPE) of {where}, in pixels", group)


def _share(name: str, label: str, what: str) -> Column:
    return Column(name, label, what, "outliers", 100, 2, "%")


def _outlier(limit: int, noc: bool) -> Column:
    where = _VISIBLE if noc else "all pixels"
    return _share(
        f"outlier_{limit}px" + "_noc" * noc,
        f">{limit} px" + " noc" * noc,
        f"Share of {where} whose endpoint error is above {limit} px, in percent",
    )


def _count(name: str, label: str, what: str) -> Column:
    return Column(name, label, f"Number of pixels {what}", "pixels", 1, 0, "", None)


COLUMNS = (
    Column("pair", "pair", "Name of the pair", "pair", best=None),
    _error("epe_all", "EPE", "all pixels"),
    _error("epe_noc", "EPE noc", _VISIBLE, "occlusion"),
    _error("epe_occ", "EPE occ", "the occluded pixels", "occlusion"),
    _error("s0_10", "s0-10", "pixels that move less than 10 px"),
    _error("s10_40", "s10-40", "pixels that move 10 to 40 px"),
    _error("s40plus", "s40+", "pixels that move 40 px or more"),
    _error("d0_10", "d0-10", "visible pixels within 10 px of occlusion boundaries", "occlusion"),
    _error("d10_60", "d10-60", "visible pixels 10 to 60 px off occlusion boundaries", "occlusion"),
    _error(
        "d60_140", "d60-140", "visible pixels 60 to 140 px off occlusion boundaries", "occlusion"
    ),
    _share(
        "fl_all",
        "Fl-all",
        "Share of all pixels whose endpoint error is above 3 px and above 5 % of the true motion, "
        "in percent (KITTI)",
    ),
    _share("fl_noc", "Fl-noc", f"Like Fl-all, of {_VISIBLE}, in percent"),
    *(_outlier(limit, noc) for noc in (False, True) for limit in (1, 3, 5)),
    Column(
        "angular_all",
        "angle",
        "Mean angle between (u, v, 1) of the flow and of the truth, in degrees",
        "errors",
        1,
        2,
        "°",
    ),
    Column(
        "angular_noc",
        "angle noc",
        f"Mean angular error of {_VISIBLE}, in degrees",
        "occlusion",
        1,
        2,
        "°",
    ),
    _count("pixels", "all", "of known truth"),
    _count("pixels_noc", "noc", "that are not occluded"),
    _count("pixels_occ", "occ", "that are occluded"),
    _count("pixels_s0_10", "in s0-10", "that move less than 10 px"),
    _count("pixels_s10_40", "in s10-40", "that move 10 to 40 px"),
    _count("pixels_s40plus", "in s40+", "that move 40 px or more"),
    _count("pixels_d0_10", "in d0-10", "within 10 px of occlusion boundaries"),
    _count("pixels_d10_60", "in d10-60", "10 to 60 px off occlusion boundaries"),
    _count("pixels_d60_140", "in d60-140", "60 to 140 px off occlusion boundaries"),
    Column(
        "ause",
        "AUSE",
        "Area between the sparsification curves of the confidence and of the true errors: "
        "0 if the confidence orders the pixels perfectly",
        "errors",
        unit="",
    ),
    Column(
        "occlusion_f1",
        "occl. F1",
        "F1 score of the occluded pixels that were found: 1 if they are exactly the true ones",
        "occlusion",
        unit="",
        best=max,
    ),
    Column(
        "gap",
        "gap",
        "Duality gap of the joint model, relative to its bound, in percent",
        "cost",
        100,
        2,
        "%",
    ),
    Column("seconds", "seconds", "Time for a pair, without reading files", "cost", unit="s"),
    Column(
        "peak_memory", "memory", "Most memory in use at a time, in megabytes", "cost", 1e-6, 0, "MB"
    ),
    Column("failed", "failed", "What went wrong", "cost", best=None),
)
"""All columns of `PairRecord.as_row`, in their order."""

BY_NAME: Mapping[str, Column] = {column.name: column for column in COLUMNS}
