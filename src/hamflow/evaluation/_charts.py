"""The charts of a report, as SVG that stands in the page itself.

Colors are those of the page's style sheet: the classes ``s0``, ``s1`` and so on are evaluations.
What the pointer shows at a place is in ``data-tip``, the pair behind a dot in ``data-pair``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from hamflow.evaluation.records import ERROR_EDGES, Evaluation, PairRecord

MOST = 6
"""How many evaluations a chart shows at most."""

_WIDTH, _HEIGHT = 520, 290
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 12, 12, 46  # around the field of the chart
_MOST_TICKS = 8
_SMALLEST = ERROR_EDGES[1]  # errors below are drawn as if they were this one: 0 has no logarithm
_SPREAD = 8  # from this ratio of the largest to the smallest on, an axis is logarithmic


class Key(NamedTuple):
    """An entry of a chart's legend: the class of its color, and what it is."""

    style: str
    label: str


@dataclass(frozen=True)
class Chart:
    """A drawing, its title and its legend."""

    title: str
    svg: str
    keys: tuple[Key, ...] = ()


def charts(evaluations: Sequence[Evaluation]) -> list[Chart]:
    """Return the charts of evaluations, the first of which is the one that the report is about.

    There are none if that one has no pair on which the method did not fail.
    """
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
    """Where the values between two ends are in the drawing; `whole` if they are whole numbers."""

    def __init__(
        self,
        ends: tuple[float, float],
        places: tuple[float, float],
        *,
        log: bool = False,
        whole: bool = False,
    ) -> None:
        (self.low, self.high), self.log, self._whole = ends, log, whole
        self._start, stop = places
        self._step = (stop - self._start) / (self._line(self.high) - self._line(self.low))

    def _line(self, value: float) -> float:
        return math.log(value) if self.log else value

    def __call__(self, value: float) -> float:
        return self._start + (self._line(value) - self._line(self.low)) * self._step

    def ticks(self) -> list[float]:
        if self.log:
            return _log_ticks(self.low, self.high)
        return _linear_ticks(self.low, self.high, 1 if self._whole else 0)


def _linear_ticks(low: float, high: float, least: float) -> list[float]:
    """Return round numbers between two others, `least` or more apart."""
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
    """A field with axes, to draw on."""

    def __init__(self, title: str, x: _Axis, y: _Axis) -> None:
        self.x, self.y = x, y
        self.root = ElementTree.Element(
            "svg", {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "img", "aria-label": title}
        )

    def add(self, tag: str, style: str, text: str = "", **attributes: Any) -> None:
        """Draw an element; underscores of attributes become hyphens."""
        named = {
            name.replace("_", "-"): f"{value:.1f}" if isinstance(value, float) else str(value)
            for name, value in attributes.items()
        }
        ElementTree.SubElement(self.root, tag, {"class": style, **named}).text = text or None

    def frame(self, x_title: str, y_title: str) -> None:
        """Draw the grid and what is written at the axes."""
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
    """Return a number with three digits, or all digits before the point."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _x_axis(low: float, high: float, *, log: bool = False) -> _Axis:
    return _Axis((low, high), (_LEFT, _WIDTH - _RIGHT), log=log)


def _y_axis(low: float, high: float, *, log: bool = False, whole: bool = False) -> _Axis:
    return _Axis((low, high), (_HEIGHT - _BOTTOM, _TOP), log=log, whole=whole)


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
        shares.append([float(share) for share in 100 * counts / max(1, counts.sum())])
    below = np.cumsum(shares[0])

    def tip(number: int, share: float) -> str:
        return f"{_bin(number)}: {share:.2f} % of the pixels; up to there {below[number]:.1f} %"

    title = "Endpoint errors of all pixels"
    axes = ("endpoint error in pixels", "% of the pixels")
    return Chart(title, _histogram(shares, tip, title=title, axes=axes), _keys(evaluations))


def _pairs(evaluations: Sequence[Evaluation]) -> Chart:
    """Return the histogram of the mean errors of the pairs."""
    counts = []
    for one in evaluations:
        means = [record.epe for record in one.done]
        counts.append([float(n) for n in np.histogram(means, (*ERROR_EDGES, np.inf))[0]])

    def tip(number: int, count: float) -> str:
        return f"EPE {_bin(number)}: {count:.0f} {'pair' if count == 1 else 'pairs'}"

    title = "EPE of each pair"
    drawing = _histogram(counts, tip, title=title, axes=("EPE in pixels", "pairs"), whole=True)
    return Chart(title, drawing, _keys(evaluations))


def _histogram(
    series: Sequence[Sequence[float]],
    tip: Callable[[int, float], str],
    *,
    title: str,
    axes: tuple[str, str],
    whole: bool = False,
) -> str:
    """Draw the first series as bars and the others as outlines, in the bins of `ERROR_EDGES`."""
    filled = np.flatnonzero(np.sum(series, axis=0))
    first, last = int(filled[0]), int(filled[-1])
    # A bin more on both sides, or a lone bar would be as wide as the chart.
    first, last = max(first - 1, 0), min(last + 1, len(ERROR_EDGES) - 1)
    edges = [_edge(number) for number in range(first, last + 2)]
    top = max(max(values) for values in series)
    x, y = _x_axis(edges[0], edges[-1], log=True), _y_axis(0, 1.06 * top, whole=whole)
    canvas = _Canvas(title, x, y)
    canvas.frame(*axes)
    bins = range(first, last + 1)
    _draw_bars(canvas, series[0], bins, tip)
    for which, values in enumerate(series[1:], 1):
        steps = [(_edge(number + side), values[number]) for number in bins for side in (0, 1)]
        canvas.path(f"line s{which}", [(edges[0], 0.0), *steps, (edges[-1], 0.0)])
    return canvas.markup()


def _draw_bars(
    canvas: _Canvas, values: Sequence[float], bins: Sequence[int], tip: Callable[[int, float], str]
) -> None:
    bottom = canvas.y(0)
    for number in bins:
        left, right = canvas.x(_edge(number)), canvas.x(_edge(number + 1))
        # Twice: what is pointed at is as high as the chart, because bars may be very low.
        shapes: list[tuple[str, float, dict[str, Any]]] = [
            ("bar s0", canvas.y(values[number]), {}),
            ("hit", float(_TOP), {"data_tip": tip(number, values[number])}),
        ]
        for style, top, more in shapes:
            canvas.add(
                "rect",
                style,
                x=left + 0.5,
                width=right - left - 1,
                y=top,
                height=bottom - top,
                **more,
            )


def _edge(number: int) -> float:
    """Return an edge to draw at: the first bin begins at 0 and the last one never ends."""
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
    curve, oracle = (
        [float(value) for value in np.mean([getattr(r, name) for r in records], axis=0)]
        for name in ("curve", "oracle")
    )
    ause = np.mean([record.ause for record in records])
    title = f"Sparsification, AUSE {ause:.3f}"
    by_confidence, by_error = (
        [(100 * number / len(line), value) for number, value in enumerate(line)]
        for line in (curve, oracle)
    )
    top = max(*curve, *oracle, 1.0)
    canvas = _Canvas(title, _x_axis(0, 100), _y_axis(0, 1.06 * top))
    canvas.frame("least confident pixels removed, in %", "error of the rest / of all")
    canvas.path("area s0", [*by_confidence, *by_error[::-1]])
    for style, line in (("oracle", by_error), ("s0", by_confidence)):
        canvas.path(f"line {style}", line)
        for x, y in line:
            tip = f"{x:.0f} % removed: {100 * y:.0f} % of the error remains"
            canvas.add(
                "circle", f"dot {style}", cx=canvas.x(x), cy=canvas.y(y), r=2.5, data_tip=tip
            )
    keys = (Key("s0", "by the confidence"), Key("oracle", "by the true errors (the best order)"))
    return Chart(title, canvas.markup(), keys)


def _costs(evaluations: Sequence[Evaluation]) -> Chart:
    """Return time against error, a dot for each pair."""
    title = "Time and EPE of each pair"
    every = [record for one in evaluations for record in one.done]
    times = [max(record.seconds, 1e-6) for record in every]
    errors = [max(record.epe, _SMALLEST) for record in every]
    canvas = _Canvas(
        title,
        _x_axis(*_span(times), log=_wide(times)),
        _y_axis(*_span(errors), log=_wide(errors)),
    )
    canvas.frame("seconds", "EPE in pixels")
    for which, one in reversed(list(enumerate(evaluations))):
        for record in one.done:
            tip = f"{record.pair}: {record.seconds:.3g} s, EPE {brief(record.epe)} px"
            canvas.add(
                "circle",
                f"dot s{which}",
                cx=canvas.x(max(record.seconds, 1e-6)),
                cy=canvas.y(max(record.epe, _SMALLEST)),
                r=4.0,
                data_tip=f"{one.label}, {tip}" if len(evaluations) > 1 else tip,
                data_pair=record.pair,
            )
    return Chart(title, canvas.markup(), _keys(evaluations))


def _wide(values: Sequence[float]) -> bool:
    return max(values) > _SPREAD * min(values)


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis: with some room, from 0 on if it is linear."""
    if _wide(values):
        return min(values) / 1.3, max(values) * 1.3
    return 0.0, 1.1 * max(values)
