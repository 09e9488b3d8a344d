"""The paper's timings and its claims about memory and speed, measured on this machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.bench._measure import MIXES, extra_memory, register_peak, seconds
from experiments.bench.kernels import Problem
from experiments.paper.published import (
    CRF_SCHEDULE,
    MEMORY_4D_GB,
    MEMORY_D,
    MEMORY_OURS_GB,
    MEMORY_SIZE,
    SPEEDUP_IN_THEORY,
    TIMINGS,
)
from hamflow._runtime import machine
from hamflow._scale import reduced
from hamflow.crf import CrfConfig, solve
from hamflow.datasets import demo_scene
from hamflow.descriptors import Descriptor, load_model
from hamflow.errors import InputError
from hamflow.matching import float_min_projection, hybrid_min_projection, min_projection

Progress = Callable[[str], None]
Image = NDArray[np.uint8]

COLUMNS = ("features", "wta", "full")
"""Feature extraction of one frame, the local model, and the joint model."""
FLOAT_BYTES = 4
THIRD = 3
_SMALLEST = 32  # pixels of a side that `demo_scene` renders
_MULTIPLE = 8  # of labels, as all benchmarks of the kernels have them
_RATES = ("multiply_adds", "float_entries", "bit_entries")
# Floats are slow and steady: more repetitions would tell nothing new.
_MOST_ROUNDS = {("FF", "wta"): 2, ("FF", "full"): 1}


@dataclass(frozen=True)
class Row:
    """A row of the table: a way of matching at a size.

    Attributes
    ----------
    name : str
        What it is called, with D where it is not that of the table.
    matching : str
        FF, FQ or QQ.
    factor : int
        The frames are reduced so many times.
    d : int
        Side of the square window, in pixels of the reduced frames.
    published : str
        The row of the paper.
    """

    name: str
    matching: str
    factor: int
    d: int
    published: str


def rows(d: int) -> tuple[Row, ...]:
    """Return the rows to measure.

    At 1/3 resolution there are two: D as it is, and the D that looks as far as the full one does.
    """
    full = tuple(Row(name, name, 1, d, name) for name in ("FF", "FQ", "QQ"))
    sides = dict.fromkeys((d, third_of(d)))
    third = (
        Row(f"QQ (1/3 res., D = {side})", "QQ", THIRD, side, "QQ (1/3 res.)") for side in sides
    )
    return (*full, *third)


def third_of(d: int) -> int:
    """Return the D that looks as far at 1/3 resolution, rounded up to a multiple of 8."""
    return _MULTIPLE * math.ceil(d / (THIRD * _MULTIPLE))


def check_scene(width: int, height: int) -> None:
    """Raise an InputError at once if no scene of this size can be rendered."""
    if min(width, height) < _SMALLEST:
        raise InputError(
            f"The width and height must be at least {_SMALLEST}, but are {width} and {height}."
        )


def full_bytes(width: int, height: int, d: int) -> int:
    """Return the bytes of the 4D cost in float32, D² entries for each pixel."""
    return width * height * d**2 * FLOAT_BYTES


def projected_bytes(width: int, height: int, d: int, size: int = FLOAT_BYTES) -> int:
    """Return the bytes of c^u and c^v, D entries each for each pixel, of `size` bytes."""
    return 2 * width * height * d * size


def run(
    width: int,
    height: int,
    d: int,
    rounds: int,
    *,
    model: str = "default",
    quick: bool = False,
    progress: Progress = lambda _: None,
) -> dict[str, Any]:
    """Measure everything; the dictionary is what ``--json`` writes.

    Parameters
    ----------
    width, height, d : int
        Size of the rendered scene and side of the square window.
    rounds : int
        Repetitions, in turns, of which the best counts; two at most of FF, and one of its joint
        model.
    model : str
        The descriptor, as `hamflow.load_model` takes it.
    quick : bool
        Leave the joint model on floats out.
    progress : callable
        Told the name of each step as it begins.
    """
    progress("render a scene")
    scene = demo_scene(height, width)
    network = load_model(model)
    cases = []
    for row in rows(d):
        progress(f"descriptors: {row.name}")
        cases.append(_Case(row, network, scene.image0, scene.image1))
    # Before and after, and the better counts: a busy moment must not make a limit look low.
    peaks = _peaks(progress)
    found = _timed(cases, rounds, quick, progress)
    peaks = {mix: max(rate, peaks[mix]) for mix, rate in _peaks(progress).items()}
    progress("memory")
    report: dict[str, Any] = {
        "machine": machine(),
        "width": width,
        "height": height,
        "d": d,
        "rounds": rounds,
        "model": model,
        "layers": None if network.architecture is None else network.architecture.layers,
        "rows": found,
        "memory": _memory(network, scene.image0, scene.image1, 2 * d),
        "speedup": _speedup(found, Problem(width, height, d, floats=False).entries, peaks),
    }
    report["notes"] = notes(report)
    return report


class _Case:
    """A row with its frames and descriptors at hand, so that parts can be timed on their own."""

    def __init__(self, row: Row, model: Descriptor, image0: Image, image1: Image) -> None:
        self.row = row
        self._model = model
        self._frames = reduced(image0, row.factor), reduced(image1, row.factor)
        self._fields = self._describe(0), self._describe(1)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self._frames[0].shape[1], self._frames[0].shape[0]

    def work(self, column: str) -> Callable[[], object]:
        """Return what is timed for a column."""
        works: dict[str, Callable[[], object]] = {
            "features": partial(self._describe, 0),
            "wta": self._wta,
            "full": self._full,
        }
        return works[column]

    def _describe(self, number: int) -> NDArray[Any]:
        describe = self._model.bits if self.row.matching == "QQ" else self._model.describe
        return describe(self._frames[number])

    def _wta(self) -> object:
        projects: dict[str, Callable[..., Any]] = {
            "FF": float_min_projection,
            "FQ": hybrid_min_projection,
            "QQ": min_projection,
        }
        return projects[self.row.matching](*self._fields, self.row.d).wta()

    def _full(self) -> object:
        names = ("bits0", "bits1") if self.row.matching == "QQ" else ("phi0", "phi1")
        data: dict[str, Any] = dict(zip(names, self._fields, strict=True))
        config = CrfConfig.paper()
        return solve(**data, image=self._frames[0], window=self.row.d, config=config)


def _columns(row: Row, turn: int, quick: bool) -> list[str]:
    """Return which columns of a row are measured in a round."""
    known = TIMINGS[row.published]._asdict()
    left_out = quick and row.matching == "FF"
    return [
        column
        for column in COLUMNS
        if known[column] is not None
        and not (left_out and column == "full")
        and turn < _MOST_ROUNDS.get((row.matching, column), turn + 1)
    ]


def _timed(
    cases: list[_Case], rounds: int, quick: bool, progress: Progress
) -> list[dict[str, Any]]:
    found = [_blank(case) for case in cases]
    for turn in range(rounds):
        for case, entry in zip(cases, found, strict=True):
            for column in _columns(case.row, turn, quick):
                progress(f"{case.row.name}: {column}")
                taken = seconds(case.work(column))
                entry[column] = taken if entry[column] is None else min(entry[column], taken)
    return found


def _blank(case: _Case) -> dict[str, Any]:
    """Return a row without measurements, with what the paper has beside them."""
    paper = TIMINGS[case.row.published]
    width, height = case.size
    return {
        "method": case.row.name,
        "width": width,
        "height": height,
        "d": case.row.d,
        **dict.fromkeys(COLUMNS),
        "paper_features_min": paper.features[0],
        "paper_features_max": paper.features[1],
        "paper_wta": paper.wta,
        "paper_full": paper.full,
    }


def _peaks(progress: Progress) -> dict[str, float]:
    found = {}
    for mix in MIXES:
        progress(f"register peak: {mix}")
        found[mix] = register_peak(mix)
    return found


def _memory(model: Descriptor, image0: Image, image1: Image, d: int) -> dict[str, Any]:
    """Measure the min-projection of bits, outputs included, against what a 4D cost would take."""
    bits0, bits1 = model.bits(image0), model.bits(image1)
    height, width = bits0.shape
    measured = extra_memory(partial(min_projection, bits0, bits1, d))
    outputs = projected_bytes(width, height, d, size=1)
    return {
        "d": d,
        "full_float32": full_bytes(width, height, d),
        "projected_float32": projected_bytes(width, height, d),
        "outputs": outputs,
        "measured": measured,
        "beyond_outputs": None if measured is None else max(0, measured - outputs),
        "paper_full_gb": MEMORY_4D_GB,
        "paper_projected_gb": MEMORY_OURS_GB,
    }


def _speedup(
    found: list[dict[str, Any]], entries: int, peaks: dict[str, float]
) -> dict[str, float]:
    """Set the local model on bits against the same on floats, and both against the registers."""
    times = {row["method"]: row["wta"] for row in found}
    floats, bits = (entries / times[name] for name in ("FF", "QQ"))
    # An entry of the cost is a scalar product of 64 floats, or one distance of 64 bits.
    float_peak = peaks["fused_multiply_add"] / 64
    return {
        "measured": times["FF"] / times["QQ"],
        "paper": TIMINGS["FF"].wta / TIMINGS["QQ"].wta,
        "theory": SPEEDUP_IN_THEORY,
        "multiply_adds_per_second": peaks["fused_multiply_add"],
        "float_entries_per_second": float_peak,
        "bit_entries_per_second": peaks["min_projection"],
        "registers": peaks["min_projection"] / float_peak,
        "float_share_of_peak": floats / float_peak,
        "bit_share_of_peak": bits / peaks["min_projection"],
    }


def notes(report: dict[str, Any]) -> list[str]:
    """Return what the figures say, in sentences."""
    return [*_about_times(report), *_about_memory(report), _about_speed(report["speedup"])]


def _about_times(report: dict[str, Any]) -> list[str]:
    layers = "" if report["layers"] is None else f" ({report['layers']} layers)"
    d = report["d"]
    schedule = "×".join(str(count) for count in CRF_SCHEDULE)
    return [
        f"Feature extraction is that of one frame by the model {report['model']}{layers}, to floats"
        " for FF and FQ and to bits for QQ; a pair has two frames. WTA is the min-projection and "
        f"the winner's choice, the full model {schedule} iterations of the CRF, both from "
        "descriptors that are there.",
        f"At 1/3 resolution D = {third_of(d)} looks as far as D = {d} does at full resolution (a "
        f"third, rounded up to a multiple of {_MULTIPLE}). The paper's row is about a tenth of its "
        "full-resolution row in every column, as a ninth of the pixels with the same D would be: "
        f"it is set beside both, and the row with D = {d} is probably its like.",
    ]


def _about_memory(report: dict[str, Any]) -> list[str]:
    memory = report["memory"]
    size = f"{report['width']}×{report['height']} pixels, D = {memory['d']}"
    example = f"{MEMORY_SIZE[0]}×{MEMORY_SIZE[1]} pixels and D = {MEMORY_D}"
    said = (
        f"{size}: the 4D cost has {memory['full_float32'] / FLOAT_BYTES / 1e9:.3g} G entries, in "
        f"float32 {_both_units(memory['full_float32'])}; c^u and c^v in float32 are "
        f"{_both_units(memory['projected_float32'])}. The paper says {memory['paper_full_gb']:.0f} "
        f"and {memory['paper_projected_gb']:.1f} GB for {example}."
    )
    if memory["measured"] is None:
        return [said, "What ours takes cannot be measured here: only Linux tells."]
    ratio = memory["full_float32"] / max(1, memory["measured"])
    return [
        said,
        f"Measured: the min-projection of bits raises the memory of the process by "
        f"{memory['measured'] / 1e6:.0f} MB at most, of which {memory['outputs'] / 1e6:.0f} MB are "
        f"c^u and c^v (a byte each) and {memory['beyond_outputs'] / 1e6:.0f} MB are beyond them: "
        f"{ratio:.0f} times less than the 4D cost.",
    ]


def _about_speed(speed: dict[str, float]) -> str:
    billions = {name: speed[f"{name}_per_second"] / 1e9 for name in _RATES}
    return (
        f"In WTA, bits are {speed['measured']:.1f} times as fast as floats (in theory "
        f"{speed['theory']:.0f}, in the paper {speed['paper']:.0f}). Theory is the 32 bits of a "
        f"float; in its registers, this CPU does {billions['multiply_adds']:.0f} G multiply-adds a "
        f"second, {billions['float_entries']:.2f} G scalar products of 64 floats, and "
        f"{billions['bit_entries']:.1f} G distances of 64 bits, {speed['registers']:.1f} times as "
        f"many; FF reaches {speed['float_share_of_peak']:.0%} of the one and QQ "
        f"{speed['bit_share_of_peak']:.0%} of the other. The paper explains its figure above 32 by "
        "less memory bandwidth and better use of caches."
    )


def _both_units(size: int) -> str:
    return f"{size / 1e9:.3g} GB ({size / 2**30:.3g} GiB)"
