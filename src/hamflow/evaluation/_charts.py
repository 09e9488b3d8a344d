"""The charts of a report, as SVG inside of the page.

The style sheet of the page defines the colors: the classes ``s0``, ``s1`` and so on stand for the
evaluations. ``data-tip`` is the text that the pointer shows, ``data-pair`` the pair of a dot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from hamflow.evaluation._columns import counted
from hamflow.evaluation.records import ERROR_EDGES, Evaluation, PairRecord

MOST = 6
"""The largest number of evaluations in a chart."""

_WIDTH, _HEIGHT = 520, 290
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 12, 12, 46  # margins around the axes
_MOST_TICKS = 8
_SMALLEST = ERROR_EDGES[1]  # smaller errors are drawn like this one, because 0 has no logarithm
_SPREAD = 8  # an axis is logarithmic if the largest value is so many times the smallest


class Key(NamedTuple):
    """An entry of a legend: the class of the color, and its meaning."""

    style: str
    label: str


@dataclass(frozen=True)
class Chart:
    """A drawing with its title and legend."""

    title: str
    svg: str
    keys: tuple[Key, ...] = ()


def charts(evaluations: Sequence[Evaluation]) -> list[Chart]:
    """Return the charts of evaluations; none if the first method failed on every pair."""
    shown = [one for one in evaluations if one.done][:MOST]
    if not evaluations[0].done:
        return []
    found = [_pairs(shown)]
    if any(record.histogram for record in shown[0].done):
        found.insert(0, _pixels(shown))
    curves = [record for record in shown[0].done if record.curve]
    if curves:
        found.append(_sparsification(curves))
    return [*found, _costs(shown)]


class _Axis:
    """Where the values between two ends are in the drawing, on a linear or logarithmic scale."""

    def __init__(
        self, low: float, high: float, places: tuple[float, float], log: bool, whole: bool
    ) -> None:
        self.low, self.high, self.log = low, high, log
        self._least = 1 if whole else 0  # distance of ticks
        self._start, stop = places
        self._step = (stop - self._start) / (self._linear(high) - self._linear(low))

    def _linear(self, value: float) -> float:
        return math.log(value) if self.log else value

    def __call__(self, value: float) -> float:
        return self._start + (self._linear(value) - self._linear(self.low)) * self._step

    def ticks(self) -> list[float]:
        if self.log:
            return _log_ticks(self.low, self.high)
        return _linear_ticks(self.low, self.high, self._least)


def _linear_ticks(low: float, high: float, least: float) -> list[float]:
    """Return round numbers between two ends, at least `least` apart."""
    rough = max((high - low) / 5, least)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = [digit * 10.0**decade for decade in decades for digit in digits]
        found = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(found) <= _MOST_TICKS:
            break
    return found


class _Canvas:
    """A drawing with axes."""

    def __init__(self, title: str, x: _Axis, y: _Axis) -> None:
        self.x, self.y = x, y
        self.root = ElementTree.Element(
            "svg", {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "img", "aria-label": title}
        )

    def add(self, tag: str, style: str, text: str = "", **attributes: Any) -> None:
        """Add an element; underscores in the names of attributes become hyphens."""
        named = {
            name.replace("_", "-"): f"{value:.1f}" if isinstance(value, float) else str(value)
            for name, value in attributes.items()
        }
        ElementTree.SubElement(self.root, tag, {"class": style, **named}).text = text or None

    def frame(self, x_title: str, y_title: str) -> None:
        """Draw the grid and the labels of the axes."""
        left, right, bottom = float(_LEFT), float(_WIDTH - _RIGHT), float(_HEIGHT - _BOTTOM)
        for tick in self.y.ticks():
            place = self.y(tick)
            self.add("line", "grid", x1=left, x2=right, y1=place, y2=place)
            self.add("text", "tick end", brief(tick), x=left - 6, y=place + 4)
        for tick in self.x.ticks():
            place = self.x(tick)
            self.add("line", "grid", x1=place, x2=place, y1=float(_TOP), y2=bottom)
            self.add("text", "tick middle", brief(tick), x=place, y=bottom + 16)
        self.add("text", "axis middle", x_title, x=(left + right) / 2, y=float(_HEIGHT - 8))
        turned = f"translate(13 {(_TOP + bottom) / 2:.0f}) rotate(-90)"
        self.add("text", "axis middle", y_title, transform=turned)

    def path(self, style: str, points: Sequence[tuple[float, float]]) -> None:
        """Draw a line through points."""
        places = (f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
        self.add("path", style, d="M" + "L".join(places))

    def markup(self) -> str:
        """Return the drawing."""
        return ElementTree.tostring(self.root, encoding="unicode")


def brief(value: float) -> str:
    """Return a number with three digits, or all digits before the decimal point."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _x_axis(low: float, high: float, *, log: bool = False) -> _Axis:
    return _Axis(low, high, (_LEFT, _WIDTH - _RIGHT), log, whole=False)


def _y_axis(low: float, high: float, *, log: bool = False, whole: bool = False) -> _Axis:
    return _Axis(low, high, (_HEIGHT - _BOTTOM, _TOP), log, whole)


def _keys(evaluations: Sequence[Evaluation]) -> tuple[Key, ...]:
    if len(evaluations) == 1:
        return ()
    return tuple(Key(f"s{number}", one.label) for number, one in enumerate(evaluations))


def _pixels(evaluations: Sequence[Evaluation]) -> Chart:
    """Return the histogram of the errors of all pixels."""
    shares = []
    for one in evaluations:
        counts = np.zeros(len(ERROR_EDGES), np.int64)
        for record in one.done:
            counts += np.array(record.histogram or [0])
        shares.append((100 * counts / max(1, counts.sum())).tolist())
    below = np.cumsum(shares[0])
    tips = [
        f"{_bin(number)}: {share:.2f} % of the pixels; up to there {below[number]:.1f} %"
        for number, share in enumerate(shares[0])
    ]
    axes = ("endpoint error in pixels", "% of the pixels")
    return _histogram("Endpoint errors of all pixels", axes, shares, tips, _keys(evaluations))


def _pairs(evaluations: Sequence[Evaluation]) -> Chart:
    """Return the histogram of the mean errors of the pairs."""
    bins = (*ERROR_EDGES, np.inf)
    counts = [np.histogram([r.epe for r in one.done], bins)[0].tolist() for one in evaluations]
    tips = [
        f"EPE {_bin(number)}: {counted(count, 'pair')}" for number, count in enumerate(counts[0])
    ]
    axes = ("EPE in pixels", "pairs")
    return _histogram("EPE of each pair", axes, counts, tips, _keys(evaluations), whole=True)


def _histogram(
    title: str,
    axes: tuple[str, str],
    series: Sequence[Sequence[float]],
    tips: Sequence[str],
    keys: tuple[Key, ...],
    *,
    whole: bool = False,
) -> Chart:
    """Draw the first series as bars and the others as outlines, in the bins of `ERROR_EDGES`."""
    filled = np.flatnonzero(np.sum(series, axis=0))
    # One more bin on both sides, because a single bar would be as wide as the chart.
    first, last = max(int(filled[0]) - 1, 0), min(int(filled[-1]) + 1, len(ERROR_EDGES) - 1)
    bins = range(first, last + 1)
    low, high = _edge(first), _edge(last + 1)
    top = max(max(values) for values in series)
    canvas = _Canvas(title, _x_axis(low, high, log=True), _y_axis(0, 1.06 * top, whole=whole))
    canvas.frame(*axes)
    bottom = canvas.y(0)
    for number in bins:
        left, right = canvas.x(_edge(number)) + 0.5, canvas.x(_edge(number + 1)) - 0.5
        place: dict[str, Any] = {"x": left, "width": right - left}
        bar = canvas.y(series[0][number])
        canvas.add("rect", "bar s0", **place, y=bar, height=bottom - bar)
        # The pointer reacts in the whole height of the chart, because bars may be very low.
        whole_height: dict[str, Any] = {"y": float(_TOP), "height": bottom - _TOP}
        canvas.add("rect", "hit", **place, **whole_height, data_tip=tips[number])
    for which, values in enumerate(series[1:], 1):
        steps = [(_edge(number + side), values[number]) for number in bins for side in (0, 1)]
        canvas.path(f"line s{which}", [(low, 0.0), *steps, (high, 0.0)])
    return Chart(title, canvas.markup(), keys)


def _edge(number: int) -> float:
    """Return an edge of a bin for a logarithmic axis, instead of 0 and infinity at the ends."""
    if number == 0:
        return ERROR_EDGES[1] ** 2 / ERROR_EDGES[2]
    if number == len(ERROR_EDGES):
        return ERROR_EDGES[-1] ** 2 / ERROR_EDGES[-2]
    return ERROR_EDGES[number]


def _bin(number: int) -> str:
    if number == len(ERROR_EDGES) - 1:
        return f"above {brief(ERROR_EDGES[-1])} px"
    return f"{brief(ERROR_EDGES[number])} to {brief(ERROR_EDGES[number + 1])} px"


def _sparsification(records: Sequence[PairRecord]) -> Chart:
    """Return the mean sparsification curves of pairs."""
    by_confidence, by_error = (
        [
            (100 * number / len(records[0].curve), float(value))
            for number, value in enumerate(np.mean([getattr(r, name) for r in records], axis=0))
        ]
        for name in ("curve", "oracle")
    )
    title = f"Sparsification, AUSE {np.mean([record.ause for record in records]):.3f}"
    top = max(1.0, *(value for _, value in by_confidence + by_error))
    canvas = _Canvas(title, _x_axis(0, 100), _y_axis(0, 1.06 * top))
    canvas.frame("least confident pixels removed, in %", "error of the rest / of all")
    canvas.path("area s0", [*by_confidence, *by_error[::-1]])
    for style, line in (("oracle", by_error), ("s0", by_confidence)):
        canvas.path(f"line {style}", line)
        for x, y in line:
            place: dict[str, Any] = {"cx": canvas.x(x), "cy": canvas.y(y), "r": 2.5}
            tip = f"{x:.0f} % removed: {100 * y:.0f} % of the error remains"
            canvas.add("circle", f"dot {style}", **place, data_tip=tip)
    keys = (Key("s0", "by the confidence"), Key("oracle", "by the true errors (the best order)"))
    return Chart(title, canvas.markup(), keys)


def _costs(evaluations: Sequence[Evaluation]) -> Chart:
    """Return the chart of time and error, with a dot for each pair."""
    title = "Time and EPE of each pair"
    every = [
        (which, record)
        for which, one in reversed(list(enumerate(evaluations)))
        for record in one.done
    ]
    times = [max(record.seconds, 1e-6) for _, record in every]
    errors = [max(record.epe, _SMALLEST) for _, record in every]
    canvas = _Canvas(
        title,
        _x_axis(*_span(times), log=_wide(times)),
        _y_axis(*_span(errors), log=_wide(errors)),
    )
    canvas.frame("seconds", "EPE in pixels")
    for (which, record), seconds, error in zip(every, times, errors, strict=True):
        tip = f"{record.pair}: {record.seconds:.3g} s, EPE {brief(record.epe)} px"
        tip = f"{evaluations[which].label}, {tip}" if len(evaluations) > 1 else tip
        place: dict[str, Any] = {"cx": canvas.x(seconds), "cy": canvas.y(error), "r": 4.0}
        canvas.add("circle", f"dot s{which}", **place, data_tip=tip, data_pair=record.pair)
    return Chart(title, canvas.markup(), _keys(evaluations))


def _wide(values: Sequence[float]) -> bool:
    return max(values) > _SPREAD * min(values)


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis with some margin; a linear axis starts at 0."""
    if _wide(values):
        return min(values) / 1.3, max(values) * 1.3
    return 0.0, 1.1 * max(values)
