"""What holds for the flow files of every format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from _failing import full_disk
from _flows import error_for, expected, fixture_is_fine, flows
from hamflow.errors import FileError, InputError
from hamflow.io import FLOW_FORMATS, FLOW_SUFFIXES, check_flow_path, read_flow, write_flow

KITTI = ".kitti.png"
pytest.importorskip("h5py")

pytest.importorskip("tifffile")

every_format = pytest.mark.parametrize("suffix", FLOW_SUFFIXES)
# KITTI's files round to 1/64 pixel.
every_exact_format = pytest.mark.parametrize("suffix", [s for s in FLOW_SUFFIXES if s != KITTI])


@every_exact_format
@settings(fixture_is_fine, max_examples=40)
@given(flow=flows)
def test_round_trip(tmp_path: Path, suffix: str, flow: NDArray[np.float32]) -> None:
    path = tmp_path / f"f{suffix}"
    write_flow(path, flow)
    back = read_flow(path)
    assert back.dtype == np.float32
    assert back.flags.writeable
    assert back.flags.c_contiguous
    assert np.array_equal(back, expected(flow), equal_nan=True)
    assert os.listdir(tmp_path) == [path.name]


@every_exact_format
def test_extreme_values(tmp_path: Path, suffix: str) -> None:
    tiny, large = np.finfo(np.float32).smallest_subnormal, np.float32(1e9)
    flow = np.array([[[large, -large], [tiny, -tiny], [-0.0, 1 / 3]]], np.float32)
    write_flow(tmp_path / f"f{suffix}", flow)
    assert read_flow(tmp_path / f"f{suffix}").tobytes() == flow.tobytes()


@every_format
def test_any_layout_is_written_alike(tmp_path: Path, suffix: str) -> None:
    flow = np.arange(24, dtype=np.float64).reshape(3, 4, 2)
    good, other = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    write_flow(good, flow.astype(np.float32))
    layouts: list[Any] = [
        flow,
        np.asfortranarray(flow),
        flow.astype(">f8"),
        flow.astype(int),
        flow.tolist(),
        flow[::-1][::-1],
    ]
    for layout in layouts:
        write_flow(other, layout)
        assert other.read_bytes() == good.read_bytes()


@every_format
def test_writing_does_not_touch_the_array(tmp_path: Path, suffix: str) -> None:
    flow = np.array([[[np.nan, 1]]], np.float32)
    write_flow(tmp_path / f"f{suffix}", flow)
    assert flow[0, 0, 1] == 1


@every_exact_format
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1.1e9, 1e300])
def test_values_that_are_no_displacements(tmp_path: Path, suffix: str, value: float) -> None:
    flow = np.zeros((2, 2, 2))
    flow[1, 0, 1] = value
    with pytest.raises(InputError, match=rf"^flow .*{suffix} .*NaN"):
        write_flow(tmp_path / f"f{suffix}", flow)
    assert os.listdir(tmp_path) == []


@every_format
@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 3), (2, 4, 5), (2, 2, 2, 2), (0, 2, 2), ()])
def test_bad_shapes(tmp_path: Path, suffix: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="shape"):
        write_flow(tmp_path / f"f{suffix}", np.zeros(shape))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("dtype", [complex, bool, "U1", object])
def test_bad_types(tmp_path: Path, dtype: Any) -> None:
    for suffix in FLOW_SUFFIXES:
        with pytest.raises(InputError, match="real numbers"):
            write_flow(tmp_path / f"f{suffix}", np.zeros((1, 1, 2), dtype))


@every_format
def test_more_pixels_than_can_be_read(tmp_path: Path, suffix: str) -> None:
    huge = np.broadcast_to(np.float32(0), (2**14, 2**14, 2))
    with pytest.raises(InputError, match="flow has more than"):
        write_flow(tmp_path / f"f{suffix}", huge)


@pytest.mark.parametrize("suffix", [s for s in FLOW_SUFFIXES if s != ".tif"])
def test_truncated_anywhere(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"f{suffix}"
    write_flow(path, np.random.default_rng(0).normal(size=(5, 7, 2)))
    good = path.read_bytes()
    # HDF5 is slow and its file long, so a part of the places must do.
    step = 23 if suffix == ".flo5" else 1
    for length in range(0, len(good), step):
        error_for(path, good[:length])
    path.write_bytes(good)
    assert read_flow(path).shape == (5, 7, 2)


@pytest.mark.parametrize("suffix", [".flo", ".pfm", ".npy", ".npz"])
def test_trailing_bytes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"f{suffix}"
    write_flow(path, np.ones((3, 4, 2)))
    message = error_for(path, path.read_bytes() + b"\0")
    assert "too long" in message or "appended" in message


@every_format
def test_files_of_other_formats(tmp_path: Path, suffix: str) -> None:
    for other in FLOW_SUFFIXES:
        write_flow(tmp_path / f"other{other}", np.ones((2, 3, 2)))
        if other != suffix:
            error_for(tmp_path / f"f{suffix}", (tmp_path / f"other{other}").read_bytes())


@every_format
def test_missing_and_directory(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(FileError, match="does not exist"):
        read_flow(tmp_path / f"gone{suffix}")
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    for call in (read_flow, lambda p: write_flow(p, np.zeros((1, 1, 2)))):
        with pytest.raises(FileError, match="is a directory"):
            call(folder)
    with pytest.raises(FileError, match="check the path"):
        read_flow(f"{tmp_path}/a\0b{suffix}")


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
@every_format
def test_pipe_does_not_hang(tmp_path: Path, suffix: str) -> None:
    os.mkfifo(tmp_path / f"f{suffix}")
    with pytest.raises(FileError, match="not a regular file"):
        read_flow(tmp_path / f"f{suffix}")


@every_format
def test_full_disk_keeps_the_old_file(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"f{suffix}"
    write_flow(path, np.ones((2, 2, 2)))

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(FileError, match="disk is full"):
        write_flow(path, np.zeros((2, 2, 2)))
    assert (read_flow(path) == 1).all()
    assert os.listdir(tmp_path) == [path.name]


def test_dispatch_by_suffix(tmp_path: Path) -> None:
    flow = np.ones((2, 3, 2), np.float32)
    for suffix in FLOW_SUFFIXES:
        for path in (tmp_path / f"a{suffix}", tmp_path / f"b{suffix.upper()}"):
            check_flow_path(path)
            write_flow(path, flow)
            assert (read_flow(str(path)) == flow).all()
    # Each really is of its own kind.
    assert len({path.read_bytes()[:4] for path in tmp_path.iterdir()}) == len(FLOW_SUFFIXES)
    for name in ("a.xyz", "a", ".flo"):
        for call in (lambda p: write_flow(p, flow), read_flow, check_flow_path):
            with pytest.raises(
                FileError, match=r"use one of: \.flo, \.kitti\.png, \.pfm, \.flo5, \.npy, \.npz"
            ):
                call(tmp_path / name)


def test_a_plain_png_is_not_written(tmp_path: Path) -> None:
    """It would look like a broken picture; the sentence names both remedies."""
    for name in ("flow.png", "a.b.PNG"):
        path = tmp_path / name
        for call in (lambda p: write_flow(p, np.ones((2, 3, 2))), check_flow_path):
            with pytest.raises(FileError, match=r"plain \.png") as caught:
                call(path)
            message = str(caught.value)
            assert message.startswith(f"{path}: ")
            assert f"{str(path)[:-4]}.kitti.png" in message
            assert "--viz" in message
            assert "flow_to_color" in message
    assert os.listdir(tmp_path) == []


def test_an_explicit_format(tmp_path: Path) -> None:
    flow = np.ones((2, 3, 2), np.float32)
    for suffix in FLOW_SUFFIXES:
        name = "kitti" if suffix == ".kitti.png" else suffix[1:]
        plain, named = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
        write_flow(plain, flow)
        check_flow_path(named, name)
        write_flow(named, flow, format=name)
        assert (read_flow(named) == read_flow(plain)).all()
    # As KITTI's own files are called.
    path = tmp_path / "000000_10.png"
    check_flow_path(path, "kitti")
    write_flow(path, flow, format="kitti")
    assert path.read_bytes() == (tmp_path / "a.kitti.png").read_bytes()
    assert (read_flow(path) == flow).all()
    with pytest.raises(FileError, match=r"a\.png: a file in the format flo needs the suffix \.flo"):
        write_flow(tmp_path / "a.png", flow, format="flo")
    with pytest.raises(FileError, match=r"the format kitti needs the suffix \.png"):
        check_flow_path(tmp_path / "a.flo", "kitti")
    with pytest.raises(InputError, match=r"format must be one of flo, kitti, .*, not 'png'"):
        write_flow(path, flow, format="png")


HALF = """
import os
import struct

import numpy as np

from hamflow.io._atomic import atomic_write
from hamflow.io._flow_format import FlowFormat, known_vectors, vectors_to_write
from hamflow.io._reading import check_length, check_size, open_regular

_SIZE = struct.Struct("<ii")  # width and height


def read_half(path):
    with open_regular(path) as file:
        data = file.read()
    width, height = _SIZE.unpack(data[: _SIZE.size].ljust(_SIZE.size))
    check_size(path, width, height)
    check_length(path, width, height, _SIZE.size + 4 * width * height, len(data))
    values = np.frombuffer(data, "<f2", offset=_SIZE.size).reshape(height, width, 2)
    return known_vectors(values.astype(np.float32))


def write_half(path, flow):
    data = vectors_to_write(flow, ".half", np.nan)
    height, width, _ = data.shape
    with atomic_write(path) as file:
        file.write(_SIZE.pack(width, height) + data.astype("<f2").tobytes())


HALF = FlowFormat(read_half, write_half)
"""
"""The example of docs/architecture.md, without its annotations."""


def test_a_new_format_is_one_file_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new_half.py").write_text(HALF)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(FLOW_FORMATS, ".half", "new_half:HALF")
    path = tmp_path / "f.HALF"
    flow = np.array([[[1.5, -2], [np.nan, 0], [0.25, 100]]], np.float32)
    check_flow_path(path)
    write_flow(path, flow)
    assert np.array_equal(read_flow(path), expected(flow), equal_nan=True)
    assert "truncated" in error_for(path, path.read_bytes()[:-1])
    with pytest.raises(FileError, match=r"use one of: .*, \.half\.$"):
        read_flow(tmp_path / "f.xyz")
