"""Small benchmarks, methods that answer at once, and readers that are not Hamflow's."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from _trees import save_flow, save_image, scene
from hamflow.evaluation import Estimate

SCENES = {"alley_1": 3, "bamboo_2": 2}
FLO = ("alley_1/frame_0001.flo", "alley_1/frame_0002.flo", "bamboo_2/frame_0001.flo")
PNG = ("000000_10.png", "000003_10.png")
LOG = "run.jsonl"


@pytest.fixture(scope="module")
def sintel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sintel")
    for name, length in SCENES.items():
        for k in range(1, length + 1):
            for pass_, brighter in (("clean", 0), ("final", 9)):
                path = root / "test" / pass_ / name / f"frame_{k:04}.png"
                save_image(path, scene(k).image0 // 2 + np.uint8(brighter))
    # A training split with truth, which nobody shall look at.
    save_image(root / "training/clean/cave_4/frame_0001.png", scene(0).image0)
    save_image(root / "training/clean/cave_4/frame_0002.png", scene(0).image1)
    save_flow(root / "training/flow/cave_4/frame_0001.flo", scene(0).flow)
    return root


@pytest.fixture(scope="module")
def kitti(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For both years; the second pair is smaller, as in the real one."""
    root = tmp_path_factory.mktemp("kitti")
    for number, rows in ((0, 40), (3, 37)):
        for folder in ("image_2", "colored_0"):
            below = root / "testing" / folder
            save_image(below / f"{number:06}_10.png", scene(number).image0[:rows])
            save_image(below / f"{number:06}_11.png", scene(number).image1[:rows])
    return root


class Stub:
    """A method that answers what it is told to, and counts how often."""

    def __init__(self, answer: Callable[[Any], Any], name: str = "stub") -> None:
        self.answer, self.label, self.calls = answer, name, 0
        self.settings = {"method": name, "scale": 1}

    def __call__(self, image0: Any, image1: Any) -> Estimate:
        self.calls += 1
        return Estimate(self.answer(np.zeros((*image0.shape[:2], 2), np.float32)))


def stub(answer: Callable[[Any], Any] = lambda flow: flow + np.float32(1.5), *rest: str) -> Any:
    return Stub(answer, *rest)


def raw_flo(path: Path) -> NDArray[np.float32]:
    data = path.read_bytes()
    tag, width, height = struct.unpack("<fii", data[:12])
    assert tag == 202021.25
    assert len(data) == 12 + 8 * width * height
    numbers = struct.unpack(f"<{2 * width * height}f", data[12:])
    return np.array(numbers, np.float32).reshape(height, width, 2)


def raw_png(data: bytes) -> NDArray[np.uint16]:
    """Decode 16-bit RGB without interlacing, as the PNG specification says."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, header = 8, b"", b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        checksum = struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0]
        assert checksum == zlib.crc32(kind + body)
        header, packed = (body if kind == b"IHDR" else header), packed + body * (kind == b"IDAT")
        at += 12 + length
    width, height, depth, colors, _, _, interlace = struct.unpack(">IIBBBBB", header)
    assert (depth, colors, interlace) == (16, 2, 0)
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 6 * width)
    pixels = np.zeros((height + 1, 6 * width + 6), np.int64)  # with a border of zeros
    for row, (kind, *line) in enumerate(lines.tolist(), start=1):
        for column, value in enumerate(line, start=6):
            left, up = int(pixels[row, column - 6]), int(pixels[row - 1, column])
            corner = int(pixels[row - 1, column - 6])
            near = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
            add = (0, left, up, (left + up) // 2, near)[kind]
            pixels[row, column] = (value + add) % 256
    samples = pixels[1:, 6:].astype(np.uint8).tobytes()
    return np.frombuffer(samples, ">u2").reshape(height, width, 3).astype(np.uint16)


def files_in(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
