"""The layout of the paper's sample figure: panels, enlarged region, captions, color wheel."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.paper.figure import Panel, Region, busiest_region
from hamflow._check import to_rgb
from hamflow._types import Flow
from hamflow.crf.plot import check_plot
from hamflow.visualize import flow_to_color, typical_length, wheel_picture

Picture = NDArray[np.uint8]

# Inches.
_WIDTH, _HIGHEST = 12.0, 3.0
_MARGIN, _GAP, _BLOCKS, _CAPTION, _FOOTER = 0.06, 0.05, 0.16, 0.2, 0.46
_DPI = 150
_FONT = 8  # points
_LETTER = 0.072  # the largest mean width of its letters, in inches
_INK, _GRAY, _EDGE = "#222222", "#666666", "#999999"


@dataclass(frozen=True, eq=False)
class _Cell:
    """A picture in a row and column of the figure, with its caption."""

    row: int
    column: int
    picture: Picture
    name: str
    detail: str = ""


def draw_figure(
    path: str | os.PathLike[str],
    images: tuple[NDArray[Any], NDArray[Any]],
    panels: Sequence[Panel],
    *,
    truth: Flow | None = None,
    region: Region | None = None,
    note: str = "",
) -> Region:
    """Draw the figure: local models above, joint models below, a region of each on the right.

    Parameters
    ----------
    path : str or os.PathLike
        The picture to write: ``.png``, ``.svg`` or ``.pdf``.
    images : two (H, W) or (H, W, 3) arrays of uint8 or uint16
        The frames.
    panels : sequence of Panel
        As `estimate_panels` returns them.
    truth : (H, W, 2) array, optional
        The true flow; without it, the second frame is shown instead.
    region : Region, optional
        What to enlarge; by default the `busiest_region` of the truth, or of the last joint model.
    note : str
        What to write below the figure.

    Returns
    -------
    Region
        The enlarged region.

    Raises
    ------
    InputError
        If the suffix is unknown, matplotlib is missing, or the region is not in the frame.
    FileError
        If the file cannot be written.
    """
    form = check_plot(path)
    guide = panels[-1].flow if truth is None else truth
    part = busiest_region(guide) if region is None else region
    part.check((guide.shape[0], guide.shape[1]))
    longest = typical_length(guide)
    cells = _cells(images, panels, truth, longest)
    # Not with pyplot, whose global state belongs to the user.
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    from hamflow.io._atomic import atomic_write  # noqa: PLC0415  (brings Pillow)

    layout = _Layout(guide.shape[1] / guide.shape[0], part.width / part.height, cells)
    figure = Figure(figsize=(layout.width, layout.height), facecolor="white")
    canvas = FigureCanvasAgg(figure)
    for cell in cells:
        _draw_cell(figure, layout, cell, part)
    _draw_footer(figure, layout, note, longest)
    with atomic_write(path) as file:
        # Without a date, equal flows give equal files.
        dated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(form)
        canvas.print_figure(file, format=form, dpi=_DPI, metadata=dated)
    return part


def _cells(
    images: tuple[NDArray[Any], NDArray[Any]],
    panels: Sequence[Panel],
    truth: Flow | None,
    longest: float,
) -> list[_Cell]:
    cells = [_Cell(0, 0, to_rgb(images[0]), "frame 1")]
    if truth is None:
        cells.append(_Cell(1, 0, to_rgb(images[1]), "frame 2"))
    else:
        cells.append(_Cell(1, 0, flow_to_color(truth, max_flow=longest), "truth"))
    columns = {name: k + 1 for k, name in enumerate(dict.fromkeys(p.matching for p in panels))}
    for panel in panels:
        row = 0 if panel.kind == "WTA" else 1
        detail = panel.kind if panel.error is None else f"{panel.kind}, {panel.error:.2f} px"
        picture = flow_to_color(panel.flow, max_flow=longest)
        cells.append(_Cell(row, columns[panel.matching], picture, panel.matching, detail))
    return cells


class _Layout:
    """The places of all parts, in inches from the upper left corner."""

    def __init__(self, aspect: float, zoom_aspect: float, cells: Sequence[_Cell]) -> None:
        columns = 1 + max(cell.column for cell in cells)
        spaces = 2 * _MARGIN + 2 * (columns - 1) * _GAP + _BLOCKS
        share = columns * (aspect + zoom_aspect)
        self.panel_height = min(_HIGHEST, (_WIDTH - spaces) / share)
        self.panel_width = aspect * self.panel_height
        self.zoom_width = zoom_aspect * self.panel_height
        self._zooms = _MARGIN + columns * (self.panel_width + _GAP) - _GAP + _BLOCKS
        self._row = _CAPTION + self.panel_height + _GAP
        self.width = spaces + share * self.panel_height
        self.footer = _MARGIN + 2 * self._row
        self.height = self.footer + _FOOTER + _MARGIN

    def box(self, row: int, column: int, *, zoom: bool) -> tuple[float, float, float, float]:
        """Return left, top, width and height of a panel."""
        width = self.zoom_width if zoom else self.panel_width
        left = (self._zooms if zoom else _MARGIN) + column * (width + _GAP)
        return left, _MARGIN + row * self._row + _CAPTION, width, self.panel_height

    def place(self, left: float, top: float, width: float, height: float) -> list[float]:
        """Return a box as matplotlib takes it: in parts of the figure, from its lower left."""
        bottom = self.height - top - height
        return [
            *(left / self.width, bottom / self.height),
            *(width / self.width, height / self.height),
        ]

    def point(self, left: float, top: float) -> tuple[float, float]:
        """Return a place as matplotlib takes it: in parts of the figure."""
        return left / self.width, 1 - top / self.height


def _draw_cell(figure: Any, layout: _Layout, cell: _Cell, region: Region) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    for zoom in (False, True):
        left, top, width, height = layout.box(cell.row, cell.column, zoom=zoom)
        axes = figure.add_axes(layout.place(left, top, width, height))
        picture = region.of(cell.picture) if zoom else cell.picture
        # Enlarged pixels stay pixels; reduced ones are averaged.
        axes.imshow(picture, aspect="auto", interpolation="nearest" if zoom else "antialiased")
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set(color=_INK if zoom else _EDGE, linewidth=0.8 if zoom else 0.4)
        if not zoom:
            corner = (region.x - 0.5, region.y - 0.5)
            # Two lines, so that the box is visible on dark and on bright colors.
            for color, line in (("white", 1.8), (_INK, 0.8)):
                box = Rectangle(corner, region.width, region.height, fill=False, clip_on=False)
                box.set(edgecolor=color, linewidth=line)
                axes.add_patch(box)
        _draw_caption(figure, layout, cell.name, "" if zoom else cell.detail, (left, top, width))


def _draw_caption(
    figure: Any, layout: _Layout, name: str, detail: str, place: tuple[float, float, float]
) -> None:
    """Write above a panel, on the left and on the right, in letters that fit."""
    left, top, width = place
    size = _fitting(f"{name} {detail}", width)
    above = top - 0.045
    style = {"va": "baseline", "fontsize": size, "color": _INK, "parse_math": False}
    figure.text(*layout.point(left, above), name, weight="bold", **style)
    figure.text(*layout.point(left + width, above), detail, ha="right", **style)


def _draw_footer(figure: Any, layout: _Layout, note: str, longest: float) -> None:
    """Draw the color wheel and the note."""
    size = _FOOTER - 0.04
    axes = figure.add_axes(layout.place(_MARGIN, layout.footer + 0.02, size, size))
    axes.imshow(wheel_picture(256), interpolation="antialiased")
    axes.set_axis_off()
    left, middle = _MARGIN + size + 0.08, layout.footer + 0.02 + size / 2
    key = f"Color: direction of the flow, fully saturated at {longest:.3g} px, darker beyond."
    lines = [key, note]
    figure.text(
        *layout.point(left, middle),
        "\n".join(lines),
        color=_GRAY,
        fontsize=_fitting(max(lines, key=len), layout.width - left),
        va="center",
        linespacing=1.35,
        parse_math=False,
    )


def _fitting(text: str, width: float) -> float:
    """Return the font size, in points, with which a line is at most `width` inches wide."""
    return _FONT * min(1, width / (_LETTER * len(text)))
