"""Which part of a closer look replaces what the coarser scale found."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hamflow.refinement.closer import closer_flow
from hamflow.stages import MatchEvidence


@given(st.integers(1, 14), st.integers(1, 18), st.integers(0, 2**32 - 1), st.floats(0, 0.2))
def test_against_a_loop(height: int, width: int, seed: int, share: float) -> None:
    """Near decided matches and where little changes it is the finer flow, elsewhere the coarser."""
    random = np.random.default_rng(seed)
    coarse, fine, matched = random.normal(0, 4, (3, height, width, 2)).astype(np.float32)
    trusted = random.random((height, width)) < share
    decided = random.random((height, width)).astype(np.float32)
    image, bits = np.zeros((height, width, 3), np.uint8), np.zeros((height, width), np.uint64)
    evidence = MatchEvidence(
        image, (bits, bits), matched, trusted, None, image, decided=decided, coarse=coarse
    )
    found = closer_flow(evidence, fine)
    assert found.dtype == np.float32
    for y, x in np.ndindex(height, width):
        square = np.s_[max(0, y - 8) : y + 9, max(0, x - 8) : x + 9]
        change = np.hypot(*(fine[y, x] - coarse[y, x]))
        if abs(change - 4) < 1e-4:
            continue
        near = (trusted[square] & (decided[square] > 0.5)).any()
        wanted = fine if near or change < 4 else coarse
        assert (found[y, x] == wanted[y, x]).all()
