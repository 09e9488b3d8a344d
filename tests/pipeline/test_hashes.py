"""Matches to the byte: a change that is meant to change nothing has to leave these as they are.

Everything up to the completion is computed in whole numbers, so that they are the same on every
machine. What floating point makes of them differs in the last bits from one kind of processor to
another; `python -m experiments.scripts.hashes` compares it on one machine.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

import hamflow
from _problems import with_threads
from _route import moving_square, shifted

IMAGES = {"shift": shifted(9, -4, 90, 120), "square": moving_square()[:2]}
HASHES = {
    ("shift", "fast"): "3bc4bd20a5967d90",
    ("shift", "paper"): "1fb85328a385bd1e",
    ("square", "balanced"): "c0f85969bf04f67a",
    ("square", "paper"): "09681a7077bf3eb6",
}


def matches(image: str, preset: str) -> list[Any]:
    window = 32 if preset == "paper" else (-16, 33, -8, 17)
    estimator = hamflow.Estimator(preset, model="pairs", window=window)
    frames = [estimator.frame(pixels) for pixels in IMAGES[image]]
    found = estimator.between(*frames)[1]
    return [array for d in found.directions for array in (d.flow.astype(np.int16), d.trusted)]


@pytest.mark.parametrize(("image", "preset"), HASHES)
@pytest.mark.parametrize("level", ["portable", "best"])
def test_matches(image: str, preset: str, level: str) -> None:
    hamflow.set_isa(None if level == "best" else level)
    for threads in (1, 3):
        digest = hashlib.sha256()
        for array in with_threads(threads, lambda: matches(image, preset)):
            digest.update(array.tobytes())
        assert digest.hexdigest()[:16] == HASHES[image, preset]
