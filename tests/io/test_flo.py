from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from _flows import error_for
from _paths import DATA, needs_data
from hamflow.io import read_flow, write_flow
from hamflow.io.flo import read_flo, write_flo


def header(width: int, height: int, magic: bytes = b"PIEH") -> bytes:
    return struct.pack("<4sii", magic, width, height)


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


def test_bad_headers(tmp_path: Path) -> None:
    assert "PIEH" in error_for(tmp_path / "bad.flo", b"")
    assert "PIEH" in error_for(tmp_path / "bad.flo", b"PIE")
    assert "PIEH" in error_for(tmp_path / "bad.flo", header(1, 1, b"HEIP") + bytes(8))
    assert "truncated" in error_for(tmp_path / "bad.flo", b"PIEH")
    assert "truncated" in error_for(tmp_path / "bad.flo", header(1, 1)[:11])
    for width, height in ((0, 1), (1, 0), (-1, 1), (1, -1), (-2, -2), (-(2**31), 5)):
        assert "impossible size" in error_for(
            tmp_path / "bad.flo", header(width, height) + bytes(32)
        )


def test_huge_sizes_are_refused_before_allocating(tmp_path: Path) -> None:
    assert "more than" in error_for(tmp_path / "bad.flo", header(2**31 - 1, 2**31 - 1) + bytes(64))
    assert "truncated" in error_for(tmp_path / "bad.flo", header(16384, 8192) + bytes(64))


def test_wrong_length(tmp_path: Path) -> None:
    assert "truncated" in error_for(tmp_path / "bad.flo", header(2, 2))
    assert "truncated" in error_for(tmp_path / "bad.flo", header(2, 2) + bytes(31))
    assert "too long" in error_for(tmp_path / "bad.flo", header(2, 2) + bytes(33))


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
