from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from _flows import error_for
from hamflow.io.pfm import read_pfm, write_pfm

nan, inf = float("nan"), float("inf")


def test_bytes_on_disk(tmp_path: Path) -> None:
    write_pfm(tmp_path / "f.pfm", [[[1, -2], [nan, 3]], [[0.5, 0], [4, 5]]])
    below, above = (0.5, 0, 0, 4, 5, 0), (1, -2, 0, 1e10, 1e10, 0)
    expected = b"PF\n2 2\n-1.0\n" + struct.pack("<12f", *below, *above)
    assert (tmp_path / "f.pfm").read_bytes() == expected


@pytest.mark.parametrize(
    ("header", "order"),
    [
        (b"PF\n2 2\n-1.000000\n", "<"),
        (b"PF\n2 2\n1\n", ">"),
        (b"PF\r\n2 2\r\n-1.0\r\n", "<"),
        (b"PF 2 2 +1e0 \n", ">"),
    ],
)
def test_both_byte_orders_and_any_third_channel(tmp_path: Path, header: bytes, order: str) -> None:
    path = tmp_path / "f.pfm"
    # The first line of the file is the last of the picture.
    path.write_bytes(header + struct.pack(f"{order}12f", 1, 2, nan, 3, 4, inf, 5, 6, 7, 8, 9, 1e30))
    assert read_pfm(path).tolist() == [[[5, 6], [8, 9]], [[1, 2], [3, 4]]]


def test_unknown_values_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f.pfm"
    values = (1e10, 0, 0, 0, -2e9, 0, nan, 0, 0, 0, inf, 0, 1e9, -1e9, 0)
    path.write_bytes(b"PF\n5 1\n1.0\n" + struct.pack(">15f", *values))
    flow = read_pfm(path)
    assert np.isnan(flow[0, :4]).all()
    assert flow[0, 4].tolist() == [1e9, -1e9]


def test_opencv_reads_and_writes_the_same(tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    path = tmp_path / "f.pfm"
    flow = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)
    write_pfm(path, flow)
    pixels = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)  # blue first
    assert (pixels[:, :, 2] == flow[:, :, 0]).all()
    assert (pixels[:, :, 1] == flow[:, :, 1]).all()
    cv2.imwrite(str(tmp_path / "g.pfm"), pixels)
    assert (read_pfm(tmp_path / "g.pfm") == flow).all()


def test_bad_headers(tmp_path: Path) -> None:
    path, body = tmp_path / "f.pfm", bytes(12)
    assert "is not a .pfm file with 3 channel(s)" in error_for(path, b"Pf\n1 1\n-1.0\n" + bytes(4))
    for magic in (b"", b"P", b"pf", b"P6"):
        assert "start with PF" in error_for(path, magic + b"\n1 1\n-1.0\n" + body)
    for header in (
        b"PF\n1\n-1.0\n",
        b"PF\n1 x\n-1.0\n",
        b"PF\n1 -1\n-1.0\n",
        b"PF\n1 1\n-1.0",
        b"PF\n1 1\nnan\n",
        b"PF1 1\n-1.0\n",
        b"PF\n1 12345678901\n-1.0\n",
        b"PF\n1 1\n" + b" " * 200 + b"-1.0\n",
    ):
        assert "three lines" in error_for(path, header + body)
    for size in (b"0 1", b"1 0"):
        assert "impossible size" in error_for(path, b"PF\n" + size + b"\n-1.0\n" + body)
    for scale in (b"0", b"-0.5", b"2", b"1.1.1", b"-1e300"):
        assert "scale" in error_for(path, b"PF\n1 1\n" + scale + b"\n" + body)


def test_huge_sizes_are_refused_before_allocating(tmp_path: Path) -> None:
    path = tmp_path / "f.pfm"
    assert "more than" in error_for(path, b"PF\n9999999999 9999999999\n-1\n" + bytes(64))
    assert "truncated" in error_for(path, b"PF\n16384 8192\n-1\n" + bytes(64))
