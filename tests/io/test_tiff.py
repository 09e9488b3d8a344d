"""TIFF files, read and written part by part."""

from __future__ import annotations

import lzma
import sys
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import hamflow
from _problems import same_bytes
from hamflow.errors import FileError
from hamflow.io.sources import ArraySource, NpySource, open_source
from hamflow.io.tiff import TILE, TiffPart, new_tiff, open_tiff

tifffile = pytest.importorskip("tifffile")

RNG = np.random.default_rng(0)
FLOW = RNG.normal(0, 5, (300, 517, 2)).astype(np.float32)
IMAGE = RNG.integers(0, 256, (150, 230, 3), np.uint8)


def test_flow_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "flow.tif"
    flow = FLOW.copy()
    flow[3, 4, 0] = np.nan
    hamflow.write_flow(path, flow)
    found = hamflow.read_flow(path)
    assert np.isnan(found[3, 4]).all()
    found[3, 4] = flow[3, 4] = 0
    assert same_bytes(found, flow)
    # Others read it, too: tiles with two channels of float32.
    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        assert page.is_tiled
        assert (page.tilelength, page.samplesperpixel, page.dtype) == (TILE, 2, np.float32)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"tile": (32, 48)},
        {"compression": "zlib"},
        {"rowsperstrip": 7},
        {"tile": (64, 64), "compression": "zlib", "predictor": True},
        {"bigtiff": True, "byteorder": ">"},
    ],
)
def test_parts_of_images(tmp_path: Path, how: dict[str, Any]) -> None:
    path = tmp_path / "image.tif"
    for image in (IMAGE, IMAGE[..., 0], IMAGE.astype(np.uint16) * 257):
        photometric = "rgb" if image.ndim == 3 else "minisblack"
        tifffile.imwrite(path, image, photometric=photometric, **how)
        source = open_source(path)
        assert source.in_file
        assert source.shape == (150, 230)
        color = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
        for rows, columns in (
            (slice(None), slice(None)),
            (slice(31, 97), slice(5, 200)),
            (slice(149, 150), slice(229, 230)),
        ):
            assert (source.read(rows, columns) == color[rows, columns]).all()
        if image.dtype == np.uint8 and "bigtiff" not in how:  # which Pillow does not read
            assert same_bytes(hamflow.read_image(path), np.ascontiguousarray(color))


def test_what_is_read_as_a_whole(tmp_path: Path) -> None:
    """Channels one after the other, turned images and palettes are the usual reader's business."""
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, IMAGE.transpose(2, 0, 1), photometric="rgb", planarconfig="separate")
    assert open_tiff(path) is None
    tifffile.imwrite(path, IMAGE, photometric="rgb", extratags=[(274, "H", 1, 6, True)])
    assert open_tiff(path) is None
    assert isinstance(open_source(path), ArraySource)
    path.write_bytes(b"II*\0nothing")
    with pytest.raises(FileError):
        open_source(path)


@pytest.mark.parametrize("compression", ["tiff_lzw", "packbits", "jpeg"])
def test_other_compressions_are_read_as_a_whole(tmp_path: Path, compression: str) -> None:
    """Pillow knows them, tifffile only together with another package."""
    path = tmp_path / "image.tif"
    Image.fromarray(IMAGE).save(path, compression=compression)
    source = open_source(path)
    assert isinstance(source, ArraySource)
    assert source.read(slice(None), slice(None)).shape == IMAGE.shape


def bomb(path: Path, flow: NDArray[np.float32], megabytes: int, kind: str) -> None:
    """Write a flow of one tile, which inflates to so many megabytes."""
    layout = {"planarconfig": "contig", "photometric": "minisblack", "tile": (256, 256)}
    tifffile.imwrite(path, flow, compression=kind, **layout)
    with tifffile.TiffFile(path) as file:
        offsets, counts = file.pages[0].tags["TileOffsets"], file.pages[0].tags["TileByteCounts"]
        places = [(tag.valueoffset, tag.dtype) for tag in (offsets, counts)]
    pack = lzma.LZMACompressor() if kind == "lzma" else zlib.compressobj(1)
    packed = b"".join(pack.compress(bytes(2**20)) for _ in range(megabytes)) + pack.flush()
    data = bytearray(path.read_bytes())
    for (place, dtype), value in zip(places, (len(data), len(packed)), strict=True):
        size = {3: 2, 4: 4}[int(dtype)]
        data[place : place + size] = value.to_bytes(size, "little")
    path.write_bytes(data + packed)


@pytest.mark.parametrize("kind", ["zlib", "lzma"])
def test_a_tile_that_inflates_to_more_than_its_pixels(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "flow.tif"
    bomb(path, np.ones((256, 256, 2), np.float32), 64, kind)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=r"flow\.tif: (is compressed by|.* inflates to more)"):
            hamflow.read_flow(path)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_tiles_that_are_much_larger_than_the_image(tmp_path: Path) -> None:
    """They would have to be decoded for nothing."""
    path = tmp_path / "flow.tif"
    layout = {"planarconfig": "contig", "photometric": "minisblack", "tile": (16, 2**20)}
    with tifffile.TiffWriter(path) as writer:
        writer.write(shape=(20, 1, 2), dtype=np.float32, **layout)
    with pytest.raises(FileError, match=r"flow\.tif: has tiles that are much larger than"):
        hamflow.read_flow(path)


def test_not_a_flow(tmp_path: Path) -> None:
    path = tmp_path / "image.tif"
    tifffile.imwrite(path, IMAGE)
    with pytest.raises(FileError, match=r"has the shape \(150, 230, 3\) and the type uint8"):
        hamflow.read_flow(path)
    with pytest.raises(FileError, match=r"none\.tif: "):
        hamflow.read_flow(tmp_path / "none.tif")


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tifffile", None)
    with pytest.raises(FileError, match=r"pip install 'hamflow\[tiff\]'"):
        hamflow.write_flow(tmp_path / "flow.tif", FLOW)
    hamflow.write_image(tmp_path / "image.tif", IMAGE)
    assert isinstance(open_source(tmp_path / "image.tif"), ArraySource)


def test_a_new_file_has_a_place_for_every_tile(tmp_path: Path) -> None:
    path = tmp_path / "new.tif"
    start = new_tiff(path, (300, 517, 2), np.dtype("<f4"))
    mapped = np.memmap(path, "<f4", "r+", start, (2, 3, TILE, TILE, 2))
    mapped[1, 2, 10, 3] = 7, 8
    mapped.flush()
    found = TiffPart(path).pixels(slice(None), slice(None))
    assert found.shape == (300, 517, 2)
    assert tuple(found[TILE + 10, 2 * TILE + 3]) == (7, 8)
    assert np.count_nonzero(found) == 2


def test_npy(tmp_path: Path) -> None:
    path = tmp_path / "image.npy"
    for image in (IMAGE, IMAGE[..., 0], IMAGE[..., :1], np.dstack([IMAGE, IMAGE[..., 0]])):
        np.save(path, image)
        source = open_source(path)
        assert isinstance(source, NpySource)
        assert source.shape == (150, 230)
        expected = ArraySource(image).read(slice(3, 60), slice(2, 9))
        assert (source.read(slice(3, 60), slice(2, 9)) == expected).all()
    for wrong, said in (
        (IMAGE.astype(np.int64), "is not an image"),
        (IMAGE.transpose(2, 0, 1), "has the shape"),
        (np.zeros((0, 3), np.uint8), "has the shape"),
        (np.full((3, 3), 2.5), "is not an image"),
    ):
        np.save(path, wrong)
        with pytest.raises(FileError, match=said):
            open_source(path)
    path.write_bytes(b"\x93NUMPY\1\0")
    with pytest.raises(FileError, match="cannot be mapped"):
        open_source(path)
