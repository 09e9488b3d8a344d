"""A dataclass in a .npz file."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from _flows import fixture_is_fine
from _trees import message_of
from hamflow.errors import FileError, InputError
from hamflow.io import read_flow
from hamflow.io._record import read_record, write_record


@dataclass(frozen=True)
class Part:
    count: int
    share: float = 0.5

    def __post_init__(self) -> None:
        if self.count > 100:
            raise InputError("count must be at most 100.")


@dataclass(frozen=True)
class Thing:
    flow: NDArray[np.float32]
    mask: NDArray[np.bool_] | None
    energy: float | None
    part: Part
    parts: tuple[Part, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    cut: bool = False
    name: str = ""
    box: tuple[int, float] | None = None


@dataclass(frozen=True)
class Other:
    count: int


FLOW = np.random.default_rng(0).normal(size=(5, 7, 2)).astype(np.float32)
THING = Thing(
    FLOW, FLOW[..., 0] > 0, 1 / 3, Part(3), (Part(1, 0.1), Part(2)), {"a": 1e-9}, True, "", (3, 4.0)
)


def same(a: Thing, b: Thing) -> bool:
    arrays = zip((a.flow, a.mask), (b.flow, b.mask), strict=True)
    names = ("energy", "part", "parts", "seconds", "cut", "name", "box")
    return all(
        (x is None and y is None) or (x.dtype == y.dtype and np.array_equal(x, y, equal_nan=True))
        for x, y in arrays
    ) and all(getattr(a, name) == getattr(b, name) for name in names)


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    bare = Thing(FLOW * np.nan, None, None, Part(0))
    infinite = Thing(FLOW, None, float("-inf"), Part(0), name="ä\u2028")
    for thing in (THING, bare, infinite):
        write_record(path, thing)
        back = read_record(path, Thing)
        assert same(back, thing)
        assert back.flow.flags.writeable
        assert os.listdir(tmp_path) == ["a.npz"]
    write_record(path, Thing(FLOW, None, np.float64(2), Part(0)))  # as NumPy's functions return it
    assert read_record(path, Thing).energy == 2


def test_numpy_and_the_reader_of_flows_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_record(path, THING)
    assert (read_flow(path) == FLOW).all()
    with np.load(path, allow_pickle=False) as archive:
        assert sorted(archive) == ["flow", "json", "mask"]
        assert json.loads(archive["json"].tobytes())["fields"]["seconds"] == {"a": 1e-9}


def refused(path: Path, content: bytes | None = None) -> str:
    if content is not None:
        path.write_bytes(content)
    return message_of(lambda: read_record(path, Thing), path)


def test_damaged_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_record(path, THING)
    good = path.read_bytes()
    for length in range(0, len(good), 7):
        refused(path, good[:length])
    refused(path, good + b"\0")


@fixture_is_fine
@given(place=st.integers(0, 10**6), value=st.integers(1, 255))
def test_a_changed_byte(tmp_path: Path, place: int, value: int) -> None:
    """It is refused, or did not matter (such as the date of a member)."""
    path = tmp_path / "a.npz"
    write_record(path, THING)
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= value
    path.write_bytes(content)
    try:
        back = read_record(path, Thing)
    except FileError:
        return
    assert same(back, THING)


def with_text(path: Path, text: str, **arrays: Any) -> None:
    content = {"flow": FLOW, **arrays}
    np.savez(path, json=np.frombuffer(text.encode(), np.uint8), **content)


def fields(**changes: Any) -> str:
    values: dict[str, Any] = {"energy": None, "part": {"count": 1}, "mask": None} | changes
    return json.dumps({"kind": "Thing", "fields": values})


def test_the_text_decides(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with_text(path, fields(energy=3))
    back = read_record(path, Thing)
    assert (back.energy, back.part, back.mask, back.cut) == (3.0, Part(1), None, False)
    assert isinstance(back.energy, float)


@pytest.mark.parametrize(
    "changes",
    [
        {"energy": "3"},
        {"energy": True},
        {"energy": 10**400},
        {"part": 3},
        {"part": {}},
        {"part": {"count": 1.5}},
        {"part": {"count": 101}},
        {"part": {"count": 1, "more": 2}},
        {"parts": {}},
        {"parts": [1]},
        {"parts": None},
        {"seconds": [1]},
        {"seconds": {"a": None}},
        {"cut": 1},
        {"cut": None},
        {"name": 3},
        {"flow": 3},
        {"mask": []},
        {"box": [1]},
        {"box": [1, 2.0, 3]},
        {"box": [1.5, 2.0]},
    ],
)
def test_values_of_other_types(tmp_path: Path, changes: dict[str, Any]) -> None:
    with_text(tmp_path / "a.npz", fields(**changes))
    assert "is damaged (" in refused(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "text", ["", "{", "3", "null", "[]", "{}", '{"kind": "Thing"}', "[" * 9999]
)
def test_texts_of_another_form(tmp_path: Path, text: str) -> None:
    with_text(tmp_path / "a.npz", text or " ")
    assert "damaged" in refused(tmp_path / "a.npz")


def test_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, flow=FLOW)
    assert "read a flow alone with hamflow.read_flow" in refused(path)
    write_record(path, Other(1))
    assert "holds a Other, not a Thing" in refused(path)
    assert "not a .npz file" in refused(path, b"PIEH")
    assert "does not exist" in refused(tmp_path / "gone.npz")
    with_text(path, fields(new=1))
    assert "holds new, which this version of Hamflow does not know" in refused(path)
    with_text(path, json.dumps({"kind": "Thing", "fields": {"part": {"count": 1}}}))
    assert "lacks mask, energy; save the Thing again" in refused(path)


def test_arrays_of_other_kinds(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with_text(path, fields(), flow=FLOW.astype(np.float64))
    assert "its array flow is of the type <f8, not float32" in refused(path)
    with_text(path, fields(), flow=FLOW[0, 0])
    assert "which is no image" in refused(path)
    with_text(path, fields(), mask=np.zeros((5, 7), np.uint8))
    assert "its array mask is of the type |u1, not bool" in refused(path)
    np.savez(path, flow=FLOW, json=np.array("text"))
    assert "holds no text" in refused(path)
    with_text(path, fields(), mask=np.array([[None]]))
    assert "never loads" in refused(path)


def test_nothing_is_allocated_for_what_a_header_announces(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (8000, 8000, 2), }"
    member = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode()
    with_text(path, fields())
    with zipfile.ZipFile(path) as archive:
        text = archive.read("json.npy")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("json.npy", text)
        archive.writestr("flow.npy", member)
    assert "is truncated" in refused(path)
