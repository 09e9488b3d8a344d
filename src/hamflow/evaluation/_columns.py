"""The columns of the tables in a report: what they mean, and how their numbers are written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str  # the key in `PairRecord.as_row` or `Evaluation.summary`
    label: str  # the short heading
    title: str  # the explanation
    group: str  # one of GROUPS, or "pair"
    scale: float = 1.0  # numbers are multiplied by this
    digits: int = 3  # decimals
    unit: str = "px"
    best: Any = min  # min or max, whichever is better; None if neither is

    @property
    def text(self) -> bool:
        """Whether the cells are words instead of numbers."""
        return self.name in ("pair", "failed")

    def format(self, value: float | None) -> str:
        """Return a number as text, or a dash if it is not known."""
        if value is None or not math.isfinite(value):
            return "–"
        return f"{value * self.scale:.{self.digits}f}"

    def with_unit(self, value: float | None) -> str:
        """Return a number as text with its unit, or a dash if it is not known."""
        text = self.format(value)
        return text if text == "–" or not self.unit else f"{text} {self.unit}"


GROUPS = {
    "errors": "Errors",
    "occlusion": "Occlusion",
    "outliers": "Outliers",
    "cost": "Cost",
    "pixels": "Pixels",
}
"""The groups of columns, which the user can hide, and their titles. The group "pair" stays."""

_VISIBLE = "the visible pixels"
_FL = (
    "Share of all pixels with an endpoint error above 3 px and above 5 % of the true motion (KITTI)"
)
# Parts of the image, the group of their columns, and the pixels that they consist of.
_REGIONS = {
    "s0_10": ("errors", "that move less than 10 px"),
    "s10_40": ("errors", "that move 10 to 40 px"),
    "s40plus": ("errors", "that move 40 px or more"),
    "d0_10": ("occlusion", "that are visible, less than 10 px from an occlusion boundary"),
    "d10_60": ("occlusion", "that are visible, 10 to 60 px from an occlusion boundary"),
    "d60_140": ("occlusion", "that are visible, 60 to 140 px from an occlusion boundary"),
}


def _error(name: str, label: str, where: str, group: str) -> Column:
    return Column(name, label, f"Mean endpoint error (EPE) of {where}, in pixels", group)


def _share(name: str, label: str, title: str) -> Column:
    return Column(name, label, f"{title}, in percent", "outliers", 100, 2, "%")


def _angle(name: str, label: str, where: str, group: str) -> Column:
    title = f"Mean angle between (u, v, 1) of the flow and of the truth, of {where}, in degrees"
    return Column(name, label, title, group, 1, 2, "°")


def _outliers(limit: int, noc: bool) -> Column:
    title = f"Share of {_VISIBLE if noc else 'all pixels'} with an endpoint error above {limit} px"
    return _share(f"outlier_{limit}px" + "_noc" * noc, f">{limit} px" + " noc" * noc, title)


def _count(name: str, label: str, which: str) -> Column:
    return Column(name, label, f"Number of pixels {which}", "pixels", 1, 0, "", None)


def _region_label(name: str) -> str:
    return name.replace("plus", "+").replace("_", "-")


_AUSE = (
    "Area between the sparsification curves of the confidence and of the true errors; 0 is ideal"
)
_F1 = "F1 score of the estimated occlusion; 1 is ideal"
_GAP = "Duality gap of the joint model, relative to its bound, in percent"

COLUMNS = (
    Column("pair", "pair", "Name of the pair", "pair", best=None),
    _error("epe_all", "EPE", "all pixels", "errors"),
    _error("epe_noc", "EPE noc", _VISIBLE, "occlusion"),
    _error("epe_occ", "EPE occ", "the occluded pixels", "occlusion"),
    *(_error(n, _region_label(n), f"pixels {w}", group) for n, (group, w) in _REGIONS.items()),
    _share("fl_all", "Fl-all", _FL),
    _share("fl_noc", "Fl-noc", f"Like Fl-all, of {_VISIBLE}"),
    *(_outliers(limit, noc) for noc in (False, True) for limit in (1, 3, 5)),
    _angle("angular_all", "angle", "all pixels", "errors"),
    _angle("angular_noc", "angle noc", _VISIBLE, "occlusion"),
    _count("pixels", "all", "with known true flow"),
    _count("pixels_noc", "noc", "that are visible"),
    _count("pixels_occ", "occ", "that are occluded"),
    *(_count(f"pixels_{n}", f"in {_region_label(n)}", w) for n, (_, w) in _REGIONS.items()),
    Column("ause", "AUSE", _AUSE, "errors", unit=""),
    Column("occlusion_f1", "occl. F1", _F1, "occlusion", unit="", best=max),
    Column("gap", "gap", _GAP, "cost", 100, 2, "%"),
    Column("seconds", "seconds", "Time per pair, without reading files", "cost", unit="s"),
    Column("peak_memory", "memory", "Peak memory in megabytes", "cost", 1e-6, 0, "MB"),
    Column("failed", "failed", "Why the method failed", "cost", best=None),
)
"""All columns of `PairRecord.as_row`, in the same order."""

BY_NAME: Mapping[str, Column] = {column.name: column for column in COLUMNS}


def counted(number: int, noun: str) -> str:
    """Return a number and what is counted, such as "1 pair" or "2 pairs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
