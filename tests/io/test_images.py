from __future__ import annotations

import io
import os
import struct
import tracemalloc
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from PIL import Image, ImageOps

from _failing import full_disk
from _flows import fixture_is_fine
from _paths import DATA, needs_data
from _png import ADAM7, SIGNATURE, chunk, header
from _trees import message_of
from hamflow.errors import FileError, InputError
from hamflow.io import read_image, write_image
from hamflow.io.images import announced_size, as_colors


def filter_line(kind: int, line: bytes, above: bytes, depth: int) -> bytes:
    """The filters of PNG, byte by byte, as the specification writes them."""
    out = bytearray([kind])
    for i, byte in enumerate(line):
        a = line[i - depth] if i >= depth else 0
        b = above[i]
        c = above[i - depth] if i >= depth else 0
        p = a + b - c
        paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        out.append((byte - (0, a, b, (a + b) // 2, paeth)[kind]) % 256)
    return bytes(out)


def encode(samples: NDArray[np.uint16], filters: list[int], interlace: bool = False) -> bytes:
    """Encode H×W×channels samples; the filters are used in turn."""
    height, width, channels = samples.shape
    lines: list[bytes] = []
    for x, y, dx, dy in ADAM7 if interlace else [(0, 0, 1, 1)]:
        part = samples[y::dy, x::dx]
        above = bytes(2 * channels * part.shape[1])
        for row in part if part.size else []:
            line = row.astype(">u2").tobytes()
            lines.append(filter_line(filters[len(lines) % len(filters)], line, above, 2 * channels))
            above = line
    packed = zlib.compress(b"".join(lines))
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    return (
        SIGNATURE
        + header(width, height, 16, color, int(interlace))
        + chunk(b"tEXt", b"Comment\0skipped")
        + chunk(b"IDAT", packed[: len(packed) // 2])
        + chunk(b"IDAT", packed[len(packed) // 2 :])
        + chunk(b"IEND", b"")
    )


def rgb16(height: int = 5, width: int = 7, channels: int = 3) -> NDArray[np.uint16]:
    rng = np.random.default_rng(7)
    return rng.integers(0, 2**16, (height, width, channels), np.uint16)


def error_for(tmp_path: Path, content: bytes, name: str = "bad.png") -> str:
    path = tmp_path / name
    path.write_bytes(content)
    return message_of(lambda: read_image(path), path)


# 16-bit PNG


@settings(fixture_is_fine, max_examples=40)
@given(
    samples=hnp.arrays(
        np.uint16, st.tuples(st.integers(1, 11), st.integers(1, 11), st.integers(1, 4))
    ),
    filters=st.lists(st.integers(0, 4), min_size=1, max_size=8),
    interlace=st.booleans(),
)
def test_png16(
    tmp_path: Path, samples: NDArray[np.uint16], filters: list[int], interlace: bool
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(encode(samples, filters, interlace))
    image = read_image(path)
    color = samples[:, :, :1] if samples.shape[2] < 3 else samples[:, :, :3]
    assert image.dtype == np.uint16
    assert image.shape == (*samples.shape[:2], 3)
    assert image.flags.c_contiguous
    assert image.flags.writeable
    assert (image == color).all()


def test_a_part_that_announces_gigabytes(tmp_path: Path) -> None:
    """Python makes room for what it is asked to read, though the file has 70 bytes."""
    image = header(9, 7, 1, 0) + struct.pack(">I", 0xFE000000) + b"IDAT"
    (tmp_path / "a.png").write_bytes(SIGNATURE + image + zlib.compress(bytes(21)))
    tracemalloc.start()
    try:
        with suppress(FileError):
            read_image(tmp_path / "a.png")
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_png16_agrees_with_opencv(tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    smooth = np.cumsum(rgb16(40, 33, 3) % 300, axis=1).astype(np.uint16)
    cv2.imwrite(str(tmp_path / "a.png"), smooth)
    assert (read_image(tmp_path / "a.png") == smooth[:, :, ::-1]).all()


def test_png16_damage(tmp_path: Path) -> None:
    good = encode(rgb16(), [4])
    ihdr, end = header(7, 5), chunk(b"IEND", b"")
    pixels = zlib.compress(bytes(5 * (1 + 7 * 6)))

    def png(*chunks: bytes) -> bytes:
        return SIGNATURE + b"".join(chunks)

    for stop in range(26, len(good) - 1, 9):
        assert "damaged" in error_for(tmp_path, good[:stop])
    flipped = bytearray(good)
    flipped[-30] ^= 1
    assert "checksum" in error_for(tmp_path, bytes(flipped))
    assert "fewer pixels" in error_for(tmp_path, png(ihdr, end))
    assert "fewer pixels" in error_for(tmp_path, png(ihdr, chunk(b"IDAT", pixels[:-4]), end))
    short = zlib.compress(bytes(5 * (1 + 7 * 6) - 1))
    assert "fewer pixels" in error_for(tmp_path, png(ihdr, chunk(b"IDAT", short), end))
    long = zlib.compress(bytes(5 * (1 + 7 * 6) + 1))
    assert "more pixels" in error_for(tmp_path, png(ihdr, chunk(b"IDAT", long), end))
    assert "damaged" in error_for(tmp_path, png(ihdr, chunk(b"IDAT", b"not deflated"), end))
    undefined = zlib.compress((b"\x05" + bytes(42)) * 5)
    assert "filter" in error_for(tmp_path, png(ihdr, chunk(b"IDAT", undefined), end))
    unknown = png(ihdr, chunk(b"ABCD", b""), chunk(b"IDAT", pixels), end)
    assert "critical chunk" in error_for(tmp_path, unknown)
    for color in (1, 3, 5, 7):
        assert "does not define" in error_for(tmp_path, png(header(7, 5, color=color), end))
    assert "does not define" in error_for(tmp_path, png(header(7, 5, interlace=2), end))
    longer = chunk(b"IHDR", struct.pack(">IIBBBBBB", 7, 5, 16, 2, 0, 0, 0, 0))
    assert "header" in error_for(tmp_path, png(longer, end))
    lying = bytearray(png(ihdr, chunk(b"IDAT", pixels), end))
    lying[33:37] = b"\x7f\xff\xff\xff"
    assert "truncated" in error_for(tmp_path, bytes(lying))


def test_png16_impossible_and_huge_sizes(tmp_path: Path) -> None:
    assert "impossible size" in error_for(tmp_path, SIGNATURE + header(0, 5))
    assert "more than" in error_for(tmp_path, SIGNATURE + header(2**31 - 1, 2**31 - 1))
    small = chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    assert "fewer pixels" in error_for(tmp_path, SIGNATURE + header(16384, 8192) + small)


@pytest.mark.parametrize("interlace", [0, 1])
@pytest.mark.parametrize(
    ("depth", "color", "bits"),
    [(1, 0, 1), (2, 0, 2), (4, 3, 4), (8, 3, 8), (8, 0, 8), (8, 4, 16), (8, 2, 24), (8, 6, 32)],
)
def test_too_few_rows(tmp_path: Path, depth: int, color: int, bits: int, interlace: int) -> None:
    """Pillow would fill the rest with black."""
    width, height = 13, 11
    steps = ADAM7 if interlace else [(0, 0, 1, 1)]
    sizes = [(len(range(x, width, dx)), len(range(y, height, dy))) for x, y, dx, dy in steps]
    line = [1 + (columns * bits + 7) // 8 for columns, _ in sizes]
    total = sum(length * rows for length, (_, rows) in zip(line, sizes, strict=True))
    palette = chunk(b"PLTE", bytes(range(48)) + bytes(720)) if color == 3 else b""
    path = tmp_path / "a.png"
    # One byte of the last row is missing; half of them; and then none, black or not.
    for missing, value in ((1, 0), (1, 1), (total // 2, 0), (total - 1, 0), (0, 0), (0, 1)):
        pixels = bytearray(total)
        if value:
            pixels[-1] = 0xFF if depth < 8 else 9
        data = zlib.compress(bytes(pixels[: total - missing]))
        path.write_bytes(
            SIGNATURE
            + header(width, height, depth, color, interlace)
            + palette
            + chunk(b"IDAT", data[:20])
            + chunk(b"IDAT", data[20:])
            + chunk(b"IEND", b"")
        )
        if missing:
            with pytest.raises(FileError, match="damaged"):
                read_image(path)
        else:
            assert read_image(path).shape == (height, width, 3)


def test_png16_that_expands_without_end(tmp_path: Path) -> None:
    bomb = zlib.compress(bytes(50_000_000))
    content = SIGNATURE + header(7, 5) + chunk(b"IDAT", bomb) + chunk(b"IEND", b"")
    assert "more pixels" in error_for(tmp_path, content)


@needs_data
def test_kitti_flow_is_not_truncated_to_8_bits() -> None:
    path = next(DATA.glob("kitti/*/flow.png"))
    image = read_image(path)
    assert image.dtype == np.uint16
    valid = image[:, :, 2] == 1
    assert 0 < valid.sum() < valid.size
    u = (image[valid][:, 0].astype(float) - 2**15) / 64
    assert np.abs(u).max() < 300
    assert (u != np.rint(u)).any()


# Everything else


@pytest.mark.parametrize("suffix", ["png", "bmp", "tif", "tiff", "webp", "jpg", "jpeg", "PNG"])
@pytest.mark.parametrize("shape", [(9, 14), (9, 14, 3)])
def test_round_trip(tmp_path: Path, suffix: str, shape: tuple[int, ...]) -> None:
    image = np.full(shape, 128, np.uint8)
    image[:, :7] = 30
    path = tmp_path / f"a.{suffix}"
    write_image(path, image)
    back = read_image(str(path))
    assert back.dtype == np.uint8
    expected = image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
    tolerance = 12 if suffix in ("jpg", "jpeg", "webp") else 0
    assert np.abs(back.astype(int) - expected).max() <= tolerance
    assert os.listdir(tmp_path) == [path.name]


@settings(fixture_is_fine, max_examples=40)
@given(
    image=hnp.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3)))
    | hnp.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9)))
)
def test_png_is_exact(tmp_path: Path, image: NDArray[np.uint8]) -> None:
    write_image(tmp_path / "a.png", image)
    back = read_image(tmp_path / "a.png")
    assert (back == (image if image.ndim == 3 else image[:, :, None])).all()
    assert back.flags.writeable


def test_views_are_written_as_they_look(tmp_path: Path) -> None:
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    write_image(tmp_path / "a.png", image[::-1, :, ::-1])
    assert (read_image(tmp_path / "a.png") == image[::-1, :, ::-1]).all()


def test_alpha_palette_bilevel_cmyk(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rgba = rng.integers(0, 256, (6, 8, 4), np.uint8)
    Image.fromarray(rgba).save(tmp_path / "rgba.png")
    assert (read_image(tmp_path / "rgba.png") == rgba[:, :, :3]).all()
    Image.fromarray(rgba[:, :, :2].copy(), "LA").save(tmp_path / "la.png")
    assert (read_image(tmp_path / "la.png") == rgba[:, :, :1]).all()

    palette = Image.new("P", (2, 1))
    palette.putpalette([9, 8, 7, 200, 100, 50])
    palette.putdata([1, 0])
    palette.save(tmp_path / "p.png", transparency=1)
    assert read_image(tmp_path / "p.png").tolist() == [[[200, 100, 50], [9, 8, 7]]]

    Image.fromarray(np.array([[True, False]])).save(tmp_path / "1.png")
    assert read_image(tmp_path / "1.png").tolist() == [[[255] * 3, [0] * 3]]
    Image.new("CMYK", (3, 2), (0, 0, 0, 0)).save(tmp_path / "c.jpg")
    assert (read_image(tmp_path / "c.jpg") > 250).all()


@pytest.mark.parametrize("suffix", ["png", "tif", "pgm"])
def test_gray_of_16_bits(tmp_path: Path, suffix: str) -> None:
    gray = rgb16()[:, :, 0]
    Image.fromarray(gray).save(tmp_path / f"a.{suffix}")
    image = read_image(tmp_path / f"a.{suffix}")
    assert image.dtype == np.uint16
    assert (image == gray[:, :, None]).all()


@pytest.mark.parametrize("value", [-1, 0, 255, 70000])
def test_gray_of_32_bits(tmp_path: Path, value: int) -> None:
    """Whether 255 is white or nearly black, the file does not say."""
    Image.fromarray(np.full((2, 2), value, np.int32)).save(tmp_path / "a.tif")
    with pytest.raises(FileError, match="8 or 16 bits"):
        read_image(tmp_path / "a.tif")
    with pytest.raises(InputError, match="convert it to the mode L or I;16"):
        as_colors(Image.fromarray(np.full((2, 2), value, np.int32)))
    with Image.open(tmp_path / "a.tif") as picture, pytest.raises(InputError, match="mode L"):
        as_colors(picture)


def test_floating_point(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((2, 2), np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(FileError, match="floating-point"):
        read_image(tmp_path / "a.tif")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "PNG16"])
@pytest.mark.parametrize("orientation", range(10))
def test_exif_orientation(tmp_path: Path, kind: str, orientation: int) -> None:
    stored = np.zeros((16, 32, 3), np.uint8)
    stored[:8, :16] = 255  # bright in the upper left quarter, darker to the right
    stored[:8, 16:] = 128
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = Image.fromarray(stored)
    path = tmp_path / "a"
    if kind == "PNG16":
        content = encode(stored.astype(np.uint16) * 257, [0])
        at = content.index(b"IEND") - 4
        block = chunk(b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0"))
        path.write_bytes(content[:at] + block + content[at:])
    else:
        picture.save(path, kind, exif=exif, quality=95)
    # Where the three parts are found, by what the EXIF standard says of rows and columns.
    corners = {1: "ul", 2: "ur", 3: "lr", 4: "ll", 5: "ul", 6: "ur", 7: "lr", 8: "ll"}
    corner = corners.get(orientation, "ul")
    image = read_image(path)
    if kind != "PNG16":  # as Pillow reads that with 8 bits, it is not the same
        with Image.open(path) as opened:
            assert (as_colors(opened) == image).all()
            assert (as_colors(ImageOps.exif_transpose(opened)) == image).all()
    image = image // 257 if image.dtype == np.uint16 else image
    turned = orientation in (5, 6, 7, 8)
    assert image.shape == ((32, 16, 3) if turned else (16, 32, 3))
    ends = {"u": 2, "l": -3}[corner[0]], {"l": 2, "r": -3}[corner[1]]
    assert image[ends][0] > 240
    other = (-ends[0] - 1, ends[1]) if turned else (ends[0], -ends[1] - 1)
    assert abs(int(image[other][0]) - 128) < 20


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".webp"])
def test_the_announced_size(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"image{suffix}"
    write_image(path, np.zeros((5, 9, 3), np.uint8))
    assert announced_size(path) == (9, 5)
    if suffix == ".png":
        path.write_bytes(path.read_bytes()[:50])  # the pixels are not looked at
        assert announced_size(path) == (9, 5)
    path.write_text("no image")
    with pytest.raises(FileError, match="is not an image that Hamflow reads"):
        announced_size(path)


def test_broken_exif_is_ignored(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 3), (9, 9, 9)).save(buffer, "PNG", exif=b"Exif\0\0MM\0*garbage")
    (tmp_path / "a.png").write_bytes(buffer.getvalue())
    assert read_image(tmp_path / "a.png").shape == (3, 4, 3)
    content = encode(rgb16(), [0])
    at = content.index(b"IEND") - 4
    (tmp_path / "b.png").write_bytes(content[:at] + chunk(b"eXIf", b"II*\0garb") + content[at:])
    assert (read_image(tmp_path / "b.png") == rgb16()).all()


def test_missing_directory_and_no_image(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        read_image(tmp_path / "no.png")
    with pytest.raises(FileError, match="is a directory"):
        read_image(tmp_path)
    assert "not an image" in error_for(tmp_path, b"")
    assert "not an image" in error_for(tmp_path, b"just some text")
    # Pillow would hand this one to an interpreter for PostScript.
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n"
    assert "not an image" in error_for(tmp_path, eps)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "PPM", "TIFF", "WEBP"])
def test_truncated(tmp_path: Path, kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, kind)
    content = buffer.getvalue()
    for part in (0.1, 0.5, 0.9):
        error_for(tmp_path, content[: int(len(content) * part)])


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [2**16, 13000, 2**30])
def test_decompression_bomb(tmp_path: Path, side: int) -> None:
    content = SIGNATURE + header(side, side, 8) + chunk(b"IDAT", zlib.compress(bytes(99)))
    assert "smaller image" in error_for(tmp_path, content)
    ppm = f"P6 {side} {side} 255\n".encode()
    assert "smaller image" in error_for(tmp_path, ppm, "bad.ppm")


@pytest.mark.parametrize("name", ["a.gif", "a", "a.flo", ".png"])
def test_unknown_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileError, match=r"use one of: .*\.png"):
        write_image(tmp_path / name, np.zeros((2, 2), np.uint8))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("shape", [(2,), (2, 2, 4), (2, 2, 2), (0, 3), (2, 2, 3, 1)])
def test_bad_shapes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="shape"):
        write_image(tmp_path / "a.png", np.zeros(shape, np.uint8))


def test_a_flow_is_no_image(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"of a flow; draw it with hamflow\.flow_to_color, or w"):
        write_image(tmp_path / "a.png", np.zeros((4, 5, 2), np.float32))


@pytest.mark.parametrize(
    ("dtype", "remedy"),
    [(np.uint16, "divide it by 257"), (np.int64, "convert it"), (object, "convert it")],
)
def test_bad_types(tmp_path: Path, dtype: Any, remedy: str) -> None:
    with pytest.raises(InputError, match=f"image must be of type uint8, bool, .*; {remedy}"):
        write_image(tmp_path / "a.png", np.zeros((2, 2), dtype))
    assert os.listdir(tmp_path) == []


def test_masks_and_shares(tmp_path: Path) -> None:
    mask = np.array([[True, False], [False, True]])
    write_image(tmp_path / "mask.png", mask)
    assert (read_image(tmp_path / "mask.png") == 255 * mask[..., None]).all()
    for dtype in (np.float16, np.float32, np.float64):
        confidence = np.array([[0, 0.25], [0.5, 1]], dtype)
        write_image(tmp_path / "confidence.png", confidence)
        gray = np.array([[0, 64], [128, 255]])
        assert (read_image(tmp_path / "confidence.png") == gray[..., None]).all()
    for wrong in (1.5, -0.1, np.nan):
        with pytest.raises(InputError, match="values from 0 to 1"):
            write_image(tmp_path / "a.png", np.full((2, 2), wrong))


def test_side_too_long_for_the_format(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="use another format"):
        write_image(tmp_path / "a.jpg", np.zeros((1, 70000), np.uint8))
    assert os.listdir(tmp_path) == []


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(FileError, match="disk is full"):
        write_image(tmp_path / "a.png", np.zeros((2, 2), np.uint8))
    assert os.listdir(tmp_path) == []
