"""Table 2 of the paper, and its claims about memory and speed, measured on this machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray

from experiments.bench._measure import MIXES, StepProgress, extra_memory, register_peak, seconds
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
from hamflow._scale import downsample
from hamflow._types import Pixels
from hamflow.crf import CrfConfig, solve
from hamflow.datasets import demo_scene
from hamflow.descriptors import Descriptor, load_model
from hamflow.errors import InputError
from hamflow.matching import float_min_projection, hybrid_min_projection, min_projection

COLUMNS = ("features", "wta", "full")
"""Feature extraction of one frame, the local model, and the joint model."""
FLOAT_BYTES = 4
THIRD = 3
_SMALLEST = 32  # the smallest side that `demo_scene` renders
_MULTIPLE = 8  # D is a multiple of this, as in all benchmarks
_RATES = ("multiply_adds", "float_entries", "bit_entries")
# Floats take long, so more repetitions would hardly change the best time.
_MOST_ROUNDS = {("FF", "wta"): 2, ("FF", "full"): 1}


@dataclass(frozen=True)
class Row:
    """A row of the table: a kind of matching at a size.

    Attributes
    ----------
    name : str
        Its name; it contains D if that differs from the table's.
    matching : str
        FF, FQ or QQ.
    factor : int
        The factor by which the frames are reduced.
    d : int
        Side of the square window, in pixels of the reduced frames.
    published : str
        The name of the row in the paper.
    """

    name: str
    matching: str
    factor: int
    d: int
    published: str


def rows(d: int) -> tuple[Row, ...]:
    """Return the rows to measure.

    At 1/3 resolution there are two: one with the same D, and one with the same search range.
    """
    full = tuple(Row(name, name, 1, d, name) for name in ("FF", "FQ", "QQ"))
    sides = dict.fromkeys((d, third_of(d)))
    third = (
        Row(f"QQ (1/3 res., D = {side})", "QQ", THIRD, side, "QQ (1/3 res.)") for side in sides
    )
    return (*full, *third)


def third_of(d: int) -> int:
    """Return the D of the same search range at 1/3 resolution, rounded up to a multiple of 8."""
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
    progress: StepProgress = lambda _: None,
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
        Skip the joint model on floats.
    progress : callable
        Called with the name of each step when it begins.
    """
    progress("render a scene")
    scene = demo_scene(height, width)
    network = load_model(model)
    cases = []
    for row in rows(d):
        progress(f"descriptors: {row.name}")
        cases.append(_Case(row, network, scene.image0, scene.image1))
    # Measured before and after: a limit must not look low because the machine was busy.
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
    """A row with its frames and descriptors, so that its parts can be timed on their own."""

    def __init__(self, row: Row, model: Descriptor, image0: Pixels, image1: Pixels) -> None:
        self.row = row
        self._model = model
        self._frames = downsample(image0, row.factor), downsample(image1, row.factor)
        self._fields = self._describe(0), self._describe(1)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self._frames[0].shape[1], self._frames[0].shape[0]

    def work(self, column: str) -> Callable[[], object]:
        """Return the function that a column times."""
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
    cases: list[_Case], rounds: int, quick: bool, progress: StepProgress
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
    """Return a row with the paper's times, without measurements."""
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


def _peaks(progress: StepProgress) -> dict[str, float]:
    found = {}
    for mix in MIXES:
        progress(f"register peak: {mix}")
        found[mix] = register_peak(mix)
    return found


def _memory(model: Descriptor, image0: Pixels, image1: Pixels, d: int) -> dict[str, Any]:
    """Compare the memory of the min-projection of bits with that of the full 4D cost."""
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
    """Compare the local model on bits with floats, and both with the peak of the registers."""
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
    """Return sentences that explain the table."""
    return [*_about_times(report), *_about_memory(report), _about_speed(report["speedup"])]


def _about_times(report: dict[str, Any]) -> list[str]:
    layers = "" if report["layers"] is None else f" ({report['layers']} layers)"
    d = report["d"]
    schedule = "×".join(str(count) for count in CRF_SCHEDULE)
    return [
        f"Features are those of one frame by the model {report['model']}{layers}, as floats for FF "
        "and FQ and as bits for QQ; a pair has two frames. WTA is the min-projection and the "
        f"choice of the winner, the full model {schedule} iterations of the CRF; the time of the "
        "features is included in neither.",
        f"At 1/3 resolution, D = {third_of(d)} covers the same motion as D = {d} at full "
        f"resolution (a third, rounded up to a multiple of {_MULTIPLE}). The paper's times at 1/3 "
        "resolution are about a tenth of those at full resolution, which fits a ninth of the "
        f"pixels with the same D, so its row probably has D = {d}.",
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
        return [said, "The memory of ours cannot be measured here: only Linux reports it."]
    ratio = memory["full_float32"] / max(1, memory["measured"])
    return [
        said,
        f"Measured: the min-projection of bits needs {memory['measured'] / 1e6:.0f} MB, of which "
        f"{memory['outputs'] / 1e6:.0f} MB are c^u and c^v (a byte per entry) and "
        f"{memory['beyond_outputs'] / 1e6:.0f} MB are temporary. That is {ratio:.0f} times less "
        "than the 4D cost.",
    ]


def _about_speed(speed: dict[str, float]) -> str:
    billions = {name: speed[f"{name}_per_second"] / 1e9 for name in _RATES}
    return (
        f"In WTA, bits are {speed['measured']:.1f} times as fast as floats (in theory "
        f"{speed['theory']:.0f}, because a float has 32 bits; in the paper {speed['paper']:.0f}, "
        "which it explains by less memory bandwidth and better use of caches). On registers alone, "
        f"this CPU does {billions['multiply_adds']:.0f} G multiply-adds per second, that is "
        f"{billions['float_entries']:.2f} G scalar products of 64 floats, and "
        f"{billions['bit_entries']:.1f} G distances of 64 bits, {speed['registers']:.1f} times as "
        f"many. FF reaches {speed['float_share_of_peak']:.0%} and QQ "
        f"{speed['bit_share_of_peak']:.0%} of these peaks."
    )


def _both_units(size: int) -> str:
    return f"{size / 1e9:.3g} GB ({size / 2**30:.3g} GiB)"
