from __future__ import annotations

import io
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from _flows import error_for, expected, fixture_is_fine, flows
from hamflow.errors import FileError
from hamflow.io import read_flow
from hamflow.io.npy import read_npy, write_npy, write_npz

GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 2), }"


def npy(header: str = GOOD, body: bytes = bytes(16), version: int = 1) -> bytes:
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode("latin-1") + body


def npz(member: bytes, name: str = "flow.npy", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr(name, member)
    return buffer.getvalue()


def both(tmp_path: Path, member: bytes) -> list[str]:
    """Return how the array is refused on its own and in an archive."""
    return [
        error_for(tmp_path / "f.npy", member),
        error_for(tmp_path / "f.npz", npz(member)),
    ]


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8", "<f2", ">f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_that_numpy_saves(tmp_path: Path, dtype: str, order: Any) -> None:
    flow = np.random.default_rng(0).normal(size=(4, 5, 2)).astype(dtype, order=order)
    flow[1, 2, 0] = np.nan
    wanted = expected(flow).astype(np.float32)
    np.save(tmp_path / "f.npy", flow)
    np.savez(tmp_path / "g.npz", flow=flow, other=np.array(["x"]))
    np.savez_compressed(tmp_path / "h.npz", flow=flow)
    for name in ("f.npy", "g.npz", "h.npz"):
        assert np.array_equal(read_flow(tmp_path / name), wanted, equal_nan=True)


@fixture_is_fine
@given(flow=flows)
def test_numpy_reads_what_we_write(tmp_path: Path, flow: NDArray[np.float32]) -> None:
    write_npy(tmp_path / "f.npy", flow)
    write_npz(tmp_path / "f.npz", flow)
    with np.load(tmp_path / "f.npz", allow_pickle=False) as archive:
        assert list(archive) == ["flow"]
        arrays = [archive["flow"], np.load(tmp_path / "f.npy", allow_pickle=False)]
    for array in arrays:
        assert array.dtype == np.float32
        assert np.array_equal(array, expected(flow), equal_nan=True)


def test_npz_is_compressed(tmp_path: Path) -> None:
    write_npz(tmp_path / "f.npz", np.zeros((64, 64, 2)))
    assert (tmp_path / "f.npz").stat().st_size < 64 * 64


@pytest.mark.parametrize("version", [1, 2, 3])
def test_versions(tmp_path: Path, version: int) -> None:
    (tmp_path / "f.npy").write_bytes(npy(version=version))
    assert read_npy(tmp_path / "f.npy").shape == (1, 2, 2)


def test_values_that_float32_cannot_hold(tmp_path: Path) -> None:
    flow = np.array([[[1e300, 0], [0, -np.inf], [1e9, -1e9], [1e9 + 1, 0]]])
    np.save(tmp_path / "f.npy", flow)
    back = read_npy(tmp_path / "f.npy")
    assert np.isnan(back[0, [0, 1, 3]]).all()
    assert back[0, 2].tolist() == [1e9, -1e9]


def test_pickles_are_refused(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return Path(tmp_path / "exploded").touch, ()

    np.save(tmp_path / "f.npy", np.array([Bomb()], object), allow_pickle=True)
    for message in both(tmp_path, (tmp_path / "f.npy").read_bytes()):
        assert "never loads" in message
    assert "NUMPY" in error_for(tmp_path / "f.npy", pickle.dumps(Bomb()))
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("dtype", ["i4", "u1", "?", "c8", "U3", "S4", "M8[s]", "V8", "g"])
def test_other_types(tmp_path: Path, dtype: str) -> None:
    np.save(tmp_path / "f.npy", np.zeros((2, 3, 2), dtype))
    for message in both(tmp_path, (tmp_path / "f.npy").read_bytes()):
        assert "float32" in message


def test_structured_type(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.zeros((2, 3, 2), [("u", "f4")]))
    for message in both(tmp_path, (tmp_path / "f.npy").read_bytes()):
        assert "of the type |V4, but a flow is of float16, float32" in message


@pytest.mark.parametrize("shape", [(), (4,), (3, 2), (2, 4, 5), (3, 4, 3), (1, 3, 4, 2)])
def test_other_shapes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "f.npy", np.zeros(shape, np.float32))
    for message in both(tmp_path, (tmp_path / "f.npy").read_bytes()):
        assert f"has the shape {shape}, but" in message


def test_negative_sizes(tmp_path: Path) -> None:
    for message in both(tmp_path, npy(GOOD.replace("1, 2", "-1, -2", 1))):
        assert "impossible size" in message


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2)])
def test_no_pixels(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "f.npy", np.zeros(shape, np.float32))
    for message in both(tmp_path, (tmp_path / "f.npy").read_bytes()):
        assert "impossible size" in message


@pytest.mark.parametrize(
    "header",
    [
        "",
        "[]",
        "{}",
        GOOD.replace("(1, 2, 2)", "None"),
        GOOD.replace("(1, 2, 2)", "[1, 2, 2]"),
        GOOD.replace("(1, 2, 2)", "'(1, 2, 2)'"),
        GOOD.replace("False", "0"),
        GOOD.replace("False", "(1, 2, 2)"),
        GOOD.replace("'<f4'", "True"),
        GOOD.replace("'fortran_order': False, ", ""),
        GOOD.replace("'fortran_order': False, ", "'descr': '<f4', "),
        GOOD.replace(", }", ", 'more': 1}"),
        GOOD.replace("'descr'", "__import__('os').abort()"),
        "{" * 3000,
        "-" * 4000,
        "\xff" * 50,
    ],
)
def test_bad_headers(tmp_path: Path, header: str) -> None:
    for message in both(tmp_path, npy(header)):
        assert "header" in message


def test_order_of_the_entries_does_not_matter(tmp_path: Path) -> None:
    header = "{ 'shape' : (1,2,2) ,\n'fortran_order':False,'descr':'<f4'}  \n"
    (tmp_path / "f.npy").write_bytes(npy(header))
    assert read_npy(tmp_path / "f.npy").shape == (1, 2, 2)


def test_bad_starts(tmp_path: Path) -> None:
    for content in (b"", b"\x93NUMP", b"\x93numpy\1\0" + bytes(40), b"PIEH" + bytes(40)):
        for message in both(tmp_path, content):
            assert "NUMPY" in message
    for message in both(tmp_path, npy(version=4)):
        assert "version" in message
    # A header of four gigabytes, of which nothing is there.
    for message in both(tmp_path, b"\x93NUMPY\2\0\xff\xff\xff\xff{"):
        assert "header" in message
    for message in both(tmp_path, npy(GOOD + " " * 5000, version=2)):
        assert "longer than 4096 bytes" in message


def test_huge_sizes_are_refused_before_allocating(tmp_path: Path) -> None:
    for sizes, words in (("9999999999, 9999999999", "more than"), ("16384, 8192", "truncated")):
        for message in both(tmp_path, npy(GOOD.replace("1, 2", sizes, 1))):
            assert words in message
    for message in both(tmp_path, npy(GOOD.replace("1, 2", "9" * 40 + ", 2", 1))):
        assert "more than" in message


def test_wrong_length(tmp_path: Path) -> None:
    for message in both(tmp_path, npy(body=bytes(15))):
        assert "truncated" in message
    for message in both(tmp_path, npy(body=bytes(17))):
        assert "too long" in message


def test_archives_without_a_flow(tmp_path: Path) -> None:
    path = tmp_path / "f.npz"
    for name in ("arr_0.npy", "flow", "Flow.npy", "a/flow.npy", "../flow.npy"):
        assert "no arrays called flow" in error_for(path, npz(npy(), name))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("flow.npy", npy())
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("flow.npy", npy())
    assert "2 arrays called flow" in error_for(path, buffer.getvalue())


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions(tmp_path: Path, method: int) -> None:
    assert "NumPy does not use" in error_for(tmp_path / "f.npz", npz(npy(), method=method))


def test_damaged_archives(tmp_path: Path) -> None:
    path = tmp_path / "f.npz"
    good = bytearray(npz(npy(), method=zipfile.ZIP_STORED))
    flipped = good.copy()
    flipped[good.index(b"{'descr'") + len(GOOD) + 3] ^= 1  # a pixel
    assert "CRC" in error_for(path, bytes(flipped))
    encrypted = good.copy()
    encrypted[6] |= 1
    encrypted[good.index(b"PK\1\2") + 8] |= 1
    assert "encrypted" in error_for(path, bytes(encrypted))
    # The sizes in the directory, which promise far more than is there.
    for field, size in ((20, 2**31), (24, 2**31)):
        lying = good.copy()
        place = good.index(b"PK\1\2") + field
        lying[place : place + 4] = struct.pack("<I", size)
        assert "more than it can hold" in error_for(path, bytes(lying))


@fixture_is_fine
@given(place=st.integers(0, 2**16), value=st.integers(0, 255))
def test_one_changed_byte(tmp_path: Path, place: int, value: int) -> None:
    content = bytearray(npz(npy()))
    content[place % len(content)] = value
    (tmp_path / "f.npz").write_bytes(content)
    try:
        flow = read_flow(tmp_path / "f.npz")
    except FileError:
        return
    # The checksum vouches for the pixels.
    assert (flow == np.zeros((1, 2, 2))).all()
