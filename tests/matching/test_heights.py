"""A strip of an image is matched with the rows of the other image that its window reaches."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from _crf_problems import LEVELS
from _problems import at_level, random_bits, random_phi, same_bytes
from hamflow import Window, _native
from hamflow.matching.strips import cut_strip

WINDOWS = ((-3, 8, -4, 7), (0, 1, -2, 9), (-40, 75, 1, 1), (2, 3, 5, 2), (-2, 4, -30, 12))


def results(fields: Any, window: Any, lam: Any) -> list[Any]:
    """What all kernels say that take a second field of another height."""
    bits, phi = fields[:2], fields[2:]
    shape, (_, du, _, dv) = bits[0].shape[:2], window
    counts = {"u": du, "v": dv}
    found: list[Any] = []

    def new(count: int, dtype: Any) -> Any:
        found.append(np.zeros((*shape, count), dtype))
        return found[-1]

    for arguments in ((None, None), (new(du, np.int16), new(dv, np.int16))):
        both = new(du, np.uint8), new(dv, np.uint8)
        _native.min_projection(*bits, window, 32, *both, *arguments)
    for to, sender in (("u", "v"), ("v", "u")):
        sent, count = lam[sender], counts[to]
        _native.message16(*bits, window, to, (4, -128, 9), sent, new(count, np.int16))
        floats = sent.astype(np.float32)
        _native.message32(*bits, window, to, (4.0, -128.0, 9.0), floats, new(count, np.float32))
        _native.float_message(*phi, window, to, 0.5, floats, new(count, np.float32))
    return found


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    window=st.sampled_from(WINDOWS),
    size=st.tuples(*map(st.sampled_from, ([1, 9, 66], [1, 2], [1, 2, 5]))),
)
def test_strips_are_parts_of_the_whole(
    level: str, seed: int, window: tuple[int, int, int, int], size: tuple[int, int, int]
) -> None:
    rng, height = np.random.default_rng(seed), 11
    width, words, rows = size
    if level == "reference" and width > 9:
        width = 9  # it is slow
    fields = [random_bits(rng, height, width, words) for _ in range(2)]
    fields += [random_phi(rng, height, width, 5) for _ in range(2)]
    counts = {"u": window[1], "v": window[3]}
    lam = {
        name: rng.integers(-99, 99, (height, width, count)).astype(np.int16)
        for name, count in counts.items()
    }
    whole = at_level(level, lambda: results(fields, window, lam))
    for top in range(0, height, rows):
        here = slice(top, min(top + rows, height))
        bits, moved = cut_strip((fields[0], fields[1]), Window(*window), top, here.stop)
        phi, _ = cut_strip((fields[2], fields[3]), Window(*window), top, here.stop)
        strip = [*bits, *phi]
        sent = {name: values[here] for name, values in lam.items()}
        found = at_level(level, lambda s=strip, m=moved, x=sent: results(s, m.as_tuple(), x))
        for mine, expected in zip(found, whole, strict=True):
            assert same_bytes(mine, expected[here])


def test_other_kernels_want_one_size() -> None:
    bits = random_bits(np.random.default_rng(0), 6, 7, 1)
    labels, costs = np.zeros((6, 7), np.int16), np.zeros((6, 7))
    with pytest.raises(ValueError, match="bits1 has the wrong shape"):
        _native.label_costs(bits, bits[1:], (0, 2, 0, 2), labels, labels, 0.0, costs)
    with pytest.raises(ValueError, match="bits1 has the wrong shape"):
        _native.message16(
            bits,
            bits[:, 1:].copy(),
            (0, 2, 0, 2),
            "u",
            (4, -128, 9),
            np.zeros((6, 7, 2), np.int16),
            np.zeros((6, 7, 2), np.int16),
        )
