"""``bench crf``: measure the joint model's solver as a whole and in its parts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial, wraps
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from experiments.bench._measure import StepProgress, copy_bandwidth, extra_memory, seconds
from experiments.bench.kernels import Problem
from hamflow._runtime import get_num_threads, machine, set_num_threads
from hamflow.crf import CrfConfig, CrfResult, solve
from hamflow.crf.arithmetic import Arithmetic
from hamflow.crf.data import BitsData, DataTerm
from hamflow.crf.dual import Axis, PlaneDual
from hamflow.crf.model import edge_weights
from hamflow.crf.rounding import Primal
from hamflow.datasets import demo_scene
from hamflow.datasets.folder import FolderDataset
from hamflow.descriptors import pair_bits
from hamflow.errors import FileError
from hamflow.evaluation import epe_metrics
from hamflow.matching import min_projection
from hamflow.window import Window

COPY_SIZE = 1 << 28
"""Bytes per thread that the plain copy reads, and writes."""
REAL_PAIRS = (
    "sintel-clean/market_5_0002",
    "sintel-clean/cave_2_0002",
    "sintel-clean/alley_1_0001",
)
RENDERED = "rendered scene"
INNERS = (1, 2, 4, 8)

# The methods in which `solve` spends its time; the rest is edge weights and memory.
_PARTS: dict[str, tuple[tuple[type[Any], str], ...]] = {
    "messages": ((DataTerm, "message"),),
    "passes": ((PlaneDual, "run_pass"),),
    "rounding": ((PlaneDual, "labels"), (Primal, "offer")),
    "last fusion": ((Primal, "spread"),),
}
_DIRECTIONS: tuple[Axis, ...] = ("horizontal", "vertical")


@dataclass(frozen=True, eq=False)
class Case:
    """A pair of images with its true flow, as the solver takes it."""

    name: str
    image: NDArray[Any]
    bits: tuple[NDArray[np.uint64], NDArray[np.uint64]]
    truth: NDArray[np.float32]

    @classmethod
    def of(cls, name: str, image0: Any, image1: Any, truth: NDArray[np.float32]) -> Case:
        """Return the case of two images, with the descriptor `pair_bits`."""
        return cls(name, image0, (pair_bits(image0), pair_bits(image1)), truth)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.image.shape[1], self.image.shape[0]

    def top(self, rows: int) -> Case:
        """Return its upper rows."""
        bits0, bits1 = (np.ascontiguousarray(bits[:rows]) for bits in self.bits)
        return replace(self, image=self.image[:rows], bits=(bits0, bits1), truth=self.truth[:rows])

    def solve(self, d: int, config: CrfConfig) -> CrfResult:
        """Run the solver on it."""
        bits0, bits1 = self.bits
        return solve(bits0=bits0, bits1=bits1, image=self.image, window=d, config=config)


def real_cases(root: str | os.PathLike[str]) -> list[Case]:
    """Return those of `REAL_PAIRS` that a folder contains.

    Raises
    ------
    FileError
        If it contains none of them.
    """
    dataset = FolderDataset(root)
    names = [name for name in REAL_PAIRS if name in dataset.names]
    if not names:
        raise FileError(
            f"{os.fspath(root)}: contains none of {', '.join(REAL_PAIRS)}; give the folder that "
            "contains sintel-clean, or omit --data."
        )
    pairs = sorted(dataset.subset(names), key=lambda pair: names.index(pair.name))
    return [Case.of(pair.name, pair.image0, pair.image1, pair.flow) for pair in pairs]


def run(
    width: int,
    height: int,
    d: int,
    rounds: int,
    *,
    real: list[Case] | None = None,
    full: bool = False,
    converge: bool = False,
    progress: StepProgress = lambda step: None,
) -> dict[str, Any]:
    """Return all measurements, in the form that ``--json`` writes.

    Parameters
    ----------
    width, height, d : int
        Size of the rendered scene and side of the square window.
    rounds : int
        Repetitions of kernels, schedules and single iterations; the best time counts.
    real : list of Case
        Pairs on which the default schedule is measured, in addition to the rendered scene.
    full : bool
        Whether to run also the whole schedule of the paper on float descriptors, for a minute.
    converge : bool
        Whether to run eight outer iterations on the rendered scene, for a plot.
    progress : callable
        Called with the name of each step when it begins.
    """
    progress("render a scene")
    scene = demo_scene(height, width)
    case = Case.of(RENDERED, scene.image0, scene.image1, scene.flow)
    cases = [*(real or []), case]

    report: dict[str, Any] = {"machine": machine(), "width": width, "height": height, "d": d}
    # Copies and kernels are measured before and after, and the better result counts: a limit must
    # not look low because the machine was busy for a moment.
    progress("copy: memory")
    copies = [copy_bandwidth(COPY_SIZE)]
    report["seconds"] = _kernels(Problem(width, height, d, floats=False), rounds, progress)
    qq = {case.size: _qq(case.size, d) for case in cases}

    paper, default = _schedules(cases, d, rounds, progress)
    report["paper schedule"], report["default schedule"] = paper, default
    passes = _passes(case, d, rounds, progress)
    progress("copy: memory, next to the passes")
    copies.append(copy_bandwidth(COPY_SIZE))
    report["extra bytes"] = dict(_memory(case, d, progress))
    report["F against Q"] = _floats(case, d, full, progress)
    report["one outer iteration"] = _one_outer(case, d, rounds, progress)
    report["inner"] = dict(_inner(case, d, progress))
    if converge:
        report["convergence"] = _convergence(case, d, progress)

    again = _kernels(Problem(width, height, d, floats=False), 1, progress)
    report["seconds"] = {name: min(t, again[name]) for name, t in report["seconds"].items()}
    qq = {size: min(time, _qq(size, d)) for size, time in qq.items()}
    progress("copy: memory, again")
    copies.append(copy_bandwidth(COPY_SIZE))
    copy = max(copies)
    report["copy bytes per second"] = copy
    # Shows how reliable a share of it is: on a shared machine it may change by half between runs.
    report["each copy bytes per second"] = copies
    for entry in passes.values():
        entry["share of copy"] = entry["bytes per second"] / copy
    report["passes"] = passes
    for entry in (paper, *default.values()):
        entry["times QQ"] = entry["seconds"]["total"] / qq[entry["width"], entry["height"]]
    full_floats = report["F against Q"].get("F, 5×8")
    if full_floats is not None:
        report["F against Q"]["ratio 5×8"] = full_floats["total"] / paper["seconds"]["total"]
    return report


def _qq(size: tuple[int, int], d: int) -> float:
    """Time a QQ min-projection, with which schedules are compared."""
    problem = Problem(*size, d, floats=False)
    problem.qq()  # the first run is slower: the memory of its outputs is not allocated yet
    return min(seconds(problem.qq) for _ in range(2))


@contextmanager
def _stopwatch() -> Iterator[dict[str, float]]:
    """Time the parts of every `solve` within the block, and the whole block as ``total``.

    Parts that run on their own would find caches and memory in another state.
    """
    parts = dict.fromkeys(_PARTS, 0.0)

    def clocked(part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(work)
        def inner(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return work(*args, **kwargs)
            finally:
                parts[part] += time.perf_counter() - start

        return inner

    with ExitStack() as stack:
        for part, methods in _PARTS.items():
            for owner, method in methods:
                replacement = clocked(part, getattr(owner, method))
                stack.enter_context(patch.object(owner, method, replacement))
        start = time.perf_counter()
        yield parts
        total = time.perf_counter() - start
    parts["rest"] = total - sum(parts.values())
    parts["total"] = total


def _timed(work: Callable[[], CrfResult]) -> tuple[CrfResult, dict[str, float]]:
    with _stopwatch() as parts:
        result = work()
    return result, parts


def _solved(case: Case, d: int, config: CrfConfig) -> dict[str, Any]:
    result, parts = _timed(partial(case.solve, d, config))
    return {
        "width": case.size[0],
        "height": case.size[1],
        "seconds": parts,
        "iterations": len(result.history),
        "bound": result.bound,
        "energy": result.energy,
        "gap": result.gap,
        "epe": float(epe_metrics(result.flow, case.truth).epe_all),
        "history": [asdict(step) for step in result.history],
    }


def _kernels(problem: Problem, rounds: int, progress: StepProgress) -> dict[str, float]:
    work: dict[str, Callable[[], None]] = {
        "QQ": problem.qq,
        "message to u": lambda: problem.message16("u"),
        "message to v": lambda: problem.message16("v"),
    }
    best = dict.fromkeys(work, float("inf"))
    for _ in range(rounds):
        for name, kernel in work.items():
            progress(name)
            best[name] = min(best[name], seconds(kernel), seconds(kernel))
    return best


def _schedules(
    cases: list[Case], d: int, rounds: int, progress: StepProgress
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the paper's schedule on the last case and the default one on all cases, in turns."""
    paper: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for _ in range(rounds):
        progress("paper schedule, 5×8")
        paper = _quicker(paper, cases[-1], d, CrfConfig.paper())
        for case in cases:
            progress(f"default: {case.name}")
            found[case.name] = _quicker(found.get(case.name, {}), case, d, CrfConfig())
    for case in cases:
        wta = min_projection(*case.bits, d).wta()
        found[case.name]["epe of WTA"] = float(epe_metrics(wta, case.truth).epe_all)
    return paper, found


def _quicker(known: dict[str, Any], case: Case, d: int, config: CrfConfig) -> dict[str, Any]:
    """Solve once more and return the faster outcome; all else is the same in every round."""
    outcome = _solved(case, d, config)
    if known and known["seconds"]["total"] <= outcome["seconds"]["total"]:
        return known
    return outcome


class _Passes:
    """A plane with a real message, on which single passes run as they do in `solve`."""

    def __init__(self, case: Case, d: int, kind: Any) -> None:
        config = CrfConfig(arithmetic=kind)
        data = BitsData(*case.bits, Window.of(d), config.c_outside)
        arithmetic = Arithmetic.choose(config, data.largest, floats=False)
        data.use(arithmetic)
        right, down = edge_weights(case.image, config.alpha)
        edges: dict[Axis, NDArray[Any]] = {
            "horizontal": arithmetic.edges(right, config),
            "vertical": arithmetic.edges(down, config),
        }
        self._plane = PlaneDual(data.shape, d, config, arithmetic, edges)
        data.message("u", np.zeros_like(self._plane.lam), self._plane.lam)

    @property
    def volume(self) -> int:
        """Bytes of lam."""
        return self._plane.lam.nbytes

    @cached_property
    def _message(self) -> NDArray[Any]:
        return self._plane.lam.copy()

    def seconds(self, direction: Axis, *, final: bool) -> float:
        """Time a pass; directions must alternate, because a plane keeps only the last state."""
        if final:
            # A final pass changes lam; `solve` then replaces lam by the next message.
            self._plane.lam[:] = self._message
        return seconds(lambda: self._plane.run_pass(direction, final=final))


def _passes(case: Case, d: int, rounds: int, progress: StepProgress) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for kind in ("int16", "float32"):
        progress(f"chain passes, {kind}")
        passes = _Passes(case, d, kind)
        # A pass reads lam and hold and writes hold; a final one also writes the slack and lam.
        for suffix, volumes in (("", 3), (", final", 5)):
            best = dict.fromkeys(_DIRECTIONS, float("inf"))
            for repetition in range(1 + 3 * rounds):
                for direction in _DIRECTIONS:
                    taken = passes.seconds(direction, final=bool(suffix))
                    if repetition:  # the first pass is slower: its memory is not allocated yet
                        best[direction] = min(best[direction], taken)
            for direction, taken in best.items():
                found[f"{kind} {direction}{suffix}"] = {
                    "seconds": taken,
                    "bytes per second": volumes * passes.volume / taken,
                }
    return found


def _memory(case: Case, d: int, progress: StepProgress) -> Iterator[tuple[str, dict[str, Any]]]:
    # One pass already allocates everything: volumes, moves and fusion.
    config = CrfConfig(outer=1, inner=1)
    for side in (d // 4, d // 2, d, 2 * d):
        progress(f"memory at D = {side}")
        taken = extra_memory(partial(case.solve, side, config))
        volume = 2 * case.image.shape[0] * case.image.shape[1] * side
        yield str(side), {"bytes": taken, "volume": volume}


def _floats(case: Case, d: int, full: bool, progress: StepProgress) -> dict[str, Any]:
    """Time float descriptors with 64 components and bits, with the same schedule."""
    rng = np.random.default_rng(0)
    width, height = case.size
    phi0, phi1 = (rng.random((height, width, 64), np.float32) - np.float32(0.5) for _ in range(2))

    def on_floats(config: CrfConfig) -> dict[str, float]:
        work = partial(solve, phi0=phi0, phi1=phi1, image=case.image, window=d, config=config)
        return _timed(work)[1]

    schedule = replace(CrfConfig.paper(), outer=1)
    progress("Q, 1×8")
    found: dict[str, Any] = {"Q, 1×8": _timed(partial(case.solve, d, schedule))[1]}
    progress("F, 1×8")
    found["F, 1×8"] = on_floats(schedule)
    found["ratio 1×8"] = found["F, 1×8"]["total"] / found["Q, 1×8"]["total"]
    if full:
        progress("F, 5×8")
        found["F, 5×8"] = on_floats(CrfConfig.paper())
    return found


def _one_outer(
    case: Case, d: int, rounds: int, progress: StepProgress
) -> dict[str, dict[str, float]]:
    """Time a single outer iteration with fewer threads, rows and labels, in turns."""
    threads = get_num_threads()
    half = case.top(case.size[1] // 2)
    variants: dict[str, tuple[int, Case, int]] = {
        f"{count} thread{'s' if count > 1 else ''}": (count, case, d)
        for count in sorted({1, 2, threads})
    }
    variants["half the rows"] = (threads, half, d)
    variants[f"D = {d // 2}"] = (threads, case, d // 2)
    found: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for name, (count, part, side) in variants.items():
            progress(f"one outer iteration, {name}")
            set_num_threads(count)
            try:
                parts = _timed(partial(part.solve, side, CrfConfig(outer=1)))[1]
            finally:
                set_num_threads(threads)
            found[name] = min(found.get(name, parts), parts, key=lambda times: times["total"])
    return found


def _inner(case: Case, d: int, progress: StepProgress) -> Iterator[tuple[str, dict[str, Any]]]:
    for inner in INNERS:
        progress(f"2 outer, {inner} inner")
        config = CrfConfig(outer=2, inner=inner, gap_tolerance=0)
        yield str(inner), _solved(case, d, config)


def _convergence(case: Case, d: int, progress: StepProgress) -> dict[str, Any]:
    progress(f"8 outer: {case.name}")
    config = CrfConfig(outer=8, gap_tolerance=0)
    return {"scene": case.name, **_solved(case, d, config)}
