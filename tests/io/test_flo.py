from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray

from _paths import DATA, needs_data
from hamflow.errors import FileError, HamflowError, InputError
from hamflow.io import read_flow, write_flow
from hamflow.io.flo import read_flo, write_flo

components = st.floats(-1e9, 1e9, width=32) | st.just(float("nan"))
flows = hnp.arrays(
    np.float32, st.tuples(st.integers(1, 6), st.integers(1, 6), st.just(2)), elements=components
)


def header(width: int, height: int, magic: bytes = b"PIEH") -> bytes:
    return struct.pack("<4sii", magic, width, height)


def error_for(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "bad.flo"
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_flo(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(flow=flows)
def test_round_trip(tmp_path: Path, flow: NDArray[np.float32]) -> None:
    path = tmp_path / "f.flo"
    write_flo(path, flow)
    expected = flow.copy()
    expected[np.isnan(flow).any(axis=2)] = np.nan
    back = read_flo(path)
    assert back.dtype == np.float32
    assert back.flags.writeable
    assert back.tobytes() == expected.tobytes() or np.array_equal(back, expected, equal_nan=True)
    assert os.listdir(tmp_path) == ["f.flo"]


def test_bytes_on_disk(tmp_path: Path) -> None:
    flow = np.array([[[1, -2], [np.nan, 3], [0.5, 0]]], np.float32)
    write_flo(tmp_path / "f.flo", flow)
    expected = header(3, 1) + struct.pack("<6f", 1, -2, 1e10, 1e10, 0.5, 0)
    assert (tmp_path / "f.flo").read_bytes() == expected


def test_unknown_values_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f.flo"
    values = [1e10, 0, 0, -1e10, float("nan"), 1, 2, float("inf"), 1e9, -1e9, 3, 4]
    path.write_bytes(header(2, 3) + struct.pack("<12f", *values))
    flow = read_flo(path)
    unknown = np.isnan(flow)
    assert (unknown[:, :, 0] == unknown[:, :, 1]).all()
    assert unknown[:, :, 0].tolist() == [[True, True], [True, True], [False, False]]
    assert flow[2].tolist() == [[1e9, -1e9], [3, 4]]


def test_any_layout_is_written_alike(tmp_path: Path) -> None:
    flow = np.arange(24, dtype=np.float64).reshape(3, 4, 2)
    write_flo(tmp_path / "a.flo", flow.astype(np.float32))
    others: list[Any] = [
        flow,
        np.asfortranarray(flow),
        flow.astype(">f8"),
        flow.astype(int),
        flow.tolist(),
        flow[::-1][::-1],
    ]
    for other in others:
        write_flo(tmp_path / "b.flo", other)
        assert (tmp_path / "b.flo").read_bytes() == (tmp_path / "a.flo").read_bytes()


def test_writing_does_not_touch_the_array(tmp_path: Path) -> None:
    flow = np.full((2, 2, 2), np.nan, np.float32)
    write_flo(tmp_path / "a.flo", flow)
    assert np.isnan(flow).all()


def test_bad_headers(tmp_path: Path) -> None:
    assert "PIEH" in error_for(tmp_path, b"")
    assert "PIEH" in error_for(tmp_path, b"PIE")
    assert "PIEH" in error_for(tmp_path, header(1, 1, b"HEIP") + bytes(8))
    assert "truncated" in error_for(tmp_path, b"PIEH")
    assert "truncated" in error_for(tmp_path, header(1, 1)[:11])
    for width, height in ((0, 1), (1, 0), (-1, 1), (1, -1), (-2, -2), (-(2**31), 5)):
        assert "impossible size" in error_for(tmp_path, header(width, height) + bytes(32))


def test_huge_sizes_are_refused_before_allocating(tmp_path: Path) -> None:
    assert "more than" in error_for(tmp_path, header(2**31 - 1, 2**31 - 1) + bytes(64))
    assert "truncated" in error_for(tmp_path, header(16384, 8192) + bytes(64))


def test_wrong_length(tmp_path: Path) -> None:
    assert "truncated" in error_for(tmp_path, header(2, 2))
    assert "truncated" in error_for(tmp_path, header(2, 2) + bytes(31))
    assert "too long" in error_for(tmp_path, header(2, 2) + bytes(33))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=64) | st.binary(max_size=60).map(lambda b: b"PIEH" + b))
def test_arbitrary_bytes_never_crash(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "f.flo"
    path.write_bytes(content)
    try:
        flow = read_flo(path)
    except FileError:
        return
    assert len(content) == 12 + flow.nbytes


def test_missing_and_directory(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist") as caught:
        read_flo(tmp_path / "no.flo")
    assert isinstance(caught.value, HamflowError)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(FileError, match="is a directory"):
        read_flo(tmp_path)
    with pytest.raises(FileError, match="is a directory"):
        write_flo(tmp_path, np.zeros((1, 1, 2)))
    with pytest.raises(FileError, match="check the path"):
        read_flo(f"{tmp_path}/a\0b.flo")


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
def test_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f.flo")
    with pytest.raises(FileError, match="not a regular file"):
        read_flo(tmp_path / "f.flo")


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.flo"
    write_flo(path, np.zeros((1, 1, 2)))

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(FileError, match="permissions"):
        read_flo(path)


def test_full_disk_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.flo"
    write_flo(path, np.ones((2, 2, 2)))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="disk is full"):
        write_flo(path, np.zeros((2, 2, 2)))
    assert (read_flo(path) == 1).all()
    assert os.listdir(tmp_path) == ["f.flo"]


@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 3), (2, 2, 2, 2), (0, 2, 2), (2,), ()])
def test_bad_shapes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="shape"):
        write_flo(tmp_path / "f.flo", np.zeros(shape))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("dtype", [complex, bool, "U1", object])
def test_bad_types(tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(InputError, match="real numbers"):
        write_flo(tmp_path / "f.flo", np.zeros((1, 1, 2), dtype))


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1.1e9, 1e300])
def test_values_that_the_format_cannot_hold(tmp_path: Path, value: float) -> None:
    flow = np.zeros((2, 2, 2))
    flow[1, 0, 1] = value
    with pytest.raises(InputError, match="NaN"):
        write_flo(tmp_path / "f.flo", flow)
    assert os.listdir(tmp_path) == []


@needs_data
def test_real_files(tmp_path: Path) -> None:
    files = sorted(DATA.glob("middlebury-flow/*/flow.flo"))
    assert files
    for file in files:
        flow = read_flow(file)
        write_flow(tmp_path / "f.flo", flow)
        assert np.array_equal(read_flow(tmp_path / "f.flo"), flow, equal_nan=True)
        assert np.nanmax(np.abs(flow)) < 100
    assert np.isnan(read_flow(DATA / "middlebury-flow/RubberWhale/flow.flo")).any()
