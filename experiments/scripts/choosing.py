"""The figures of docs/choosing.md: which method when.

    python -m experiments.scripts.choosing measure [METHOD ...] [--rounds 3]
    python -m experiments.scripts.choosing rendered PHOTOGRAPHS [--count 20]
    python -m experiments.scripts.choosing sizes
    python -m experiments.scripts.choosing

The first three write experiments/results/choosing.json: the seconds and the peak memory of each
method in a process of its own, for a rendered pair of two sizes, the best of all runs since the
file was removed; the errors on rendered scenes; and what an installation takes on the disk. METHOD
is a preset, a method of OpenCV, or raft-small or raft-large, which are torchvision's networks with
random weights: their time and their memory do not depend on the weights. The last line writes the
tables of the page, and draws its chart, from that file and from pair.json of ``bench pair``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import hamflow
from experiments.bench.pair import by_group
from experiments.bench.sequence import rendered_sequence
from hamflow._memory import peak_memory
from hamflow._runtime import machine
from hamflow._tables import tomllib
from hamflow._types import Pixels
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.evaluation import Method
from hamflow.evaluation.peers import opencv_version
from hamflow.flow import endpoint_error
from hamflow.io._text import write_json

ROOT = Path(__file__).resolve().parents[2]
RESULTS, PAGE = ROOT / "experiments" / "results", ROOT / "docs" / "choosing.md"
CHART = ROOT / "docs" / "pictures" / "choosing.png"
FILE = "choosing.json"

SIZES = ((1024, 436), (1920, 1080))
# Every method, with its name on the page.
NAMES = {
    "realtime": "`realtime`",
    "fast": "`fast`",
    "balanced": "`balanced`",
    "opencv-dis": "OpenCV DIS",
    "opencv-sparsetodense": "OpenCV SparseToDense",
    "opencv-farneback": "OpenCV Farneback",
    "opencv-pcaflow": "OpenCV PCAFlow",
    "opencv-rlof": "OpenCV RLOF",
    "opencv-deepflow": "OpenCV DeepFlow",
    "raft-small": "RAFT small",
    "raft-large": "RAFT",
}
_UPDATES = {"raft-small": 12, "raft-large": 32}
_ENOUGH = 20.0  # seconds after which no further round begins
_SCENES = SyntheticConfig(height=384, width=512, max_displacement=100, perspective_share=0.5)
# What torch needs; PyPI's torchvision itself would bring the torch for CUDA.
_OF_TORCH = (
    *("filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "numpy", "pillow"),
    *("setuptools", "sympy", "typing-extensions"),
)


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    tasks = parser.add_subparsers(dest="task")
    task = tasks.add_parser("measure")
    task.add_argument("methods", nargs="*", default=list(NAMES))
    task.add_argument("--rounds", type=int, default=3)
    task = tasks.add_parser("rendered")
    task.add_argument("photographs")
    task.add_argument("--count", type=int, default=20)
    tasks.add_parser("sizes")
    args = parser.parse_args()
    if args.task == "measure":
        _keep("cost", {name: cost(name, args.rounds) for name in args.methods})
    elif args.task == "rendered":
        _keep("rendered", rendered(args.photographs, args.count))
    elif args.task == "sizes":
        _keep("bytes", sizes())
    else:
        PAGE.write_text(page(), encoding="utf-8")
        draw()


def _keep(key: str, found: Mapping[str, Any]) -> None:
    """Add measurements to the file."""
    known = read(RESULTS) if (RESULTS / FILE).exists() else {}
    known |= {"machine": machine() | {"opencv": opencv_version()}}
    known[key] = known.get(key, {}) | dict(found)
    write_json(RESULTS / FILE, known)
    print(json.dumps(found, indent=1))


def read(folder: Path) -> dict[str, Any]:
    """Return the measurements."""
    found: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return found


# --- measurements --------------------------------------------------------------------------------


def cost(name: str, rounds: int) -> list[dict[str, float]]:
    """Return seconds and peak memory for each of the sizes, each in a process of its own.

    Other processes make a run slower, never faster: earlier runs in the file count, too.
    """
    known = read(RESULTS).get("cost", {}).get(name) if (RESULTS / FILE).exists() else None
    found = []
    for k, (width, height) in enumerate(SIZES):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            seconds, memory = process.submit(_alone, name, width, height, rounds).result()
        print(f"{name}, {width}×{height}: {seconds:.3f} s, {memory / 1e9:.2f} GB", file=sys.stderr)
        if known is not None:
            seconds, memory = min(seconds, known[k]["seconds"]), max(memory, known[k]["memory"])
        found.append({"width": width, "height": height, "seconds": seconds, "memory": memory})
    return found


def _alone(name: str, width: int, height: int, rounds: int) -> tuple[float, int]:
    first, second, *_ = rendered_sequence(height, width, 4)
    estimate = _network(name) if name in _UPDATES else Method(name)
    spent: list[float] = []
    while len(spent) < rounds and sum(spent) < _ENOUGH:
        start = time.perf_counter()
        estimate(first, second)
        spent.append(time.perf_counter() - start)
    return min(spent), peak_memory() or 0


def _network(name: str) -> Callable[[Pixels, Pixels], Any]:
    import torch  # noqa: PLC0415  (not needed for anything else here)

    # PyPI's torchvision is compiled for CUDA; beside the CPU build of torch, its own operators are
    # missing. RAFT does not use them, but importing the package declares them.
    with mock.patch.object(torch.library, "register_fake", return_value=lambda made: made):
        from torchvision.models import optical_flow  # noqa: PLC0415

    network = getattr(optical_flow, name.replace("-", "_"))().eval()

    def prepared(image: Pixels) -> Any:
        rows, columns = (-size % 8 for size in image.shape[:2])
        whole = np.pad(image, ((0, rows), (0, columns), (0, 0)), mode="edge")
        return torch.from_numpy(whole).permute(2, 0, 1)[None] / 127.5 - 1

    def estimate(first: Pixels, second: Pixels) -> Any:
        with torch.inference_mode():
            return network(prepared(first), prepared(second), num_flow_updates=_UPDATES[name])[-1]

    return estimate


def rendered(photographs: str | None, count: int) -> dict[str, Any]:
    """Return the mean endpoint error of each method on rendered scenes."""
    scenes = SyntheticDataset(_SCENES, photographs, seed=77, size=count)
    methods = {name: Method(name) for name in NAMES if name not in _UPDATES}
    errors: dict[str, list[float]] = {name: [] for name in methods}
    for scene in scenes:
        for name, method in methods.items():
            try:
                flow = method(scene.image0, scene.image1).flow
            except Exception as error:  # OpenCV's methods fail in many ways
                print(name, error, file=sys.stderr)
                continue
            errors[name].append(float(endpoint_error(flow, scene.flow).mean()))
    means = {name: float(np.mean(e)) for name, e in errors.items() if len(e) == count}
    return {"count": count, "errors": means}


def sizes() -> dict[str, int]:
    """Return the bytes on the disk of Hamflow, OpenCV and torch, each with all that it needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "hamflow": _installed(*project["dependencies"]) + _bytes(Path(hamflow.__file__).parent),
        "opencv": _installed("opencv-contrib-python-headless"),
        "torch": _installed("torch==2.13.0+cpu", "torchvision==0.28.0", *_OF_TORCH, alone=True),
    }


def _installed(*words: str, alone: bool = False) -> int:
    with tempfile.TemporaryDirectory() as folder:
        install = ["-m", "pip", "install", "--quiet", "--target", folder, *words]
        subprocess.run([sys.executable, *install, *["--no-deps"] * alone], check=True)
        return _bytes(Path(folder))


def _bytes(folder: Path) -> int:
    # Without compiled Python, which pip may or may not write.
    files = (path for path in folder.rglob("*") if path.suffix != ".pyc" and path.is_file())
    return sum(path.stat().st_size for path in files)


# --- the page ------------------------------------------------------------------------------------


def page(folder: Path = RESULTS) -> str:
    """Return docs/choosing.md with its tables up to date."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (("errors", _errors(folder)), ("costs", _costs(read(folder)))):
        block = f"<!-- {name} -->\n{table}\n<!-- end of {name} -->"
        text, found = re.subn(
            rf"<!-- {name} -->\n.*?<!-- end of {name} -->", lambda _, b=block: b, text, flags=re.S
        )
        assert found == 1, name
    return text


def _errors(folder: Path) -> str:
    """Return the table of errors: a row for each folder of pairs, a column for each method."""
    rows = json.loads((folder / "pair.json").read_text(encoding="utf-8"))["rows"]
    groups = by_group(rows)
    counts = {
        name: len({row["pair"] for row in rows if row["pair"].startswith(f"{name}/")})
        for name in groups
    }
    found = read(folder)["rendered"]
    groups["rendered scenes"] = found["errors"]
    counts["rendered scenes"] = found["count"]
    methods = [
        name for name in NAMES if name in groups["rendered scenes"] or name in _first(groups)
    ]
    table = [["folder (pairs)", *(NAMES[name].replace("OpenCV ", "") for name in methods)]]
    for group, errors in groups.items():
        best = min(errors[name] for name in methods if name in errors)
        cells = [_cell(errors.get(name), best) for name in methods]
        table.append([f"{group} ({counts[group]})", *cells])
    return _markdown(table)


def _first(groups: Mapping[str, Mapping[str, float]]) -> Mapping[str, float]:
    return next(iter(groups.values()))


def _cell(value: float | None, best: float) -> str:
    if value is None:
        return "failed"
    return f"**{value:.2f}**" if value == best else f"{value:.2f}"


def _costs(found: Mapping[str, Any]) -> str:
    """Return the table of costs: a row for each method."""
    sizes = {"opencv-": found["bytes"]["opencv"], "raft-": found["bytes"]["torch"]}
    heads = [f"{what}, {w}×{h}" for w, h in SIZES for what in ("seconds", "memory")]
    table = [["method", *heads, "installed"]]
    for name, label in NAMES.items():
        cells = []
        for one in found["cost"][name]:
            cells += [f"{one['seconds']:.2f}", f"{one['memory'] / 1e9:.2f} GB"]
        own = next((size for word, size in sizes.items() if name.startswith(word)), None)
        size = found["bytes"]["hamflow"] if own is None else own
        table.append([label, *cells, f"{size / 1e6:.0f} MB"])
    return _markdown(table)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def draw(folder: Path = RESULTS, path: Path = CHART) -> None:
    """Draw the errors over the seconds."""
    import matplotlib as mpl  # noqa: PLC0415  (an extra)

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    found = read(folder)
    rows = json.loads((folder / "pair.json").read_text(encoding="utf-8"))["rows"]
    panels = {
        "Sintel clean, 5 pairs": by_group(rows)["sintel-clean"],
        f"rendered scenes, {found['rendered']['count']}": found["rendered"]["errors"],
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharex=True, layout="constrained")
    for axis, (title, errors) in zip(axes, panels.items(), strict=True):
        for name, error in errors.items():
            if name not in NAMES:
                continue
            own = not name.startswith("opencv-")
            seconds = found["cost"][name][0]["seconds"]
            color = "tab:red" if own else "0.35"
            axis.plot(seconds, error, "o" if own else "s", color=color, markersize=7)
            label = NAMES[name].strip("`").replace("OpenCV ", "")
            axis.annotate(
                label, (seconds, error), (6, 4), textcoords="offset points", color=color, fontsize=9
            )
        for name, side in zip(_UPDATES, ("left", "right"), strict=True):
            seconds = found["cost"][name][0]["seconds"]
            axis.axvline(seconds, color="tab:blue", linestyle="--", linewidth=1)
            axis.text(
                seconds * (1.08 if side == "left" else 1 / 1.08),
                0.2 if side == "left" else 0.36,
                f"{NAMES[name]}\n(time only)",
                color="tab:blue",
                fontsize=9,
                ha=side,
                transform=axis.get_xaxis_transform(),
            )
        axis.set(title=title, xscale="log", yscale="log", xlabel="seconds for 1024×436, two cores")
        axis.set_ylabel("mean endpoint error in px")
        axis.yaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:g}"))
        axis.yaxis.set_minor_formatter(mpl.ticker.StrMethodFormatter("{x:g}"))
        axis.xaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:g}"))
        axis.margins(x=0.08, y=0.08)
        axis.grid(True, which="both", color="0.9", linewidth=0.6)
        axis.set_axisbelow(True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
