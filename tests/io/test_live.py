"""Frames from streams and cameras."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from _png import SIGNATURE, chunk, header
from _videos import all_of, moving, write_video
from hamflow import FileError, InputError
from hamflow.io import _live
from hamflow.io.video import open_frames

PICTURES = moving(4)
HEIGHT, WIDTH = PICTURES[0].shape[:2]


def images(kind: str) -> bytes:
    """The pictures as files, one after another."""
    stream = io.BytesIO()
    for picture in PICTURES:
        Image.fromarray(picture).save(stream, kind, quality=95)
    return stream.getvalue()


def container(tmp_path: Path, suffix: str, codec: str, pixels: str) -> bytes:
    return write_video(tmp_path / f"a{suffix}", PICTURES, codec, pixels).read_bytes()


STREAMS: dict[str, Callable[[Path], bytes]] = {
    "png": lambda _: images("PNG"),
    "ppm": lambda _: images("PPM"),
    "bmp": lambda _: images("BMP"),
    "jpeg": lambda _: images("JPEG"),
    "y4m": lambda path: container(path, ".y4m", "rawvideo", "yuv444p"),
    "mkv": lambda path: container(path, ".mkv", "mpeg4", "yuv420p"),
    "raw": lambda _: b"".join(picture.tobytes() for picture in PICTURES),
}
EXACT = ("png", "ppm", "bmp", "raw")
CLOCK = ("y4m", "mkv")


def options(kind: str) -> dict[str, Any]:
    return {"size": (HEIGHT, WIDTH)} if kind == "raw" else {}


@pytest.mark.parametrize("kind", STREAMS)
def test_pixels_and_times(tmp_path: Path, kind: str) -> None:
    content = STREAMS[kind](tmp_path)
    frames = open_frames(io.BytesIO(content), **options(kind))
    assert frames.live
    assert frames.count is None
    assert frames.fps == (30 if kind in CLOCK else None)
    found = list(frames)
    assert [frame.name for frame in found] == [f"frame_{k:06}" for k in range(1, 5)]
    for frame, picture in zip(found, PICTURES, strict=True):
        assert frame.image.dtype == np.uint8
        off = np.abs(frame.image.astype(int) - picture)
        assert off.max() == 0 if kind in EXACT else off.mean() < 8
        if kind in CLOCK:
            assert frame.time == pytest.approx(frame.position / 30, abs=1e-3)
        else:
            assert frame.time is None
    with pytest.raises(FileError, match="stream: can be read only once"):
        list(frames)


@pytest.mark.parametrize("kind", ["png", "y4m"])
def test_given_rate(tmp_path: Path, kind: str) -> None:
    frames = open_frames(io.BytesIO(STREAMS[kind](tmp_path)), fps=Fraction(25, 2))
    assert frames.fps == 12.5
    assert [frame.time for frame in frames] == [0, 0.08, 0.16, 0.24]
    for fps in (0, -1, float("nan"), 1e9):
        with pytest.raises(InputError, match="fps must be a number"):
            open_frames(io.BytesIO(), fps=fps)


@pytest.mark.parametrize("kind", ["png", "ppm", "bmp", "y4m", "raw"])
def test_truncated(tmp_path: Path, kind: str) -> None:
    content = STREAMS[kind](tmp_path)[:-50]
    found = all_of(open_frames(io.BytesIO(content), **options(kind)).read())
    assert found[:3] == [f"frame_{k:06}" for k in range(1, 4)]
    assert len(found) == 4
    assert found[3].startswith("stream: frame 4 cannot be decoded (")
    assert ("check the size of the frames (--size WxH, or" in found[3]) == (kind == "raw")
    assert ("whether the stream was cut off" in found[3]) == (kind == "raw")
    assert "\n" not in found[3]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        bytes(5000),
        2
        * (
            SIGNATURE
            + header(60000, 60000, 8)
            + chunk(b"IDAT", zlib.compress(bytes(100)))
            + chunk(b"IEND", b"")
        ),
        b"P6\n40000 20000\n255\n" + bytes(9999),
        b"YUV4MPEG2 W40000 H20000 F25:1 C444\nFRAME\n" + bytes(9999),
        b"YUV4MPEG2 W-5 H0 F0:0\nFRAME\n",
        b"YUV4MPEG2 " + b"X" * 99999,
        b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nother.ts\n#EXT-X-ENDLIST\n",
        b"ffconcat version 1.0\nfile /etc/hostname\n",
    ],
)
def test_nonsense(content: bytes) -> None:
    """One sentence, or no frames; nothing large is allocated."""
    try:
        found = all_of(open_frames(io.BytesIO(content)).read())
    except FileError as error:
        found = [str(error)]
    assert not any(name.startswith("frame_") for name in found)
    for sentence in found:
        assert sentence.startswith("stream: ")
        assert "\n" not in sentence
    if not content:
        assert "ended without a frame" in found[0]
    if content == b"hello":
        assert "is not a stream that Hamflow recognizes" in found[0]
        assert "--size WxH, or open_frames(source, size=(height, width)) in Python" in found[0]


def test_wrong_size() -> None:
    for size in ((0, 5), (-2, 5), (2**20, 2**20)):
        with pytest.raises(InputError, match="stream: frames cannot have"):
            open_frames(io.BytesIO(bytes(100)), size=size)


def test_bytes_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_live, "_MOST_BYTES", 200_000)

    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 2**31 - 1) + b"IHDR"
            Endless.given += size
            return start if Endless.given == size else bytes(size)

    with pytest.raises(FileError, match="200000 bytes without a frame"):
        list(open_frames(Endless()))
    assert Endless.given < 500_000


class Failing(io.BytesIO):
    """Raises an error after some bytes."""

    def __init__(self, content: bytes, error: BaseException) -> None:
        super().__init__(content)
        self.error = error

    def read1(self, size: int | None = -1) -> bytes:
        data = super().read1(-1 if size is None else min(size, 4096))
        if not data:
            raise self.error
        return data


def test_ctrl_c_is_not_lost(tmp_path: Path) -> None:
    content = STREAMS["raw"](tmp_path)
    reader = open_frames(Failing(content[:-1], KeyboardInterrupt()), size=(HEIGHT, WIDTH)).read()
    for _ in range(3):
        next(reader)
    with pytest.raises(KeyboardInterrupt):
        next(reader)
    with pytest.raises(KeyboardInterrupt):
        open_frames(Failing(b"", KeyboardInterrupt()))


def test_reading_fails(tmp_path: Path) -> None:
    content = STREAMS["raw"](tmp_path)
    file = Failing(content[:-1], OSError(5, "Input/output error"))
    found = all_of(open_frames(file, size=(HEIGHT, WIDTH)).read())
    assert "stream: cannot be read (Input/output error); try again." in found
    with pytest.raises(InputError, match="binary mode"):
        open_frames(io.StringIO("hello"))  # type: ignore[arg-type]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def stdin(content: bytes, terminal: bool = False) -> Any:
        return SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: terminal)

    monkeypatch.setattr("sys.stdin", stdin(images("PNG")))
    frames = open_frames("-")
    assert frames.name == "stdin"
    assert len(list(frames)) == 4
    monkeypatch.setattr("sys.stdin", stdin(b"", terminal=True))
    with pytest.raises(FileError, match="stdin: nothing is piped into it"):
        open_frames("-")


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs the program ffmpeg")
@pytest.mark.parametrize(
    ("words", "size"),
    [
        ("-f image2pipe -c:v png", None),
        ("-f image2pipe -c:v ppm", None),
        ("-f image2pipe", None),
        ("-f yuv4mpegpipe", None),
        ("-f matroska -c:v ffv1", None),
        ("-f rawvideo -pix_fmt rgb24", (HEIGHT, WIDTH)),
    ],
)
def test_ffmpeg(tmp_path: Path, words: str, size: tuple[int, int] | None) -> None:
    path = write_video(tmp_path / "in.avi", PICTURES)
    command = ["ffmpeg", "-v", "error", "-i", str(path), *words.split(), "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        found = list(open_frames(process.stdout, size=size))
    assert process.returncode == 0
    assert len(found) == 4
    for frame, picture in zip(found, PICTURES, strict=True):
        assert np.abs(frame.image.astype(int) - picture).mean() < 8


# --- cameras -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "device", "kind"),
    [
        ("linux", "/dev/video1", "v4l2"),
        ("darwin", "1", "avfoundation"),
        ("win32", "video=@second", "dshow"),
    ],
)
def test_camera(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, device: str, kind: str
) -> None:
    path = write_video(tmp_path / "in.avi", PICTURES)
    asked: list[tuple[str, str, dict[str, str]]] = []
    true_open = av.open

    def fake(file: str, *, format: str, options: dict[str, str]) -> Any:
        asked.append((file, format, options))
        return true_open(str(path))

    devices = [
        SimpleNamespace(name="@first", media_types=["video"]),
        SimpleNamespace(name="@microphone", media_types=["audio"]),
        SimpleNamespace(name="@second", media_types=["video", "audio"]),
    ]
    monkeypatch.setattr(av, "open", fake)
    monkeypatch.setattr(av, "enumerate_input_devices", lambda kind: devices, raising=False)
    monkeypatch.setattr(_live, "sys", SimpleNamespace(platform=system))
    for source in (1, np.int64(1), "camera:1"):
        frames = open_frames(source, fps=15)  # type: ignore[arg-type]
        assert frames.live
        assert frames.name == "camera:1"
        assert asked[-1] == (device, kind, {"framerate": "15"})
        found = list(frames)
        assert [frame.time for frame in found] == pytest.approx([k / 30 for k in range(4)])


def test_no_such_camera_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_live, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(av, "enumerate_input_devices", lambda kind: [], raising=False)
    with pytest.raises(FileError, match=r"camera:0: cannot be opened \(cameras found: 0\)"):
        open_frames(0)
    monkeypatch.delattr(av, "enumerate_input_devices")
    with pytest.raises(FileError, match="package av is too old"):
        open_frames(0)


def test_no_camera() -> None:
    with pytest.raises(FileError, match=r"camera:987: cannot be opened \(.*\); connect a camera"):
        open_frames(987)
    with pytest.raises(InputError, match="size is for a stream"):
        open_frames("camera:0", size=(4, 5))


def test_a_file_that_is_called_like_a_camera(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_video(tmp_path / "in.avi", PICTURES).rename(tmp_path / "camera:0")
    assert len(list(open_frames("./camera:0"))) == 4
