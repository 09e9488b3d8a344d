"""The promise of docs/promises.md: the same bytes for any number of threads, on any level."""

from __future__ import annotations

import hashlib
from itertools import product
from typing import Any

import numpy as np
import pytest

import hamflow
from _paths import ROOT
from _problems import run_python
from _route import moving_square, shifted
from _tiles import InTiles
from hamflow import FlowResult
from hamflow.config import PRESETS

THREADS = (1, 2, 3, 8)


def digest(result: FlowResult) -> str:
    """A hash of all arrays and numbers of a result."""
    found = hashlib.sha256()
    for name in ("flow", "backward", "occlusion", "confidence"):
        array = getattr(result, name)
        found.update(b"none" if array is None else array.tobytes())
    steps = [(step.iteration, step.bound, step.energy) for step in result.history]
    found.update(repr((result.energy, result.bound, result.window.as_tuple(), steps)).encode())
    return found.hexdigest()


def images(preset: str) -> list[tuple[Any, Any]]:
    # Odd sizes, so that the pieces of the threads differ; the paper's preset searches 128² labels.
    first, second = moving_square()[:2]
    cut = np.s_[20:65, 24:85]
    square = first[cut], second[cut]
    return [shifted(3, 2, 25, 38)] if preset == "paper" else [square, shifted(7, -4, 45, 61)]


@pytest.mark.parametrize(("preset", "tiled"), [*((p, False) for p in PRESETS), ("fast", True)])
def test_threads_and_instruction_sets(preset: str, tiled: bool) -> None:
    found: dict[str, set[tuple[str, int]]] = {}
    pair = shifted(7, -4, 130, 170) if tiled else images(preset)[0]
    for level, threads in product(hamflow.isa_levels(), (1, 3) if tiled else THREADS):
        hamflow.set_isa(level)
        hamflow.set_num_threads(threads)
        estimator = InTiles(preset, 125 * 125) if tiled else hamflow.Estimator(preset)
        found.setdefault(digest(estimator.estimate(*pair)), set()).add((level, threads))
    assert len(found) == 1, found


@pytest.mark.parametrize("preset", ["realtime", "fast"])
def test_one_estimator_again_and_again(preset: str) -> None:
    """Whatever it has computed before, and whatever is left in the memory."""
    estimator = hamflow.Estimator(preset)
    first, second = images(preset)
    expected = digest(estimator.estimate(*first))
    for _ in range(3):
        estimator.estimate(*second)
        assert digest(estimator.estimate(*first)) == expected


VIDEO = """
import sys
import hamflow
sys.path.insert(0, sys.argv[1])
from hashlib import sha256
from _videos import moving
hamflow.set_num_threads(int(sys.argv[2]))
for item in hamflow.video(moving(4, 60, 90), preset="fast"):
    print(sha256(item.flow.tobytes() + item.backward.tobytes()).hexdigest())
"""


def test_process_after_process() -> None:
    """Addresses, hashes of strings and the order of memory differ, but not the flows of a video."""
    said = {
        run_python(
            "-c", VIDEO, str(ROOT / "tests"), threads, timeout=120, PYTHONHASHSEED=seed
        ).stdout
        for threads, seed in (("1", "1"), ("2", "2"), ("3", "0"))
    }
    assert len(said) == 1
    assert len(said.pop().split()) == 3


def test_other_inputs_give_other_bytes() -> None:
    """The hash notices a change of one pixel."""
    first, second = images("realtime")[1]
    changed = second.copy()
    changed[20, 30] ^= np.uint8(64)
    estimator = hamflow.Estimator("realtime")
    assert digest(estimator.estimate(first, second)) != digest(estimator.estimate(first, changed))
