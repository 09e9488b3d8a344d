"""Damaged files of every format: one sentence, or a result; see also ``make fuzz``."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from _flows import fixture_is_fine
from fuzz.targets import TARGETS, check

pytest.importorskip("av")
pytest.importorskip("h5py")
pytest.importorskip("tifffile")

NUMBERS = (b"\xff" * 4, b"\xff" * 8, bytes(4), bytes(8), b"\xff\xff\xff\x7f", b"\0\0\0\x80")


@st.composite
def damages(draw: st.DrawFn) -> list[tuple[str, float, bytes]]:
    """What is done to a file: where (as a share of its length), and with which bytes."""
    kinds = st.sampled_from(["replace", "insert", "remove", "cut"])
    values = st.binary(min_size=1, max_size=8) | st.sampled_from(NUMBERS)
    return draw(st.lists(st.tuples(kinds, st.floats(0, 1), values), min_size=1, max_size=4))


def damaged(data: bytes, changes: list[tuple[str, float, bytes]]) -> bytes:
    for kind, share, value in changes:
        place = int(share * len(data))
        if kind == "cut":
            data = data[:place]
        elif kind == "insert":
            data = data[:place] + value + data[place:]
        else:
            rest = data[place + len(value) :]
            data = data[:place] + (value if kind == "replace" else b"") + rest
    return data


@pytest.mark.parametrize("name", TARGETS)
def test_good_files(tmp_path: Path, name: str) -> None:
    target = TARGETS[name]
    accepted = [check(target, tmp_path / f"a{target.suffix}", data) for data in target.seeds()]
    # The newest format of HDF5 is refused if it is compressed.
    assert accepted.count(False) == (2 if name == "flo5" else 0)


@pytest.mark.parametrize("name", TARGETS)
@settings(fixture_is_fine, max_examples=40)
@given(number=st.integers(0, 99), changes=damages())
def test_damaged_files(
    tmp_path: Path, name: str, number: int, changes: list[tuple[str, float, bytes]]
) -> None:
    target = TARGETS[name]
    seeds = SEEDS.setdefault(name, list(target.seeds()))
    data = damaged(seeds[number % len(seeds)], changes)
    check(target, tmp_path / f"a{target.suffix}", data)


SEEDS: dict[str, list[bytes]] = {}


@pytest.mark.parametrize("name", TARGETS)
def test_bytes_that_cannot_be_printed(tmp_path: Path, name: str) -> None:
    """Also in the name of the file, a message is one line."""
    target = TARGETS[name]
    for data in (b"", b"\n", b"\r\n\x1b[31m\x85\0", next(iter(target.seeds()))[:-1] + b"\n\n"):
        check(target, tmp_path / f"a\nb\x1b{target.suffix}", data)
