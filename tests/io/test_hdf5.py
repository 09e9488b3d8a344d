"""The reader of HDF5 against h5py, and against files that are made to harm it."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings
from numpy.typing import NDArray

from _flows import error_for, expected, fixture_is_fine
from hamflow.errors import FileError
from hamflow.io.flo5 import read_flo5

h5py = pytest.importorskip("h5py")

FLOW = np.random.default_rng(0).normal(size=(40, 30, 2)).astype(np.float32)
MOST_MEMORY = 2**25  # for files of some kilobytes: one chunk of 16 MB, and what is made of it


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "f.flo5"


def contents(path: Path, flow: NDArray[Any] = FLOW, **options: Any) -> bytes:
    """Return what h5py writes."""
    libver = options.pop("libver", None)
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("flow", data=flow, **options)
    return path.read_bytes()


@settings(fixture_is_fine, max_examples=60)
@given(
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    chunk=st.none() | st.tuples(st.integers(1, 50), st.integers(1, 50), st.integers(1, 2)),
    gzip=st.none() | st.integers(0, 9),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    dtype=st.sampled_from(["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]),
    libver=st.sampled_from([None, "earliest", ("v108", "v108")]),
)
def test_agrees_with_h5py(  # noqa: PLR0917
    path: Path,
    shape: tuple[int, int],
    chunk: tuple[int, int, int] | None,
    gzip: int | None,
    flags: tuple[bool, bool, bool],
    dtype: str,
    libver: Any,
) -> None:
    smooth, shuffle, checksum = flags
    flow = np.random.default_rng(1).normal(size=(*shape, 2))
    if smooth:  # what deflate cannot make smaller, HDF5 stores as it is
        flow = np.rint(flow)
    flow[0, 0, 0] = np.nan
    options: dict[str, Any] = {"libver": libver, "shuffle": shuffle, "fletcher32": checksum}
    if gzip is not None:
        options |= {"compression": "gzip", "compression_opts": gzip}
    if chunk is not None:
        options |= {"chunks": chunk, "maxshape": (None, None, 2)}
    contents(path, flow.astype(dtype), **options)
    with h5py.File(path) as file:
        wanted = expected(file["flow"][()].astype(np.float32))
    assert np.array_equal(read_flo5(path), wanted, equal_nan=True)


@pytest.mark.parametrize("count", [1, 30, 3000])
def test_among_other_objects(path: Path, count: int) -> None:
    """Three thousand chunks and names need trees of several levels."""
    flow = np.random.default_rng(1).normal(size=(count, 2, 2)).astype(np.float32)
    with h5py.File(path, "w") as file:
        for number in range(count):
            file.create_group(f"{number * 7919 % count}-{'long' * 5}")
        file.create_dataset("flow", data=flow, chunks=(1, 2, 2))
    assert (read_flo5(path) == flow).all()


def test_names_that_only_begin_alike(path: Path) -> None:
    for libver in (None, ("v108", "v108")):
        with h5py.File(path, "w", libver=libver) as file:
            file["flo"] = file["flow2"] = file["aflow"] = FLOW
        assert "no dataset flow" in error_for(path, path.read_bytes())


def test_newest_format(path: Path) -> None:
    contents(path, libver="latest")
    assert (read_flo5(path) == FLOW).all()
    assert "libver" in error_for(path, contents(path, libver="latest", compression="gzip"))


def test_many_objects_in_the_newer_format(path: Path) -> None:
    with h5py.File(path, "w", libver=("v108", "v108")) as file:
        for number in range(100):
            file.create_group(str(number))
        file["flow"] = FLOW
    assert "too many objects" in error_for(path, path.read_bytes())


def test_shared_type(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["type"] = np.dtype(np.float32)
        file.create_dataset("flow", data=FLOW, dtype=file["type"])
    assert "shares" in error_for(path, path.read_bytes())


@pytest.mark.parametrize("change", ["bias", "order", "normalization", "integer"])
def test_types_like_floats(path: Path, change: str) -> None:
    kind = h5py.h5t.IEEE_F32LE.copy()
    if change == "bias":
        kind.set_ebias(128)
    elif change == "order":
        kind.set_order(h5py.h5t.ORDER_VAX)
    elif change == "normalization":
        kind.set_norm(h5py.h5t.NORM_NONE)
    else:
        kind = h5py.h5t.STD_I32LE
    with h5py.File(path, "w") as file:
        h5py.h5d.create(file.id, b"flow", kind, h5py.h5s.create_simple((4, 5, 2)))
    assert "another type" in error_for(path, path.read_bytes())


# Where the first leaf of the tree of chunks is: behind the 24 bytes of the head of the node, a key
# has size, mask and four offsets, and then follows an address.
_HEAD, _KEY = 24, 8 + 4 * 8


def chunk_tree(data: bytes) -> int:
    """Return the address of the only node of the tree of chunks."""
    places = [k for k in range(len(data)) if data[k : k + 6] == b"TREE\1\0"]
    assert len(places) == 1
    return places[0]


def patched(data: bytes, place: int, value: bytes) -> bytes:
    return data[:place] + value + data[place + len(value) :]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 2**31, 2**32 - 1])
def test_checksum_of_a_short_chunk(path: Path, size: int) -> None:
    """HDF5 reads outside of a chunk of fewer than 4 bytes that should have a checksum."""
    good = contents(path, fletcher32=True, chunks=(40, 30, 2))
    bad = patched(good, chunk_tree(good) + _HEAD, struct.pack("<I", size))
    assert "f.flo5: " in error_for(path, bad)


def test_wrong_checksum(path: Path) -> None:
    good = contents(path, fletcher32=True, chunks=(40, 30, 2))
    tree = chunk_tree(good)
    (start,) = struct.unpack_from("<Q", good, tree + _HEAD + _KEY)
    bad = patched(good, start + 5, bytes([good[start + 5] ^ 1]))
    assert "checksum" in error_for(path, bad)


def test_a_chunk_that_inflates_without_end(path: Path) -> None:
    """The file announces small chunks, but their bytes would become 64 MB."""
    bomb = zlib.compress(bytes(2**26), 9)
    data = contents(path, compression="gzip", chunks=(40, 30, 2))
    tree = chunk_tree(data)
    place = len(data)
    bad = patched(data, tree + _HEAD, struct.pack("<I", len(bomb)))
    bad = patched(bad, tree + _HEAD + _KEY, struct.pack("<Q", place)) + bomb
    tracemalloc.start()
    try:
        assert "size of the others" in error_for(path, bad)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_chunks_at_one_place(path: Path) -> None:
    """Many chunks that share their bytes must not make a small file a large flow."""
    flow = np.zeros((4000, 30, 2), np.float32)
    data = contents(path, flow, compression="gzip", compression_opts=9, chunks=(1000, 30, 2))
    tree = chunk_tree(data)
    for number in range(4):  # each says that it takes the whole file
        entry = tree + _HEAD + number * (_KEY + 8)
        data = patched(data, entry, struct.pack("<I", len(data)))
        data = patched(data, entry + _KEY, struct.pack("<Q", 0))
    assert "does not hold them" in error_for(path, data)


@pytest.mark.parametrize("offset", [(0, 0, 0, 0), (5, 0, 0, 0), (4000, 0, 0, 0), (1000, 0, 0, 4)])
def test_chunks_outside_of_the_grid(path: Path, offset: tuple[int, ...]) -> None:
    data = contents(path, np.zeros((2000, 3, 2), np.float32), chunks=(1000, 3, 2))
    second = chunk_tree(data) + _HEAD + _KEY + 8 + 8
    assert "do not fit" in error_for(path, patched(data, second, struct.pack("<4Q", *offset)))


def test_a_tree_in_a_circle(path: Path) -> None:
    data = contents(path, chunks=(40, 30, 2))
    tree = chunk_tree(data)
    bad = patched(data, tree + 5, b"\1")  # no leaf, and its child is the node itself
    bad = patched(bad, tree + _HEAD + _KEY, struct.pack("<Q", tree))
    assert "broken" in error_for(path, bad)


def test_structures_that_overlap(path: Path) -> None:
    """Every eight bytes a table of symbols that reaches to the end of the file."""
    data = contents(path)
    tree, table = data.index(b"TREE"), data.index(b"SNOD")
    entries = bytearray()
    start = len(data)
    tables = b"".join(b"SNOD\1\0" + struct.pack("<H", 500) for _ in range(20_000))
    for number in range(2000):
        entries += struct.pack("<QQ", 0, start + 40_000 + 8 * number)
    node = data[tree : tree + 6] + struct.pack("<H", 2000) + b"\xff" * 16
    bad = (data + node + bytes(entries) + bytes(8)).ljust(start + 40_000, b"\0") + tables
    symbols = bad.index(struct.pack("<Q", tree), 96)
    bad = patched(bad, symbols, struct.pack("<Q", start))
    assert table < start
    assert "overlap" in error_for(path, bad)


def test_a_header_that_repeats_itself(path: Path) -> None:
    data = contents(path, libver=("v108", "v108"))
    place = data.index(b"OHDR", data.index(b"OHDR") + 1)
    bad = data + b"OCHK" + struct.pack("<BHB", 0x10, 16, 0) + struct.pack("<QQ", len(data), 28)
    bad += bytes(4)
    # The first message of the data set becomes one that leads to the new block.
    first = place + data[place:].index(b"\1", 6)
    bad = patched(bad, first, struct.pack("<BHB", 0x10, 16, 0) + struct.pack("<QQ", len(data), 28))
    assert "f.flo5: " in error_for(path, bad)


def _variants(folder: Path) -> list[bytes]:
    path = folder / "variant.h5"
    small = FLOW[:9, :7]
    options: list[dict[str, Any]] = [
        {},
        {"compression": "gzip"},
        {"compression": "gzip", "shuffle": True, "fletcher32": True, "chunks": (4, 3, 2)},
        {"libver": ("v108", "v108"), "compression": "gzip", "chunks": (5, 7, 2)},
        {"libver": "latest"},
    ]
    return [contents(path, small, **choice) for choice in options]


@settings(fixture_is_fine, max_examples=400)
@example(variant=1, changes=[], cut=None)
@given(
    variant=st.integers(0, 4),
    changes=st.lists(
        st.tuples(
            st.floats(0, 1, exclude_max=True),
            st.binary(min_size=1, max_size=8)
            | st.sampled_from([b"\xff" * 8, bytes(8), b"\xff\xff\xff\x7f", b"\0\0\0\x10"]),
        ),
        max_size=4,
    ),
    cut=st.none() | st.floats(0, 1),
)
def test_damaged_files(
    tmp_path: Path,
    seeds: Callable[[], list[bytes]],
    variant: int,
    changes: list[tuple[float, bytes]],
    cut: float | None,
) -> None:
    """Only FileErrors, and never more memory than the file can hold."""
    data = seeds()[variant]
    for where, value in changes:
        data = patched(data, int(where * len(data)), value)
    if cut is not None:
        data = data[: int(cut * len(data))]
    path = tmp_path / "f.flo5"
    path.write_bytes(data)
    tracemalloc.start()
    message = f"{path}: "
    try:
        flow = read_flo5(path)
    except FileError as error:
        message = str(error)
    else:
        assert (flow.dtype, flow.shape[2:]) == (np.float32, (2,))
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MOST_MEMORY
    assert message.startswith(f"{path}: ")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], list[bytes]]:
    variants = _variants(tmp_path_factory.mktemp("variants"))
    return lambda: variants
