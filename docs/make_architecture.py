"""Draw docs/pictures/architecture.svg: the packages of Hamflow, from the real imports.

``python docs/make_architecture.py [OUTPUT]``; needs matplotlib, and nothing of Hamflow itself: the
source files are parsed, not imported. A room is a package, or a few modules that belong together.
A package that this script does not know is placed beside `evaluation` and `learning`.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "hamflow"
OUTPUT = Path(__file__).with_name("pictures") / "architecture.svg"

ROUTE = ("descriptors", "matching", "crf", "refinement")
HANDED_ON = ("images", "bits", "costs", "labels, bound", "flow")
# From the ground to the roof: a room may import those before it in this list.
GROUND = (
    *("base", "io", "flow", "datasets", *ROUTE, "result", "config", "pipeline"),
    *("estimation", "estimator"),
)
ROOF = ("evaluation", "scale", "viewer", "learning", "cli")
SAID = {
    "cli": "the commands",
    "evaluation": "metrics, reports",
    "learning": "training (torch)",
    "scale": "many pairs, Ray",
    "viewer": "the local page",
    "motion": "tracks, masks",
    "estimator": "estimate(), Estimator; video(); large images",
    "estimation": "the route on one page; regions",
    "pipeline": "frame, scales and windows, search",
    "config": "presets, TOML",
    "descriptors": "64 bits per pixel",
    "matching": "min-projection",
    "crf": "joint model, bound",
    "refinement": "check, completion,\nsubpixel, confidence",
    "result": "FlowResult",
    "datasets": "pairs with true flow",
    "flow": "warp, resize, pictures",
    "io": "files, video, settings, logs of long runs",
    "base": "types, protocols of the stages, errors, window, threads",
}
# Modules, and packages that go with another one; any other module, such as that of videos, goes
# with the estimator.
MODULES = {
    "errors": "base",
    "window": "base",
    "prior": "base",
    "stages": "base",
    "visualize": "flow",
    "flow": "flow",
    "result": "result",
    "estimation": "estimation",
    "regions": "estimation",
    "config": "config",
    "_resume": "io",
    "_tables": "io",
}

INK, PALE, PAPER, RED = "#22303c", "#8a99a6", "#ffffff", "#c0392b"
BLUE = "#2f74a8"
COLORS = {"route": "#dcebf7", "around": "#f1efe7", "center": "#e4f1e1", "ground": "#ececf1"}


# x, y, width, height and kind of each room; the stages of the route have a floor of their own.
FLOORS = {
    "cli": (0, 91, 100, 7.5, "around"),
    "learning": (0, 76, 14, 8.5, "around"),
    "evaluation": (17, 76, 14, 8.5, "around"),
    "estimator": (36, 76, 36, 8.5, "center"),
    "estimation": (77, 76, 23, 8.5, "center"),
    "datasets": (4, 60.5, 27, 8.5, "around"),
    "pipeline": (36, 60.5, 46, 8.5, "center"),
    "config": (85, 60.5, 11, 8.5, "center"),
    "flow": (60, 26.5, 34, 7.5, "around"),
    "io": (0, 16, 100, 7.5, "around"),
    "base": (0, 5, 100, 7.5, "ground"),
}
# Where an arrow needs corners to get past other rooms.
WAYS = {
    ("learning", "descriptors"): [(1.5, 76), (1.5, 55.5), (12.5, 55.5), (12.5, 49)],
    ("learning", "matching"): [(1.5, 76), (1.5, 55.5), (32, 55.5), (32, 49)],
    ("datasets", "io"): [(4, 64.7), (-2.5, 64.7), (-2.5, 19.7), (0, 19.7)],
    ("pipeline", "descriptors"): [(38, 60.5), (38, 57.5), (19, 57.5), (19, 49)],
    ("estimation", "result"): [(98, 76), (98, 49)],
    ("config", "refinement"): [(90.5, 60.5), (90.5, 57.5), (80, 57.5), (80, 49)],
    ("config", "crf"): [(90.5, 60.5), (90.5, 57.5), (61, 57.5), (61, 49)],
    ("crf", "matching"): [(49.8, 40.8), (44.4, 40.8)],
    ("result", "flow"): [(92.3, 39), (92.3, 34)],
}


def room_of(module: str) -> str | None:
    """Return the room of a module such as ``crf.dual``; None for what only opens the doors."""
    first = module.split(".", maxsplit=1)[0]
    if first in ("", "__init__", "__main__"):
        return None
    if (PACKAGE / first).is_dir():
        return MODULES.get(first, first)
    if first.startswith("_"):
        return MODULES.get(first, "base")
    # A name such as hamflow.estimate is no module: the package hands it on from elsewhere.
    return MODULES.get(first, "estimator") if (PACKAGE / f"{first}.py").is_file() else None


def modules() -> Iterator[tuple[str, Path]]:
    """Yield the name of each module below ``hamflow``, and its file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        yield name.removesuffix(".__init__"), path


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield what a module imports of Hamflow, except for type checkers only."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped.update(child for part in node.body for child in ast.walk(part))
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "hamflow":
            yield from (f"hamflow.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def survey() -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Return the lines of each room, and how many times each room imports each other one."""
    lines: Counter[str] = Counter()
    imports: Counter[tuple[str, str]] = Counter()
    for name, path in modules():
        room = room_of(name)
        if room is None:
            continue
        source = path.read_text(encoding="utf-8")
        lines[room] += source.count("\n")
        for target in imported(ast.parse(source)):
            if not target.startswith("hamflow."):
                continue
            other = room_of(target.removeprefix("hamflow."))
            if other is not None and other != room:
                imports[room, other] += 1
    return lines, imports


def order(rooms: Counter[str]) -> list[str]:
    """Return the rooms from the ground to the roof."""
    unknown = sorted(set(rooms) - {*GROUND, *ROOF})
    return [room for room in (*GROUND, *unknown, *ROOF) if room in rooms]


def reduced(imports: Counter[tuple[str, str]], rooms: list[str]) -> set[tuple[str, str]]:
    """Return the imports to draw: those that do not follow from others, and the pipeline's."""
    rank = {room: i for i, room in enumerate(rooms)}
    down = {(a, b) for a, b in imports if rank[b] < rank[a] and "base" not in (a, b)}
    reach: dict[str, set[str]] = {}
    for room in rooms:
        direct = [b for a, b in down if a == room]
        reach[room] = {*direct, *(c for b in direct for c in reach[b])}
    found = {
        (a, b)
        for a, b in down
        if not any((a, c) in down and b in reach[c] for c in rooms if c != b)
    }
    return found | {(a, b) for a, b in down if a == "pipeline" and b in ROUTE}


class House:
    """The left half of the figure: a box for each room, and arrows."""

    def __init__(self, axes: Any, lines: Counter[str]) -> None:
        self.axes, self.lines = axes, lines
        self.boxes: dict[str, tuple[float, float, float, float]] = {}

    def box(self, room: str, place: tuple[float, float, float, float], kind: str) -> None:
        """Draw a room, with what it is for and how long it is."""
        from matplotlib.patches import FancyBboxPatch  # noqa: PLC0415

        x, y, width, height = self.boxes[room] = place
        look = {"fc": COLORS[kind], "ec": INK, "lw": 0.8, "zorder": 3}
        style = "round,pad=0,rounding_size=1"
        self.axes.add_patch(FancyBboxPatch((x, y), width, height, style, **look))
        label = {"flow": "flow, visualize", "base": "foundation"}.get(room, room)
        middle, center = x + width / 2, y + height / 2
        apart = 2.1 + 1.2 * SAID.get(room, "").count("\n")
        self.text(middle, center + apart, label, size=9, weight="bold")
        self.text(middle, center - 0.1, SAID.get(room, ""), size=6.6)
        self.text(middle, center - apart, f"{self.lines[room]:,} lines", size=6.3, color=PALE)

    def text(self, x: float, y: float, text: str, **options: Any) -> None:
        """Write centered text."""
        options = {"color": INK, "zorder": 4, "ha": "center", "va": "center"} | options
        self.axes.text(x, y, text, linespacing=1.1, **options)

    def arrow(
        self,
        points: list[tuple[float, float]],
        color: str = INK,
        width: float = 0.8,
        head: float = 7,
    ) -> None:
        """Draw an arrow along a line with corners."""
        from matplotlib.patches import FancyArrowPatch  # noqa: PLC0415

        look = {"color": color, "lw": width, "zorder": 2}
        self.axes.plot(*zip(*points[:-1], strict=True), solid_joinstyle="round", **look)
        style = {"arrowstyle": "-|>", "mutation_scale": head, "shrinkA": 0, "shrinkB": 0}
        self.axes.add_patch(FancyArrowPatch(*points[-2:], **style, **look))

    def draw_imports(self, edges: set[tuple[str, str]]) -> None:
        """Draw an arrow for each import: along its way, or else straight down or across."""
        for a, b in sorted(edges):
            (ax, ay, aw, ah), (bx, by, bw, bh) = self.boxes[a], self.boxes[b]
            low, high = max(ax, bx), min(ax + aw, bx + bw)
            color = INK
            if (a, b) in WAYS:
                points = WAYS[a, b]
            elif abs(ay - by) < 1 and abs(ax - bx) < max(aw, bw) + 6:  # neighbors
                y = ay + ah / 2
                points = [(ax, y), (bx + bw, y)] if bx < ax else [(ax + aw, y), (bx, y)]
            elif abs(ay - by) < 1:  # on one floor, past others
                start, end = ax + 0.1 * aw, bx + bw / 2
                points = [(start, ay), (start, ay - 3), (end, ay - 3), (end, by)]
            elif high - low > 1:
                points = [((low + high) / 2, ay), ((low + high) / 2, by + bh)]
            else:
                points = [(ax + aw / 2, ay), (bx + bw / 2, by + bh)]
                color = PALE
            self.arrow(points, color=color)


def draw_house(axes: Any, lines: Counter[str], edges: set[tuple[str, str]]) -> None:
    """Draw the floors from the roof down to the ground."""
    house = House(axes, lines)
    others = [room for room in lines if room not in (*FLOORS, *ROUTE, "result")]
    draw_route(house)
    for room, (x, y, width, height, kind) in FLOORS.items():
        if room in lines:
            # Beside the commands is room for what is not known here.
            less = 14 * len(others) if room == "cli" else 0
            house.box(room, (x, y, width - less, height), kind)
    for i, room in enumerate(sorted(others)):
        house.box(room, (101 - 14 * (i + 1), FLOORS["cli"][1], 13, FLOORS["cli"][3]), "around")
    native = sum(p.read_text().count("\n") for p in sorted((ROOT / "native").rglob("*.[chi]*")))
    house.text(50, 2.6, f"native/: the kernels in C++17, {native:,} lines", size=7.5, color=PALE)
    house.text(50, 14.2, "every room may use the foundation", size=6.5, color=PALE, style="italic")
    house.draw_imports(edges)
    axes.set(xlim=(-4, 101), ylim=(1, 100))
    axes.axis("off")


def draw_route(house: House) -> None:
    """Draw the stages from left to right, with what each hands on to the next."""
    from matplotlib.patches import FancyBboxPatch  # noqa: PLC0415

    style, y = "round,pad=0,rounding_size=1", 39.0
    band = FancyBboxPatch((-0.6, 35), 101.2, 17, style, fc="#f3f8fc", ec="none", zorder=0)
    house.axes.add_patch(band)
    width, gap, start = 15.0, 5.4, 9.0
    lefts = [start + i * (width + gap) for i in range(len(ROUTE) + 1)]
    for room, left in zip((*ROUTE, "result"), lefts, strict=True):
        house.box(room, (left, y, min(width, 100 - left), 10), "route")
    house.text(1.9, y + 5, "frames", size=8.5, weight="bold")
    for handed, left in zip(HANDED_ON, lefts, strict=True):
        ends = [(left - (3.4 if left == start else gap), y + 5), (left, y + 5)]
        house.arrow(ends, color=BLUE, width=2.2, head=11)
        house.text(left - gap / 2, y - 1.6, handed, size=6.3, color=BLUE)


def draw_matrix(axes: Any, imports: Counter[tuple[str, str]], rooms: list[str]) -> None:
    """Draw how many times each room (row) imports each other one (column)."""
    count = len(rooms)
    rank = {room: i for i, room in enumerate(rooms)}
    for i in range(count):
        axes.add_patch(_cell(i, i, "#d5dbe1"))
        for j in range(i):
            axes.add_patch(_cell(j, i, "#f4f6f8"))
    for (a, b), n in sorted(imports.items()):
        wrong = rank[b] > rank[a]
        axes.add_patch(_cell(rank[b], rank[a], RED if wrong else "#b7d3e8"))
        color = PAPER if wrong else INK
        axes.text(rank[b], rank[a], str(n), size=6.5, ha="center", va="center", color=color)
    axes.set(xlim=(-0.6, count - 0.4), ylim=(-0.6, count - 0.4), aspect="equal")
    labels = [{"base": "foundation"}.get(room, room) for room in rooms]
    axes.set_xticks(range(count), labels, rotation=90, size=7)
    axes.set_yticks(range(count), labels, size=7)
    axes.tick_params(length=0, colors=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    wrong = sum(n for (a, b), n in imports.items() if rank[b] > rank[a])
    note = "none goes the other way" if not wrong else f"{wrong} (red) go the other way"
    title = f"Imports by a room (row) of a room below it in the house (column):\n{note}"
    axes.set_title(title, size=7.5, color=INK, loc="left")


def _cell(x: int, y: int, color: str) -> Any:
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    return Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fc=color, ec="none")


def main(output: Path = OUTPUT) -> None:
    """Draw the figure into a file; the same sources give the same bytes."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    mpl.rcParams |= {"svg.hashsalt": "hamflow", "font.family": "DejaVu Sans"}
    import matplotlib.pyplot as plt  # noqa: PLC0415

    lines, imports = survey()
    rooms = order(lines)
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6.4), width_ratios=(1.75, 1))
    draw_house(left, lines, reduced(imports, rooms))
    draw_matrix(right, imports, rooms)
    figure.tight_layout()
    output.parent.mkdir(exist_ok=True)
    svg = output.suffix == ".svg"
    figure.savefig(output, dpi=110, metadata={"Date": None} if svg else {"Software": None})
    print(f"{output}: {sum(lines.values()):,} lines in {len(rooms)} rooms")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
