from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from _flows import error_for, expected
from hamflow.errors import FileError
from hamflow.io import check_flow_path, read_flow, write_flow
from hamflow.io.flo5 import read_flo5, write_flo5

h5py = pytest.importorskip("h5py")

FLOW = np.random.default_rng(0).normal(size=(6, 7, 2)).astype(np.float32)


def refusal(path: Path) -> str:
    return error_for(path, path.read_bytes())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "f.flo5"


def test_what_is_written(path: Path) -> None:
    flow = FLOW.copy()
    flow[2, 3, 1] = np.nan
    write_flo5(path, flow)
    with h5py.File(path) as file:
        assert list(file) == ["flow"]
        dataset = file["flow"]
        assert (dataset.dtype, dataset.shape) == (np.float32, (6, 7, 2))
        assert (dataset.compression, dataset.compression_opts) == ("gzip", 5)
        assert np.array_equal(dataset[()], expected(flow), equal_nan=True)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize(
    "options",
    [
        {"compression": "gzip", "compression_opts": 9},  # as cv-stuttgart's flow_library
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        {"chunks": (4, 5, 2), "maxshape": (None, None, 2)},
        {},
    ],
)
def test_files_of_others(path: Path, dtype: str, options: dict[str, Any]) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("flow", data=FLOW.astype(dtype), **options)
        file.attrs["comment"] = "anything"
        file.create_dataset("more", data=[1, 2, 3])
    assert (read_flo5(path) == FLOW.astype(dtype).astype(np.float32)).all()


def test_compact_storage(path: Path) -> None:
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple(FLOW.shape)
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_layout(h5py.h5d.COMPACT)
        dataset = h5py.h5d.create(file.id, b"flow", h5py.h5t.IEEE_F32LE, space, plan)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, FLOW)
    assert (read_flo5(path) == FLOW).all()


def test_without_h5py(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_flo5(path, FLOW)
    before = path.read_bytes()
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert (read_flow(path) == FLOW).all()
    for call in (check_flow_path, lambda p: write_flow(p, FLOW)):
        with pytest.raises(FileError, match=r"f\.flo5: .*pip install 'hamflow\[flo5\]'\.$"):
            call(path)
    assert path.read_bytes() == before


def test_other_files(path: Path) -> None:
    for content in (b"", b"\x89HDF", b"PIEH" + bytes(99)):
        assert "start like HDF5" in error_for(path, content)
    for rest in (b"", bytes(8), bytes(4000), b"\2" + bytes(4000), b"\xff" * 4000):
        assert "damaged" in error_for(path, b"\x89HDF\r\n\x1a\n" + rest)


@pytest.mark.parametrize("name", ["Flow", "disparity", "a/flow"])
def test_no_dataset(path: Path, name: str) -> None:
    with h5py.File(path, "w") as file:
        file[name] = FLOW
    assert "no dataset flow" in refusal(path)


def test_group(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["flow/inner"] = FLOW
    assert "not an HDF5 dataset" in refusal(path)


@pytest.mark.parametrize("kind", ["soft", "external"])
def test_links(path: Path, tmp_path: Path, kind: str) -> None:
    write_flo5(tmp_path / "other.flo5", FLOW)
    with h5py.File(path, "w") as file:
        file["real"] = FLOW
        links = {
            "soft": h5py.SoftLink("/real"),
            "external": h5py.ExternalLink("other.flo5", "/flow"),
        }
        file["flow"] = links[kind]
    assert "only a link" in refusal(path)


def test_external_storage(path: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(FLOW.nbytes))
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "flow", FLOW.shape, np.float32, external=[(str(secret), 0, FLOW.nbytes)]
        )
    assert "other files" in refusal(path)


def test_virtual_storage(path: Path, tmp_path: Path) -> None:
    write_flo5(tmp_path / "other.flo5", FLOW)
    layout = h5py.VirtualLayout(FLOW.shape, np.float32)
    layout[:] = h5py.VirtualSource(tmp_path / "other.flo5", "flow", FLOW.shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("flow", layout)
    assert "other files" in refusal(path)


@pytest.mark.parametrize("options", [{"compression": "lzf"}, {"scaleoffset": 3}])
def test_other_filters(path: Path, options: dict[str, Any]) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("flow", data=FLOW, **options)
    assert "gzip" in refusal(path)


def test_deflated_more_than_once(path: Path) -> None:
    """HDF5 inflates such a file of some kilobytes to gigabytes before it looks at the result."""
    with h5py.File(path, "w") as file:
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((2048, 2048, 2))
        for _ in range(3):
            plan.set_deflate(9)
        space = h5py.h5s.create_simple((2048, 2048, 2))
        dataset = h5py.h5d.create(file.id, b"flow", h5py.h5t.IEEE_F32LE, space, plan)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.zeros((2048, 2048, 2), np.float32))
    assert path.stat().st_size < 10_000
    assert "more than once" in refusal(path)


@pytest.mark.parametrize("shape", [(), (6,), (6, 7), (2, 6, 7), (6, 7, 3), (1, 6, 7, 2)])
def test_other_shapes(path: Path, shape: tuple[int, ...]) -> None:
    with h5py.File(path, "w") as file:
        file["flow"] = np.zeros(shape, np.float32)
    assert f"has the shape {shape}" in refusal(path)


def test_null_space(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["flow"] = h5py.Empty("f4")
    assert "has the shape None" in refusal(path)


@pytest.mark.parametrize("shape", [(0, 7, 2), (6, 0, 2)])
def test_no_pixels(path: Path, shape: tuple[int, ...]) -> None:
    with h5py.File(path, "w") as file:
        file["flow"] = np.zeros(shape, np.float32)
    assert "impossible size" in refusal(path)


@pytest.mark.parametrize("dtype", ["i4", "S4", "?", "c8", [("u", "f4")], "O"])
def test_other_types(path: Path, dtype: Any) -> None:
    kind = h5py.string_dtype() if dtype == "O" else dtype
    with h5py.File(path, "w") as file:
        file.create_dataset("flow", (6, 7, 2), kind)
    assert "float32" in refusal(path)


@pytest.mark.parametrize("options", [{}, {"compression": "gzip"}, {"chunks": (64, 64, 2)}])
def test_sizes_without_pixels(path: Path, options: dict[str, Any]) -> None:
    """A file of some kilobytes that HDF5 would fill up to a gigabyte of zeros."""
    with h5py.File(path, "w") as file:
        file.create_dataset("flow", (8192, 16384, 2), np.float32, **options)
    assert path.stat().st_size < 10_000
    assert "does not hold them" in refusal(path)


def test_huge_size(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("flow", (2**20, 2**20, 2), np.float32, chunks=(64, 64, 2))
    assert "more than" in refusal(path)


def test_missing_chunks(path: Path) -> None:
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("flow", FLOW.shape, np.float32, chunks=(3, 7, 2))
        dataset[:3] = FLOW[:3]
    assert "does not hold them" in refusal(path)


def test_huge_chunks(path: Path) -> None:
    with h5py.File(path, "w") as file:
        options = {"chunks": (2048, 2048, 2), "maxshape": (None, None, 2), "compression": "gzip"}
        file.create_dataset("flow", data=FLOW, **options)
    assert path.stat().st_size < 2**18
    assert "does not hold them" in refusal(path)


def test_damaged_pixels(path: Path) -> None:
    write_flo5(path, FLOW)
    good = path.read_bytes()
    start = good.index(b"x^")  # of the compressed chunk
    flipped = bytearray(good)
    flipped[start + 40] ^= 0xFF
    assert "damaged" in error_for(path, bytes(flipped))
